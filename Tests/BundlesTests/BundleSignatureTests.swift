// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import PropertyLists
internal import TestSupport
internal import Testing

/// Whole bundles, signed and verified.
@Suite struct BundleSignatureTests {
  @Test(arguments: [CodeBundle.Shape.contents, .flat])
  func signedBundleIsGood(shape: CodeBundle.Shape) throws {
    let bundle = try SignedTestBundle(shape: shape, hasPlugIns: shape == .contents)
    let seal = try bundle.sign()
    let verification = try bundle.verify()
    #expect(verification.findings == [], "\(verification.findings.map(\.message))")
    #expect(verification.isGood)
    #expect(verification.signer?.name == "Someone")
    #expect(verification.directory?.identifier == "org.example.note")
    #expect(verification.directory?.team == "TEAM1")
    #expect(verification.entitlements["com.apple.security.app-sandbox"]?.boolean == true)
    #expect(verification.cdhash == seal.cdhash)
    #expect(seal.cdhash.count == 20)
    #expect(Requirement(seal.requirement) == Requirement(identifier: "org.example.note", team: "TEAM1"))
  }

  @Test func bundleWithoutEntitlementsHasNone() throws {
    let bundle = try SignedTestBundle()
    try bundle.sign(entitlements: nil)
    let verification = try bundle.verify()
    #expect(verification.isGood)
    #expect(verification.entitlements.entries.isEmpty)
    #expect(verification.directory?.digests[.entitlements] == nil)
  }

  /// From the inside out, each with the seal of those in it; what they were entitled to stays.
  @Test func bundlesInsideAreSignedFirst() throws {
    let bundle = try SignedTestBundle()
    try bundle.sign("Note.app/Contents/PlugIns/Help.bundle")
    try bundle.sign(entitlements: nil)
    #expect(try bundle.verify().isGood)
    let help = try bundle.verify("Note.app/Contents/PlugIns/Help.bundle")
    #expect(help.isGood)
    #expect(help.entitlements.entries.count == 1)
    #expect(try bundle.verify("Note.app/Contents/PlugIns/Help.bundle/Contents/PlugIns/Deep.bundle").isGood)
    let sealed = try ResourceSeal(reading: bundle.part("CodeResources"))
    let nested = sealed.entries.compactMap { entry in
      if case .nested(let seal) = entry.content { return (entry.path, seal) }
      return nil
    }
    #expect(nested.map(\.0) == ["PlugIns/Help.bundle"])
    #expect(nested.first?.1.cdhash == help.cdhash)
  }

  @Test func signingAgainLeavesNothingOfTheOldSignature() throws {
    let bundle = try SignedTestBundle()
    try bundle.sign()
    try bundle.write([1], toPart: "Stranger")
    // What a signing that was stopped leaves behind.
    try bundle.make("Note.app/Contents/.CodeSignature.new/CodeDirectory", "half")
    #expect(
      try bundle.findings()
        == ["added Contents/.CodeSignature.new", "guestInSignature Contents/_CodeSignature/Stranger"])
    try bundle.sign(entitlements: nil)
    #expect(try bundle.findings() == [])
    #expect(
      try bundle.directory.names(in: "Note.app/Contents/_CodeSignature")
        == ["CodeDirectory", "CodeResources", "CodeSignature"])
    #expect(
      try bundle.directory.names(in: "Note.app/Contents")
        == ["Info.plist", "MacOS", "PlugIns", "Resources", "_CodeSignature"])
  }

  /// Others may be able to rename what is in a bundle, and to give that name to what they can't remove.
  @Test func othersThingsAreNotRemovedByTheirName() throws {
    let bundle = try SignedTestBundle()
    try bundle.sign()
    try bundle.make("Note.app/Contents/.CodeSignature.new/thesis", "of somebody else")
    try bundle.make("Note.app/Contents/.CodeSignature.new/years/work", "of somebody else")
    #expect(
      throws: SigningFailure.notWritten(path: "Note.app/Contents/.CodeSignature.new", errno: .ENOTEMPTY)
    ) { try bundle.sign() }
    #expect(
      try bundle.directory.names(in: "Note.app/Contents/.CodeSignature.new").sorted() == ["thesis", "years"])
    #expect(bundle.directory.text(of: "Note.app/Contents/.CodeSignature.new/years/work") != nil)
  }

  /// Larger than anybody could read: it is known by its size.
  @Test(.mayTake(seconds: 600))
  func executableOfHolesIsNotReadToItsEnd() throws {
    let bundle = try SignedTestBundle(hasPlugIns: false)
    try bundle.sign()
    try #require(truncate(bundle.directory.appending("Note.app/Contents/MacOS/note"), 8 << 40) == 0)
    #expect(try bundle.findings() == ["executableAltered Contents/MacOS/note"])
  }

  @Test func whatCanNotBeSealedIsNotSigned() throws {
    let bundle = try SignedTestBundle()
    symlink("/nonexistent/outside", bundle.directory.appending("Note.app/Contents/Resources/out"))
    let failure = #expect(throws: SigningFailure.self) { try bundle.sign() }
    guard case .refused(let findings) = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    #expect(findings.map { "\($0.kind) \($0.path)" } == ["badSymlink Contents/Resources/out"])
    #expect(try bundle.findings() == ["unsigned "])
  }

  @Test func badEntitlementsAreNotSigned() throws {
    let bundle = try SignedTestBundle(hasPlugIns: false)
    for text in ["", "<plist><string>a</string></plist>"] {
      let failure = #expect(throws: SigningFailure.self) { try bundle.sign(entitlements: text) }
      #expect(failure?.description.contains("the entitlements can't be read") == true)
    }
    #expect(try bundle.findings() == ["unsigned "])
  }

  @Test func expiredIdentityDoesNotSign() throws {
    let bundle = try SignedTestBundle(hasPlugIns: false)
    let failure = #expect(throws: SigningFailure.self) {
      try bundle.open().sign(as: bundle.identity(), entitlements: nil, at: testTime + 2 * day)
    }
    #expect(failure?.description.contains("is valid until 2027-01-16") == true)
    #expect(try bundle.findings() == ["unsigned "])
  }

  /// Each way to tamper with a signed bundle, and all that is found.
  static let tampering: [(findings: [String], tamper: @Sendable (SignedTestBundle) throws -> Void)] = [
    (["unsigned "], { try $0.remove("_CodeSignature") }),
    (["malformedCodeDirectory "], { try $0.remove("_CodeSignature/CodeDirectory") }),
    (["malformedSignature "], { try $0.remove("_CodeSignature/CodeSignature") }),
    (["malformedCodeDirectory "], { try $0.write([1, 2, 3], toPart: "CodeDirectory") }),
    (["malformedSignature "], { try $0.write([1, 2, 3], toPart: "CodeSignature") }),
    (
      ["signatureMismatch "],
      { try $0.write(TestAuthority().signer().signature(of: [1]), toPart: "CodeSignature") }
    ),
    (
      ["untrusted "],
      {
        let signature = try TestAuthority().signer().signature(of: $0.part("CodeDirectory"))
        try $0.write(signature, toPart: "CodeSignature")
      }
    ),
    (
      ["expired "],
      {
        let signer = try $0.authority.signer { $0.validUntil = testTime - 1 }
        try $0.write(signer.signature(of: $0.part("CodeDirectory")), toPart: "CodeSignature")
      }
    ),
    (
      ["notYetValid "],
      {
        let signer = try $0.authority.signer { $0.validFrom = testTime + 1 }
        try $0.write(signer.signature(of: $0.part("CodeDirectory")), toPart: "CodeSignature")
      }
    ),
    (
      ["wrongPurpose "],
      {
        let signer = try $0.authority.signer { $0.extendedKeyUsage = "serverAuth" }
        try $0.write(signer.signature(of: $0.part("CodeDirectory")), toPart: "CodeSignature")
      }
    ),
    (["teamMismatch "], { try $0.signAgain { $0.team = "TEAM2" } }),
    (["teamMismatch "], { try $0.signAgain { $0.team = nil } }),
    (["otherBundle "], { try $0.signAgain { $0.identifier = "org.example.other" } }),
    (
      ["otherBundle ", "infoPlistAltered Contents/Info.plist"],
      {
        try $0.make(
          "Note.app/Contents/Info.plist", SignedTestBundle.info("org.example.other", executable: "note"))
      }
    ),
    (
      ["infoPlistAltered Contents/Info.plist"],
      {
        let text = SignedTestBundle.info("org.example.note", executable: "note")
        try $0.make("Note.app/Contents/Info.plist", text + "\n")
      }
    ),
    (
      ["codeResourcesAltered Contents/_CodeSignature/CodeResources"],
      { try $0.write($0.part("CodeResources") + [10], toPart: "CodeResources") }
    ),
    (
      ["noCodeResources Contents/_CodeSignature/CodeResources"],
      { try $0.remove("_CodeSignature/CodeResources") }
    ),
    (
      ["entitlementsAltered Contents/_CodeSignature/CodeEntitlements"],
      { try $0.write($0.part("CodeEntitlements") + [10], toPart: "CodeEntitlements") }
    ),
    (
      ["entitlementsAltered Contents/_CodeSignature/CodeEntitlements"],
      { try $0.remove("_CodeSignature/CodeEntitlements") }
    ),
    (
      ["entitlementsAltered Contents/_CodeSignature/CodeEntitlements"],
      {
        try $0.sign(entitlements: nil)
        try $0.write(Array(SignedTestBundle.entitlements.utf8), toPart: "CodeEntitlements")
      }
    ),
    (
      ["badEntitlements "],
      {
        let text = Array("<plist><array/></plist>".utf8)
        try $0.write(text, toPart: "CodeEntitlements")
        try $0.signAgain { $0.digests[.entitlements] = try? Digest.whole(text) }
      }
    ),
    (
      ["guestInSignature Contents/_CodeSignature/CodeRequirements"],
      { try $0.write([1], toPart: "CodeRequirements") }
    ),
    (
      ["malformedCodeDirectory "],
      { try $0.signAgain { $0.digests[.requirements] = CodeDirectoryTests.digest(1) } }
    ),
    (
      ["executableAltered Contents/MacOS/note"],
      { try $0.make("Note.app/Contents/MacOS/note", "#!/bin/sh\necho fake\n") }
    ),
    (
      ["executableAltered Contents/MacOS/note"],
      { try $0.make("Note.app/Contents/MacOS/note", "#!/bin/sh\necho note\n\n") }
    ),
    (["executableAltered Contents/MacOS/note"], { try $0.make("Note.app/Contents/MacOS/note", "") }),
    (["changed Contents/Resources/page.html"], { try $0.make("Note.app/Contents/Resources/page.html", "x") }),
    // Bundles inside.
    (
      ["nestedUnsigned Contents/PlugIns/Help.bundle"],
      { try $0.remove("PlugIns/Help.bundle/Contents/_CodeSignature") }
    ),
    (
      ["executableAltered Contents/PlugIns/Help.bundle/Contents/MacOS/help"],
      { try $0.make("Note.app/Contents/PlugIns/Help.bundle/Contents/MacOS/help", "") }
    ),
    (
      ["executableAltered Contents/PlugIns/Help.bundle/Contents/PlugIns/Deep.bundle/deep"],
      { try $0.make("Note.app/Contents/PlugIns/Help.bundle/Contents/PlugIns/Deep.bundle/deep", "") }
    ),
    (
      ["nestedRejected Contents/PlugIns/Help.bundle"],
      {
        // Signed by the same hand, and another version.
        try $0.make("Note.app/Contents/PlugIns/Help.bundle/Contents/MacOS/help", "new")
        try $0.sign("Note.app/Contents/PlugIns/Help.bundle", entitlements: nil)
      }
    ),
    (
      ["nestedRejected Contents/PlugIns/Help.bundle"],
      { try $0.sealAgain { $0.replacing("TEAM1", with: "TEAM2") } }
    ),
    (
      ["nestedRejected Contents/PlugIns/Help.bundle"],
      { try $0.sealAgain { $0.replacing("org.example.help", with: "org.example.hope") } }
    ),
    (
      ["nestedRejected Contents/PlugIns/Help.bundle"],
      { try $0.sealAgain { $0.replacing("and certificate", with: "or certificate") } }
    ),
  ]

  @Test(arguments: tampering.indices)
  func tamperingIsFound(index: Int) throws {
    let (findings, tamper) = Self.tampering[index]
    let bundle = try SignedTestBundle()
    try bundle.sign()
    #expect(try bundle.findings() == [])
    try tamper(bundle)
    #expect(try bundle.findings() == findings)
    #expect(try !bundle.verify().isGood)
    for finding in try bundle.verify().findings { #expect(finding.message.contains("[-")) }
  }

  /// Someone may have signed a bundle of his, and put the signature on ours.
  @Test func signatureOfAnotherBundleIsFound() throws {
    let bundle = try SignedTestBundle(hasPlugIns: false)
    try bundle.make(
      "Other.app/Contents/Info.plist", SignedTestBundle.info("org.example.other", executable: "other"))
    try bundle.make("Other.app/Contents/MacOS/other", "#!/bin/sh\n")
    try bundle.sign("Other.app", entitlements: nil)
    rename(
      bundle.directory.appending("Other.app/Contents/_CodeSignature"),
      bundle.directory.appending("Note.app/Contents/_CodeSignature"))
    #expect(try bundle.verify().findings.first?.kind == .otherBundle)
    #expect(
      try bundle.verify().findings.first?.detail
        == "it belongs to 'org.example.other', but the bundle is 'org.example.note'")
  }

  /// No bit of any part of a signature, of Info.plist or of the executable can be turned without notice.
  @Test(arguments: [
    "CodeDirectory", "CodeSignature", "CodeResources", "CodeEntitlements", "Info.plist", "note",
  ])
  func everyBitCounts(part: String) throws {
    let bundle = try SignedTestBundle(hasPlugIns: false)
    try bundle.sign()
    let place =
      switch part {
      case "Info.plist": part
      case "note": "MacOS/note"
      default: "_CodeSignature/\(part)"
      }
    let path = bundle.directory.appending("Note.app/Contents/\(place)")
    let original = try bundle.bytes(of: path)
    let file = try path.withName { (name) throws(Errno) in try FD.cwd.openFollowing(name, O_WRONLY) }
    // All bits of the larger parts take a minute; where nobody asked for it, some of them.
    let isThorough = getenv("INSULA_FUZZ") != nil
    var tolerated: [Int] = []
    for bit in 0..<original.count * 8 where isThorough || bit % 11 == 0 {
      var byte = original[bit / 8] ^ 1 << UInt8(bit % 8)
      _ = try withUnsafeBytes(of: &byte) { try file.fd.write($0, at: Int64(bit / 8)) }
      // An Info.plist that is none any more is no bundle's.
      if let verification = try? bundle.verify(), verification.isGood { tolerated.append(bit) }
      byte = original[bit / 8]
      _ = try withUnsafeBytes(of: &byte) { try file.fd.write($0, at: Int64(bit / 8)) }
    }
    #expect(tolerated == [])
    #expect(try bundle.findings() == [])
  }

  @Test func bundleMadeByHandIsGood() throws {
    let directory = try TemporaryDirectory()
    try HandMadeBundle.make(in: directory)
    let opened = try directory.open()
    let root = try Certificate.all(inPEM: opened.fd.contents(of: "root.pem", limit: 1 << 16))
    let bundle = try CodeBundle(
      in: TemporaryDirectory.open(directory.appending("Hand.app")), name: "Hand.app")
    let verification = bundle.verify(Trust(roots: root), at: Int64(time(nil)) + 60, includingStrangers: true)
    #expect(verification.findings == [], "\(verification.findings.map(\.message))")
    #expect(verification.signer?.team == "HAND000001")
    #expect(verification.entitlements["com.apple.security.app-sandbox"]?.boolean == true)
    try directory.write("<p>Another page.</p>\n", to: "Hand.app/Contents/Resources/page.html")
    let after = bundle.verify(Trust(roots: root), at: Int64(time(nil)) + 60, includingStrangers: true)
    #expect(after.findings.map(\.kind) == [.changed])
  }
}

extension SignedTestBundle {
  fileprivate func remove(_ place: String) throws {
    let base = try TemporaryDirectory.open(directory.appending("Note.app/Contents"))
    let names = place.split(separator: "/").map(String.init)
    var above = try base.fd.duplicated()
    for name in names.dropLast() {
      let fd = above.fd
      above = try name.withName { (name) throws(Errno) in try fd.openDirectory(name) }
    }
    try names.last?.withName { (name) throws(Errno) in try above.fd.removeTree(name) }
  }

  /// Changes the text of CodeResources, and signs that.
  fileprivate func sealAgain(_ change: (String) -> String) throws {
    let text = String(decoding: try part("CodeResources"), as: UTF8.self)
    let changed = change(text)
    #expect(changed != text)
    try write(Array(changed.utf8), toPart: "CodeResources")
    try signAgain { $0.digests[.resources] = try? Digest.whole(Array(changed.utf8)) }
  }
}
