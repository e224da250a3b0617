// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import PropertyLists

/// What is in every app that `insula new-app` makes, whatever its program is.
struct AppTemplate {
  let name: String
  let identifier: String
  let isFlat: Bool

  /// Where Info.plist is, relative to the bundle; ends in a slash if it is not empty.
  var base: String { isFlat ? "" : "Contents/" }
  var resources: String { base + (isFlat ? "" : "Resources/") }
  var executable: String { base + (isFlat ? name : "MacOS/\(name)") }

  /// `opensText` says whether it is one of the apps for texts.
  func info(opensText: Bool) throws(PropertyListError) -> [UInt8] {
    let text = Self.dictionary([
      ("CFBundleTypeName", .string("Text")), ("CFBundleTypeRole", .string("Viewer")),
      ("LSHandlerRank", .string("Alternate")), ("LSItemContentTypes", .array([.string("public.plain-text")])),
    ])
    return try Self.dictionary(
      [("CFBundleDevelopmentRegion", .string("en"))]
        + (opensText ? [("CFBundleDocumentTypes", .array([text]))] : []) + [
          ("CFBundleExecutable", .string(name)),
          ("CFBundleIdentifier", .string(identifier)),
          ("CFBundleInfoDictionaryVersion", .string("6.0")),
          ("CFBundleName", .string(name)),
          ("CFBundlePackageType", .string("APPL")),
          ("CFBundleShortVersionString", .string("1.0")),
          ("CFBundleVersion", .string("1")),
        ]
    ).xml()
  }

  /// Those that it is to have; without any it gets a group as an example: whoever is of the same team and
  /// names it too shares what is in it.
  func entitlements(_ chosen: [String], example: Bool) throws(PropertyListError) -> [UInt8] {
    let group: [(key: String, value: PropertyList)] = [
      ("com.apple.security.application-groups", .array([.string("group.\(identifier)")]))
    ]
    return try Self.dictionary(
      [(key: "com.apple.security.app-sandbox", value: .boolean(true))] + (example ? group : [])
        + chosen.map { (key: $0, value: .boolean(true)) }
    ).xml()
  }

  private static func dictionary(_ entries: [(key: String, value: PropertyList)]) -> PropertyList {
    // No key is there twice.
    .dictionary(PropertyList.Dictionary(entries) ?? PropertyList.Dictionary())
  }

  var welcome: String { "Hello from \(name).\n" }
}
