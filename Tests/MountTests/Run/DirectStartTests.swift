// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Programs of apps that are started past the apps' views.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct DirectStartTests {
  private static let sandboxed = "<key>com.apple.security.app-sandbox</key><true/>"

  /// Each prints what it has done, so that nothing is taken for a refusal that fails for another reason.
  private static let ways = """
    program=$BUNDLE/Contents/MacOS/Notes
    "$program" > /dev/null 2>&1; echo "shell $?"
    env "$program" > /dev/null 2>&1; echo "env $?"
    (cd $BUNDLE/Contents/MacOS && ./Notes) > /dev/null 2>&1; echo "relative $?"
    exec 9< "$program"; sh -c 'exec /proc/self/fd/9' > /dev/null 2>&1; echo "open before $?"
    python3 -c 'import os, sys
    os.execve(os.open(sys.argv[1], os.O_RDONLY), ["Notes"], {"HOME": "/nonexistent"})' \
      "$program" > /dev/null 2>&1; echo "fexecve $?"
    """

  /// By the exit statuses of those ways: 0 is a start, and an app of ours that has no container gives 1.
  private func starts(_ output: String) -> [String] {
    output.split(separator: "\n").filter { $0.hasSuffix(" 0") || $0.hasSuffix(" 7") }.map(String.init)
  }

  private func program(in fixture: borrowing TemporaryDirectory) throws -> String {
    let path = try fixture.write("#!/bin/sh\nexit 7\n", to: "store/seven")
    return path
  }

  @Test(arguments: [false, true])
  func sandboxedAppStartsInItsViewAlone(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless, entitlements: Self.sandboxed)
    let result = try fixture.shell(Self.ways)
    #expect(result.output.split(separator: "\n").count == 5 && starts(result.output).isEmpty, "\(result)")
    // A person is told which program may not be run, and the log says what to do instead.
    let said = try fixture.shell("\"$BUNDLE/Contents/MacOS/Notes\"")
    #expect(said.status == 126 && said.errors.contains("Permission denied"), "\(said)")
    #expect(
      try eventually {
        let log = try fixture.shell("insula log --denied").output
        return log.contains("may not run \(fixture.bundle)/Contents/MacOS/Notes")
          && log.contains("'insula run Notes'")
      })
    // In its view it starts, by its name and by its path.
    #expect(try fixture.shell("insula run $APP").output.contains(fixture.container))
    #expect(try fixture.inside("\"\(fixture.bundle)/Contents/MacOS/Notes\"").status == 0)
    // It is a guard against mistakes: whoever can read the program can have it interpreted, or copy it.
    let around = try fixture.shell(
      """
      cd /tmp && HOME=$DATA sh "$BUNDLE/Contents/MacOS/Notes" > /dev/null; echo $?
      copy=$(mktemp -d); cp -r "$BUNDLE" $copy
      HOME=$DATA $copy/Notes.app/Contents/MacOS/Notes > /dev/null; echo $?
      rm -r $copy
      test -x "$BUNDLE/Contents/MacOS/Notes"; echo $?
      """)
    #expect(around.output == "0\n0\n0\n", "\(around)")
  }

  @Test func rootDoesNotStartItEither() throws {
    let fixture = try RunFixture(entitlements: Self.sandboxed)
    let result = try fixture.shell(Self.ways, as: RunFixture.root)
    #expect(result.output.split(separator: "\n").count == 5 && starts(result.output).isEmpty, "\(result)")
  }

  @Test(arguments: [false, true])
  func otherAppsStartAnywhere(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let seven = try program(in: fixture.mounted.temporary)
    try fixture.install("Seven", executable: seven)
    let way = "BUNDLE=$POINT/Applications/Seven.app; \"$BUNDLE/Contents/MacOS/Seven\"; echo $?"
    #expect(try fixture.shell(way).output == "7\n")
    let no = "<key>com.apple.security.app-sandbox</key><false/>"
    try fixture.install("Eight", entitlements: no, executable: seven)
    #expect(try fixture.shell(way.replacingOccurrences(of: "Seven", with: "Eight")).output == "7\n")
    try fixture.install("Nine", entitlements: Self.sandboxed, executable: seven)
    #expect(try fixture.shell(way.replacingOccurrences(of: "Seven", with: "Nine")).output == "126\n")
  }

  /// An app of a phone's shape is sandboxed, whatever its entitlements say; at its update, too.
  @Test(arguments: [false, true])
  func appsForPhonesStartInTheirViewsAlone(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let no = "<key>com.apple.security.app-sandbox</key><false/>"
    for (name, entitlements) in [("Flat", nil), ("Flatter", no)] as [(String, String?)] {
      try fixture.install(name, entitlements: entitlements, options: ["--flat"])
      let direct = try fixture.shell("\"$POINT/Applications/\(name).app/\(name)\" 2> /dev/null; echo $?")
      #expect(direct.output == "126\n", "\(direct)")
      let inside = try fixture.shell("insula run org.example.\(name.lowercased())")
      #expect(inside.status == 0 && inside.output.contains("/Data"), "\(inside)")
    }
    // So is one that says that it requires a phone.
    let requires = "<key>LSRequiresIPhoneOS</key><true/>"
    try fixture.install("Phone", info: requires, executable: try program(in: fixture.mounted.temporary))
    let direct = try fixture.shell(
      "\"$POINT/Applications/Phone.app/Contents/MacOS/Phone\" 2> /dev/null; echo $?")
    #expect(direct.output == "126\n", "\(direct)")
  }

  @Test func storeMayLetThemStart() throws {
    let fixture = try RunFixture(entitlements: Self.sandboxed, initOptions: ["--allow-direct-start"])
    let seven = try program(in: fixture.mounted.temporary)
    try fixture.install("Seven", entitlements: Self.sandboxed, executable: seven)
    let way = "\"$POINT/Applications/Seven.app/Contents/MacOS/Seven\"; echo $?"
    #expect(try fixture.shell(way).output == "7\n")
    let status = try fixture.shell("\"$INSULA\" status \"$POINT\"")
    let row = status.output.split(separator: "\n").first { $0.hasPrefix("  direct start ") }
    #expect(row?.hasSuffix(" yes") == true, "\(status)")
  }

  /// What is in it is read, mapped and loaded as ever, also while somebody has it open.
  @Test(arguments: [false, true])
  func librariesOfItAreLoaded(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    try fixture.install("Shared", entitlements: Self.sandboxed, executable: "/bin/true")
    let script = """
      program=$POINT/Applications/Shared.app/Contents/MacOS/Shared
      python3 -c 'import mmap, os, sys
      f = os.open(sys.argv[1], os.O_RDONLY)
      m = mmap.mmap(f, 0, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
      print(m[1:4] == b"ELF", os.pread(f, 4, 0)[1:] == b"ELF")
      try: os.execv(sys.argv[1], ["x"])
      except PermissionError: print("refused")' "$program"
      cmp "$program" /bin/true && echo same
      """
    #expect(try fixture.shell(script).output == "True True\nrefused\nsame\n")
  }

  /// It follows the version that is installed, and survives the process that serves.
  @Test func updateDecidesAnew() throws {
    let fixture = try RunFixture()
    let seven = try program(in: fixture.mounted.temporary)
    let way = "\"$POINT/Applications/Seven.app/Contents/MacOS/Seven\"; echo $?"
    try fixture.install("Seven", executable: seven)
    #expect(try fixture.shell(way).output == "7\n")
    try fixture.succeed("uninstall", "org.example.seven", "--store", fixture.mounted.store)
    try FileManager.default.removeItem(atPath: fixture.mounted.temporary.appending("store/Seven-made"))
    try fixture.install("Seven", entitlements: Self.sandboxed, executable: seven)
    #expect(try fixture.shell(way).output == "126\n")
    try fixture.succeed("restart", fixture.mounted.point)
    #expect(try fixture.shell(way).output == "126\n")
    #expect(try fixture.shell("insula run org.example.seven").status == 7)
  }

  /// So it is with all that is in its bundle.
  @Test func helpersOfItAreGuardedToo() throws {
    let fixture = try RunFixture()
    try fixture.install("Outer", entitlements: Self.sandboxed, executable: "/bin/true") { bundle in
      try Data("#!/bin/sh\nexit 7\n".utf8).write(
        to: URL(fileURLWithPath: "\(bundle)/Contents/Resources/helper"))
      chmod("\(bundle)/Contents/Resources/helper", 0o755)
    }
    let helper = "$POINT/Applications/Outer.app/Contents/Resources/helper"
    #expect(try fixture.shell("\(helper); echo $?").output == "126\n")
    #expect(try fixture.shell("insula run org.example.outer -- \(helper); echo $?").output == "7\n")
  }
}
