// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import PropertyLists

// A line end in a name makes two lines of a list, and other control characters command a terminal. So a
// bundle has no such names, but for the one that the Finder gives to the icon of a folder.

extension SealLayout {
  private static let folderIcon = "Icon\r"

  /// What is wrong with a name that has a control character in it; nil for other names.
  static func control(in name: String) -> String? {
    guard let control = name.unicodeScalars.first(where: \.isControl), !name.hasSameBytes(as: folderIcon)
    else { return nil }
    let number = String(control.value, radix: 16, uppercase: true)
    return "it contains the control character U+" + String(repeating: "0", count: 4 - number.count) + number
  }
}
