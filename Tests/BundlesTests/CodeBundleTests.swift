// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import PropertyLists
internal import TestSupport
internal import Testing

@Suite struct CodeBundleTests {
  private func kind(_ body: () throws -> Void) -> Finding.Kind? {
    do {
      try body()
      return nil
    } catch {
      return (error as? Finding)?.kind
    }
  }

  @Test(
    arguments: [
      ("org.example.app", nil), ("a", nil), ("A-1.b", nil), (String(repeating: "a", count: 200), nil),
      ("", .badIdentifier), ("a/b", .badIdentifier), ("..", .badIdentifier), (".", .badIdentifier),
      (".a", .badIdentifier), ("a.", .badIdentifier),
      ("a..b", .badIdentifier), ("a b", .badIdentifier), ("ä", .badIdentifier), ("a_b", .badIdentifier),
      ("a\u{0}", .badIdentifier),
      (String(repeating: "a", count: 201), .badIdentifier),
    ] as [(String, Finding.Kind?)])
  func identifiersAreNames(identifier: String, expected: Finding.Kind?) {
    #expect(kind { try BundleInfo.checkIdentifier(identifier) } == expected)
  }

  @Test(
    arguments: [
      ("test", nil), ("", .badExecutable), (".", .badExecutable), ("..", .badExecutable),
      ("../test", .badExecutable), ("/bin/sh", .badExecutable),
      ("a/b", .badExecutable), ("missing", .badExecutable), ("Resources", .badExecutable),
      (String(repeating: "a", count: 256), .badExecutable),
    ] as [(String, Finding.Kind?)])
  func executablesAreInTheBundle(name: String, expected: Finding.Kind?) throws {
    for shape in [.contents, .flat] as [CodeBundle.Shape] {
      let bundle = try TestBundle(shape)
      mkdir(bundle.base + (shape == .contents ? "/MacOS/Resources" : "/Resources"), 0o755)
      try TestBundle.write(
        Array(TestBundle.infoPlist("org.example.test", executable: name).utf8),
        to: bundle.base + "/Info.plist")
      #expect(kind { _ = try TestBundle.open(bundle.path) } == expected)
    }
  }

  @Test func linksAreNoExecutablesAndNoInfoPlists() throws {
    for (path, expected) in [("MacOS/test", Finding.Kind.badExecutable), ("Info.plist", .badInfoPlist)] {
      let bundle = try TestBundle(.contents)
      rename(bundle.base + "/" + path, bundle.base + "/Resources/moved")
      symlink(bundle.base + "/Resources/moved", bundle.base + "/" + path)
      #expect(kind { _ = try TestBundle.open(bundle.path) } == expected)
    }
    let bundle = try TestBundle(.contents)
    rename(bundle.base + "/MacOS", bundle.base + "/Other")
    symlink("Other", bundle.base + "/MacOS")
    #expect(kind { _ = try TestBundle.open(bundle.path) } == .badExecutable)
  }

  @Test func fifosStopNobody() throws {
    for path in ["MacOS/test", "Info.plist", "_CodeSignature/CodeResources"] {
      let bundle = try TestBundle(.contents)
      try bundle.sign()
      unlink(bundle.base + "/" + path)
      mkfifo(bundle.base + "/" + path, 0o644)
      #expect(!bundle.findings().isEmpty)
    }
  }

  @Test func directoriesThatAreNoBundlesAreRefused() throws {
    let empty = try TemporaryDirectory()
    #expect(kind { _ = try TestBundle.open(empty.path) } == .notABundle)
    let both = try TestBundle(.contents)
    try TestBundle.write([], to: both.path + "/Info.plist")
    #expect(kind { _ = try TestBundle.open(both.path) } == .ambiguousShape)
    let linked = try TestBundle(.contents)
    rename(linked.path + "/Contents", linked.path + "/Other")
    symlink("Other", linked.path + "/Contents")
    #expect(kind { _ = try TestBundle.open(linked.path) } == .notABundle)
  }

  @Test func appsNeedAnExecutableAndOthersDoNot() throws {
    for (name, expected) in [("Test.app", Finding.Kind.noExecutable), ("Test.bundle", nil)] {
      let bundle = try TestBundle(.flat, name: name)
      try TestBundle.write(
        Array(TestBundle.infoPlist("org.example.test", executable: nil).utf8), to: bundle.base + "/Info.plist"
      )
      #expect(kind { _ = try TestBundle.open(bundle.path) } == expected)
    }
  }

  @Test(
    arguments: [
      "", "no plist", "<plist><array/></plist>",
      "<plist><dict><key>CFBundleName</key><integer>1</integer></dict></plist>",
      "<plist><dict><key>CFBundleIdentifier</key><string>a</string>"
        + "<key>CFBundleIdentifier</key><string>b</string></dict></plist>",
    ])
  func badInfoPlistsAreRefused(text: String) throws {
    let bundle = try TestBundle(.contents)
    try TestBundle.write(Array(text.utf8), to: bundle.base + "/Info.plist")
    let expected: Set<Finding.Kind> = text.contains("CFBundleName") ? [.badIdentifier] : [.badInfoPlist]
    #expect(kind { _ = try TestBundle.open(bundle.path) }.map { expected.contains($0) } == true)
  }

  /// Four gigabytes that take no disk; they are refused by their size and never read.
  @Test func hugePropertyListsAreNotRead() throws {
    let bundle = try TestBundle(.contents)
    try bundle.sign()
    for path in ["/Info.plist", "/_CodeSignature/CodeResources"] {
      let before = try TestBundle.read(bundle.base + path)
      truncate(bundle.base + path, 4 << 30)
      let findings = bundle.findings()
      #expect(findings.count == 1 && findings[0].message.contains("large"), "\(findings)")
      try TestBundle.write(before, to: bundle.base + path)
    }
    #expect(bundle.findings().isEmpty)
  }

  @Test func infoIsRead() throws {
    let info = try BundleInfo(
      reading: Array(
        """
        <plist><dict><key>CFBundleIdentifier</key><string>org.example.a</string>
        <key>CFBundleName</key><string>A</string>
        <key>CFBundleShortVersionString</key><string>2.1</string>
        <key>NSCameraUsageDescription</key><string>to see</string>
        <key>CFBundleDocumentTypes</key><array><dict>
        <key>CFBundleTypeName</key><string>Text</string>
        <key>CFBundleTypeRole</key><string>Editor</string>
        <key>CFBundleTypeExtensions</key><array><string>txt</string></array>
        <key>LSItemContentTypes</key><array><string>public.text</string></array>
        <key>LSTypeIsPackage</key><true/></dict></array></dict></plist>
        """.utf8))
    #expect(
      info.identifier == "org.example.a" && info.name == "A" && info.version == "2.1"
        && info.executable == nil)
    #expect(info.usageDescriptions.map(\.key) == ["NSCameraUsageDescription"])
    #expect(
      try info.declarations().claims == [
        .init(name: "Text", rank: .default, isPackage: true, types: ["public.text"], extensions: ["txt"])
      ])
  }

  /// Pages of 4096 bytes, the last one shorter, as the standard tools see them.
  @Test(arguments: [0, 1, 4096, 4097, 3 << 20])
  func executablesAreDigestedByPages(size: Int) throws {
    let bundle = try TestBundle(.contents)
    let path = bundle.base + "/MacOS/test"
    var random = SeededRandom(seed: 3)
    try TestBundle.write((0..<size).map { _ in UInt8(truncatingIfNeeded: random.next()) }, to: path)
    let parts = try SealedParts(of: TestBundle.open(bundle.path))
    let script = """
      import hashlib, sys
      data = open(sys.argv[1], 'rb').read()
      print(''.join(hashlib.sha256(data[at:at + 4096]).hexdigest() for at in range(0, len(data), 4096)))
      """
    let expected = try Program.run(["python3", "-c", script, path]).output.dropLast()
    let hexadecimal = parts.executablePageDigests.map {
      String($0 >> 4, radix: 16) + String($0 & 15, radix: 16)
    }
    #expect(parts.executableSize == UInt64(size) && hexadecimal.joined() == expected)
    #expect(
      parts.infoPlistDigest.count == 32 && parts.codeResourcesDigest == nil && parts.entitlementsDigest == nil
    )
    #expect(parts.identifier == "org.example.test" && parts.version == "1.2")
  }

  @Test func bundlesInBundlesAreCounted() throws {
    let bundle = try TestBundle(.flat)
    #expect(throws: Finding.self) {
      try CodeBundle(in: TemporaryDirectory.open(bundle.path), name: "x", depth: CodeBundle.depthLimit + 1)
    }
  }
}
