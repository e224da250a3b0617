// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// A mounted store with apps that say which documents they were started with.
struct OpenFixture {
  let run: RunFixture
  /// The user's own Documents.
  var documents: String { run.mounted.path("Users/\(run.user.name)/Documents") }

  static let mayWrite = "<key>com.apple.security.files.user-selected.read-write</key><true/>"

  init(rootless: Bool = false) throws { run = try RunFixture(rootless: rootless) }

  /// Installs an app that prints its name, and of each argument the path below the mount, the contents and
  /// whether it can change it.
  func install(
    _ name: String, rank: String, types: [String] = [], extensions: [String] = [], inPlace: Bool = false,
    isPackage: Bool = false, info: String = "", entitlements: String? = nil, program: String? = nil
  ) throws {
    let program =
      program ?? """
        #!/bin/sh
        echo \(name)
        for file; do
          echo "${file#\(run.mounted.point)/}: $(cat "$file" 2>&1)"
          (echo more >>"$file") 2>/dev/null && echo changed
        done
        exit 0

        """
    let place = try run.mounted.temporary.write(program, to: "program-\(name)")
    _ = try Program.run(["chmod", "755", place])
    func list(_ texts: [String]) -> String {
      "<array>" + texts.map { "<string>\($0)</string>" }.joined() + "</array>"
    }
    try run.install(
      name, entitlements: entitlements,
      info: """
        <key>LSSupportsOpeningDocumentsInPlace</key><\(inPlace)/>\(info)
        """, executable: place
    ) { bundle in
      // The template claims plain text, which is not what is to be tested.
      let plist = bundle + "/Contents/Info.plist"
      let script = """
        import plistlib, sys
        info = plistlib.load(open(sys.argv[1], "rb"))
        info["CFBundleDocumentTypes"] = [plistlib.loads(sys.argv[2].encode())]
        plistlib.dump(info, open(sys.argv[1], "wb"))
        """
      let claim = """
        <plist version="1.0"><dict><key>LSHandlerRank</key><string>\(rank)</string>\
        <key>LSItemContentTypes</key>\(list(types))\
        <key>CFBundleTypeExtensions</key>\(list(extensions))\
        <key>LSTypeIsPackage</key><\(isPackage)/></dict></plist>
        """
      let written = try Program.run(["python3", "-c", script, plist, claim])
      try #require(written.status == 0, "\(written.errors)")
    }
  }

  /// A line of shell as the user, in their Documents; `open` is about this store.
  func shell(_ script: String, as account: Account? = nil) throws -> ProgramResult {
    try run.shell("open() { insula open \"$@\"; }\ncd '\(documents)' || exit 90\n\(script)", as: account)
  }

  func inbox(_ identifier: String) -> String {
    "Users/\(run.user.name)/Library/Containers/\(identifier)/Data/Documents/Inbox"
  }
}
