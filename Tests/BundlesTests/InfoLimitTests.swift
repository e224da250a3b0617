// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import PropertyLists
internal import TestSupport
internal import Testing

/// The limits of what is read before anybody knows who has signed it.
struct InfoLimitTests {
  @Test(arguments: [(0, true), (1, false)]) func infoHasASizeLimit(more: Int, isRead: Bool) throws {
    let bundle = try TestBundle(.contents)
    let path = bundle.base + "/Info.plist"
    let text = String(decoding: try TestBundle.read(path), as: UTF8.self)
    try #require(text.contains("<plist"))
    let padding = String(repeating: " ", count: BundleInfo.sizeLimit - text.utf8.count + more)
    try TestBundle.write(Array((text + padding).utf8), to: path)
    do {
      _ = try TestBundle.open(bundle.path)
      #expect(isRead)
    } catch let error as Finding {
      #expect(!isRead && error.kind == .badInfoPlist && error.message.contains("large"), "\(error.message)")
    }
  }

  /// In both forms: in the binary one, 9 bytes can stand for thousands of values.
  @Test(arguments: [(0, true), (1, false)], [false, true])
  func infoHasAValueLimit(_ limit: (more: Int, isRead: Bool), isBinary: Bool) throws {
    // The dictionary, the identifier and the array are values too; in the binary form, so are the two keys.
    let count = BundleInfo.valueLimit - (isBinary ? 5 : 3) + limit.more
    let text =
      "<plist><dict><key>CFBundleIdentifier</key><string>org.example.a</string><key>a</key><array>"
      + String(repeating: "<true/>", count: count) + "</array></dict></plist>"
    let list = try PropertyList(reading: Array(text.utf8))
    let bytes = isBinary ? try list.binary() : Array(text.utf8)
    do throws(Finding) {
      _ = try BundleInfo(reading: bytes)
      #expect(limit.isRead)
    } catch {
      #expect(!limit.isRead && error.kind == .badInfoPlist && error.message.contains("too many values"))
    }
  }

  private func sign(_ bundle: SignedTestBundle, seal: [UInt8]) throws {
    try bundle.sign()
    try bundle.write(seal, toPart: "CodeResources")
    let digest = try Digest.whole(seal)
    try bundle.signAgain { $0.digests[.resources] = digest }
  }

  /// A seal that a stranger has really signed is read only if it is small; that of a trusted signer is read.
  @Test func strangersSealsHaveALimit() throws {
    let bundle = try SignedTestBundle(hasPlugIns: false)
    try bundle.sign()
    let text = String(decoding: try bundle.part("CodeResources"), as: UTF8.self)
    try sign(bundle, seal: Array((text + String(repeating: " ", count: 4 << 20)).utf8))
    #expect(try bundle.findings() == [])
    let strangers = try bundle.open().verify(Trust(roots: []), at: testTime, includingStrangers: true)
    #expect(strangers.findings.map(\.kind) == [.untrusted, .malformedCodeResources])
    #expect(strangers.findings.last?.message.contains("while its signer is not trusted") == true)
  }

  /// Nothing that a stranger has signed is looked at, unless it is asked for.
  @Test func strangersBundlesAreNotLookedAt() throws {
    let bundle = try SignedTestBundle(hasPlugIns: false)
    try bundle.sign()
    try bundle.make("Note.app/Contents/Resources/added", "added")
    let nobody = Trust(roots: [])
    let all = try bundle.open().verify(nobody, at: testTime, includingStrangers: true)
    #expect(all.findings.map(\.kind) == [.untrusted, .added] && all.directory != nil)
    for short in [
      try bundle.open().verify(nobody, at: testTime, includingStrangers: false),
      try bundle.open().verifySignature(nobody, at: testTime),
    ] {
      #expect(short.findings.map(\.kind) == [.untrusted] && short.directory == nil && !short.isGood)
    }
  }

  /// Entitlements that nobody has signed are not read, though the signature is a good one.
  @Test func otherEntitlementsAreNotRead() throws {
    let bundle = try SignedTestBundle(hasPlugIns: false)
    try bundle.sign()
    try bundle.write(Array("no property list".utf8), toPart: "CodeEntitlements")
    let opened = try bundle.open()
    let (short, all) = (opened.verifySignature(bundle.authority.trust, at: testTime), try bundle.verify())
    #expect(short.findings.map(\.kind) == [.entitlementsAltered] && short.entitlements.entries.isEmpty)
    #expect(all.findings.map(\.kind) == [.entitlementsAltered] && all.entitlements.entries.isEmpty)
  }
}
