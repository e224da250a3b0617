// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import PropertyLists

extension DirectoryContents {
  /// The identifier of the type that the directory has by its Info.plist (CFBundlePackageType).
  package var packageType: String? {
    for place in [["Contents", "Info.plist"], ["Info.plist"], ["Resources", "Info.plist"]] {
      guard let bytes = read(place, DisplayNames.infoLimit),
        let kind = (try? PropertyList(reading: bytes, atMost: DisplayNames.infoValueLimit))?.dictionary?[
          "CFBundlePackageType"]?.string
      else { continue }
      return switch kind {
      case "APPL": "com.apple.application-bundle"
      case "FMWK": "com.apple.framework"
      case "BNDL": "com.apple.generic-bundle"
      default: nil
      }
    }
    return nil
  }
}
