// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite struct ServedContentsTests {
  private func contents(
    _ bundle: SignedTestBundle, _ name: String = "Note.app", installed: InstalledDigest? = nil
  ) throws -> BundleContents {
    let installed = try installed ?? .digests([bundle.open(name).sealDigest()])
    let root = try TemporaryDirectory.open(bundle.directory.appending(name))
    return try BundleContents(in: root.fd, installed: installed)
  }

  /// The position of what lies at a path, found name by name.
  private func position(
    _ path: String, _ type: FileMode, in contents: BundleContents
  ) throws -> SealedPosition {
    var names = path.split(separator: "/").map { Array($0.utf8) }
    let last = names.removeLast()
    var position = SealedPosition.root
    for name in names {
      position = try name.withUnsafeBufferPointer {
        try contents.position(of: $0, type: S_IFDIR, in: position)
      }
    }
    return try last.withUnsafeBufferPointer { try contents.position(of: $0, type: type, in: position) }
  }

  private func kind(_ path: String, _ type: FileMode, in contents: BundleContents) -> Finding.Kind? {
    finding { _ = try position(path, type, in: contents) }?.kind
  }

  @Test(arguments: [CodeBundle.Shape.contents, .flat])
  func knowsAllThatIsSealed(shape: CodeBundle.Shape) throws {
    let bundle = try SignedTestBundle(shape: shape)
    try bundle.sign()
    let contents = try contents(bundle)
    let base = shape == .contents ? "Contents/" : ""
    let resources = shape == .contents ? "Contents/Resources/" : ""
    for path in [
      base + "Info.plist", base + (shape == .contents ? "MacOS/note" : "note"), resources + "page.html",
      resources + "en.lproj/words.txt", base + "_CodeSignature/CodeDirectory",
      base + "_CodeSignature/CodeResources", base + "_CodeSignature/CodeSignature",
    ] {
      let found = try position(path, S_IFREG, in: contents)
      #expect(contents.isSealed(found) && contents.path(of: found) == path)
      let file = try bundle.directory.appending("Note.app/\(path)").withName { (name) throws(Errno) in
        try FD.cwd.openFollowing(name, O_RDONLY)
      }
      #expect(contents.finding(in: file.fd, at: found) == nil, "\(path)")
      // Any other file's bytes are not these.
      let other = try "/proc/self/stat".withName { (name) throws(Errno) in
        try FD.cwd.openFollowing(name, O_RDONLY)
      }
      #expect(contents.finding(in: other.fd, at: found) != nil, "\(path)")
      #expect(kind(path, S_IFDIR, in: contents) == .typeChanged)
      #expect(kind(path, S_IFLNK, in: contents) == .typeChanged)
    }
    let link = try position(resources + "first.html", S_IFLNK, in: contents)
    for (target, isGood) in [("page.html", true), ("page.htm", false), ("", false), ("../page.html", false)] {
      let finding = Array(target.utf8).withUnsafeBytes { contents.finding(target: $0, at: link) }
      #expect((finding == nil) == isGood)
    }
  }

  @Test func knowsWhatIsNotSealed() throws {
    let bundle = try SignedTestBundle()
    try bundle.sign()
    let contents = try contents(bundle)
    let base = "Contents/"
    for (path, type, expected) in [
      (base + "Resources/new", S_IFREG, .added), (base + "Resources/new", S_IFLNK, .added),
      (base + "new", S_IFREG, .added), ("new", S_IFREG, .unsealedRoot), ("new", S_IFDIR, .unsealedRoot),
      (base + "_CodeSignature/new", S_IFREG, .guestInSignature),
      (base + "Resources/new", S_IFIFO, .specialFile), (base + "Resources/new", S_IFCHR, .specialFile),
      (base + "PlugIns/New.bundle", S_IFDIR, .added), (base + "Resources/\u{7}", S_IFREG, .badName),
      (base + "Resources/a\tb", S_IFREG, .badName), (base + "Resources/a\u{9b}b", S_IFREG, .badName),
      ("Icon\r", S_IFREG, nil),
      (base + "Resources/.DS_Store", S_IFLNK, .badSymlink), (base + "Resources/empty/new", S_IFREG, .added),
      (base + "Resources/.DS_Store", S_IFREG, nil), (base + "PkgInfo", S_IFREG, nil),
      (".DS_Store", S_IFREG, nil),
      (base + "Resources/empty", S_IFDIR, nil), (base + "Resources/empty/.DS_Store", S_IFREG, nil),
      (base + "_MASReceipt/receipt", S_IFREG, nil),
    ] as [(String, mode_t, Finding.Kind?)] {
      #expect(kind(path, type, in: contents) == expected, "\(path)")
    }
  }

  @Test func knowsWhatIsMissing() throws {
    let bundle = try SignedTestBundle()
    try bundle.sign()
    let contents = try contents(bundle)
    func absence(_ name: String, in directory: SealedPosition) -> Finding? {
      Array(name.utf8).withUnsafeBufferPointer { contents.absence(of: $0, in: directory) }
    }
    let resources = try position("Contents/Resources", S_IFDIR, in: contents)
    #expect(absence("Contents", in: .root)?.kind == .missing)
    #expect(absence("page.html", in: resources) == Finding(.missing, "Contents/Resources/page.html"))
    // Languages may be taken away, as a whole too.
    #expect(absence("en.lproj", in: resources) == nil)
    #expect(absence("nothing", in: resources) == nil)
  }

  @Test func bundlesInsideHaveSealsOfTheirOwn() throws {
    let bundle = try SignedTestBundle()
    try bundle.sign()
    let outer = try contents(bundle)
    let place = "Contents/PlugIns/Help.bundle"
    let nested = try #require(outer.nested(at: try position(place, S_IFDIR, in: outer)))
    let inner = try contents(bundle, "Note.app/\(place)", installed: .nested(nested))
    #expect(inner.isSealed(try position("Contents/MacOS/help", S_IFREG, in: inner)))
    let deep = try #require(
      inner.nested(at: try position("Contents/PlugIns/Deep.bundle", S_IFDIR, in: inner)))
    _ = try contents(bundle, "Note.app/\(place)/Contents/PlugIns/Deep.bundle", installed: .nested(deep))
    // Neither is the other.
    #expect(
      finding { _ = try contents(bundle, "Note.app/\(place)", installed: .nested(deep)) }?.kind
        == .nestedRejected)
  }

  @Test(arguments: [
    "CodeDirectory", "CodeSignature", "CodeResources", "CodeEntitlements", "CodeRequirements",
  ])
  func pinHoldsAllParts(part: String) throws {
    let bundle = try SignedTestBundle()
    try bundle.sign()
    let installed = InstalledDigest.digests([try bundle.open().sealDigest()])
    _ = try contents(bundle, installed: installed)
    if part == "CodeRequirements" {
      try bundle.write([1], toPart: part)
    } else {
      var bytes = try bundle.part(part)
      bytes[bytes.count / 2] ^= 1
      try bundle.write(bytes, toPart: part)
    }
    #expect(finding { _ = try contents(bundle, installed: installed) } != nil)
  }

  @Test func sandboxIsAMatterOfTheEntitlement() throws {
    let key = "com.apple.security.app-sandbox"
    for (entitlements, isSandboxed) in [
      (SignedTestBundle.text([key: "<true/>"]), true), (SignedTestBundle.text([key: "<false/>"]), false),
      (SignedTestBundle.text([:]), false), (nil, false),
      (SignedTestBundle.text([key: "<string>no</string>"]), true),
    ] as [(String?, Bool)] {
      let bundle = try SignedTestBundle()
      try bundle.sign(entitlements: entitlements)
      #expect(try contents(bundle).isSandboxed == isSandboxed, "\(entitlements ?? "none")")
    }
  }

  /// What the entitlements say makes no difference to an app for phones.
  @Test func appsForPhonesAreAlwaysSandboxed() throws {
    let no = SignedTestBundle.text(["com.apple.security.app-sandbox": "<false/>"])
    let flat = try SignedTestBundle(shape: .flat)
    func requiring(_ value: String) throws -> SignedTestBundle {
      let bundle = try SignedTestBundle()
      let info = SignedTestBundle.info("org.example.note", executable: "note")
      try bundle.make(
        "Note.app/Contents/Info.plist",
        info.replacing("</dict>", with: "<key>LSRequiresIPhoneOS</key>\(value)</dict>"))
      return bundle
    }
    for (bundle, isSandboxed) in [
      (flat, true), (try requiring("<true/>"), true), (try requiring("<false/>"), false),
    ] {
      for entitlements in [no, nil] {
        try bundle.sign(entitlements: entitlements)
        #expect(try contents(bundle).isSandboxed == isSandboxed, "\(entitlements ?? "none")")
      }
    }
  }

  /// A tree of many paths answers as a dictionary does.
  @Test func treeKnowsItsPathsAndNoOthers() throws {
    var random = SeededRandom(seed: 4)
    var builder = SealedTree.Builder()
    var model: [String: (kind: SealedTree.Kind, payload: [UInt8])] = [:]
    for number in 0..<5000 {
      let depth = Int.random(in: 0...4, using: &random)
      let above = (0..<depth).map { _ in "d\(Int.random(in: 0..<6, using: &random))" }
      let path = (above + ["f\(number)"]).joined(separator: "/")
      let payload = Array("\(number)".utf8)
      try builder.add(path, .file, isOptional: false, payload: payload)
      model[path] = (.file, payload)
    }
    let tree = try builder.tree()
    func find(_ path: String) -> UInt32? {
      var number: UInt32? = 0
      for name in path.split(separator: "/") {
        number = number.flatMap { directory in
          Array(name.utf8).withUnsafeBufferPointer { tree.find($0, in: directory) }
        }
      }
      return number
    }
    for (path, expected) in model {
      let number = try #require(find(path), "\(path)")
      #expect(tree.kind(of: number) == expected.kind && tree.path(of: number) == path)
      #expect(tree.payload(of: number).elementsEqual(expected.payload))
      #expect(find(path + "x") == nil && find(path + "/x") == nil && find("x" + path) == nil)
    }
    #expect(tree.kind(of: .max) == nil && tree.find(UnsafeBufferPointer(start: nil, count: 0), in: 0) == nil)
  }

  @Test func pathThatIsTwoThingsIsRefused() throws {
    var builder = SealedTree.Builder()
    try builder.add("a", .file, isOptional: false, payload: [1])
    try builder.add("a/b", .file, isOptional: false, payload: [1])
    let made = builder
    #expect(finding { _ = try made.tree() }?.kind == .malformedCodeResources)
  }
}
