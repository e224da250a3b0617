// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import PropertyLists

/// What `insula new-app` makes.
struct AppTemplate {
  struct File {
    /// Relative to the bundle.
    let path: String
    let bytes: [UInt8]
    var mode: UInt32 = 0o644
  }

  let name: String
  let identifier: String
  let isFlat: Bool

  func files() throws(PropertyListError) -> [File] {
    let base = isFlat ? "" : "Contents/"
    return [
      File(path: base + "Info.plist", bytes: try info().xml()),
      File(path: base + "PkgInfo", bytes: Array("APPL????".utf8)),
      File(path: base + (isFlat ? name : "MacOS/\(name)"), bytes: Array(script.utf8), mode: 0o755),
      File(path: base + (isFlat ? "" : "Resources/") + "Welcome.txt", bytes: Array(welcome.utf8)),
    ]
  }

  /// The group is an example; whoever is of the same team and names it too shares what is in it.
  func entitlements() throws(PropertyListError) -> [UInt8] {
    try Self.dictionary([
      ("com.apple.security.app-sandbox", .boolean(true)),
      ("com.apple.security.application-groups", .array([.string("group.\(identifier)")])),
    ]).xml()
  }

  private static func dictionary(_ entries: [(key: String, value: PropertyList)]) -> PropertyList {
    // No key is there twice.
    .dictionary(PropertyList.Dictionary(entries) ?? PropertyList.Dictionary())
  }

  private func info() -> PropertyList {
    let text = Self.dictionary([
      ("CFBundleTypeName", .string("Text")), ("CFBundleTypeRole", .string("Viewer")),
      ("LSHandlerRank", .string("Alternate")), ("LSItemContentTypes", .array([.string("public.plain-text")])),
    ])
    return Self.dictionary([
      ("CFBundleDevelopmentRegion", .string("en")),
      ("CFBundleDocumentTypes", .array([text])),
      ("CFBundleExecutable", .string(name)),
      ("CFBundleIdentifier", .string(identifier)),
      ("CFBundleInfoDictionaryVersion", .string("6.0")),
      ("CFBundleName", .string(name)),
      ("CFBundlePackageType", .string("APPL")),
      ("CFBundleShortVersionString", .string("1.0")),
      ("CFBundleVersion", .string("1")),
    ])
  }

  private var script: String {
    """
    #!/bin/sh
    # This app prints where it and its container are, and writes to its Documents directory.
    set -eu
    bundle=$(cd "$(dirname "$0")\(isFlat ? "" : "/../..")" && pwd)
    cat "$bundle/\(isFlat ? "" : "Contents/Resources/")Welcome.txt"
    echo "My bundle:    $bundle"
    # The home of an app is the Data directory of its container.
    echo "My container: $HOME"
    if [ ! -d "$HOME/Documents" ]; then
      echo "There is no $HOME/Documents, so nothing was written." >&2
      exit 1
    fi
    date '+%F %T' >> "$HOME/Documents/starts.txt"
    echo "Started $(grep -c '' "$HOME/Documents/starts.txt") times; see $HOME/Documents/starts.txt."

    """
  }

  private var welcome: String { "Hello from \(name).\n" }
}
