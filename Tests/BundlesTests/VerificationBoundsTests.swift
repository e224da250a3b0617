// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

@Suite struct VerificationBoundsTests {
  private let bundle: SignedTestBundle
  private let resources = "Note.app/Contents/Resources"

  init() throws {
    bundle = try SignedTestBundle()
    try bundle.sign()
  }

  private func findings(
    _ bounds: VerificationBounds, _ progress: ReadProgress? = nil
  ) throws -> [Finding] {
    let opened = try CodeBundle(
      in: TemporaryDirectory.open(bundle.directory.appending("Note.app")), name: "Note.app",
      progress: progress, bounds: bounds)
    return opened.verify(bundle.authority.trust, at: testTime, includingStrangers: false).findings
  }

  /// A user may have about `bytes`.
  private static func budget(_ bytes: Int) -> Budget {
    var limits = Budget.Limits(descriptors: 0)
    limits[.memory] = bytes * 4 + bytes / 3
    return Budget(limits)
  }

  @Test func whatIsInOrderIsGood() throws {
    #expect(try findings(VerificationBounds(user: 7) { false }) == [])
  }

  /// In the bundle, and in a bundle in it.
  @Test(arguments: ["Resources", "PlugIns/Help.bundle/Contents/Resources"])
  func aFewFindingsEndTheWalk(place: String) throws {
    for number in 0..<8000 { try bundle.make("Note.app/Contents/\(place)/\(number)", "") }
    let found = try findings(VerificationBounds(user: 7) { false })
    #expect(Set(found.map(\.kind)) == [.added])
    #expect(found.allSatisfy { $0.path.hasPrefix("Contents/\(place)/") })
    #expect(found.count >= 100 && found.count < 200)
    // Who verifies for themselves learns of all.
    #expect(try bundle.findings().count == 8000)
  }

  @Test func namesBesideTheContentsAreNotAllKept() throws {
    for number in 0..<200 {
      try bundle.make("Note.app/\(number)", "")
      try bundle.make("Note.app/Contents/_CodeSignature/\(number)", "")
    }
    let found = try findings(VerificationBounds(user: 7) { false })
    let expected = ["unsealedRoot ", "guestInSignature Contents/_CodeSignature"]
    #expect(Set(found.map { "\($0.kind) \($0.path)" }) == Set(expected))
    #expect(try bundle.findings().count == 400)
  }

  @Test func whatIsNotSealedIsChargedToItsUser() throws {
    for number in 0..<2000 {
      mkdir(bundle.directory.appending("\(resources)/\(number)"), 0o755)
    }
    let budget = Self.budget(200_000)
    let charged = try findings(VerificationBounds(user: 7, budget))
    #expect(charged.map(\.detail) == ["it contains too much that is not in its seal"])
    // All was given back, and root may have more.
    #expect(budget.total(.memory) == 0)
    #expect(try findings(VerificationBounds(user: 0, budget)) == [])
    #expect(try findings(VerificationBounds(user: 7, Self.budget(4_000_000))) == [])
  }

  @Test func whatIsSealedIsNot() throws {
    for number in 0..<2000 { try bundle.make("\(resources)/\(number)/file", "") }
    try bundle.sign()
    #expect(try findings(VerificationBounds(user: 7, Self.budget(20_000))) == [])
  }

  /// Two verifications for one user have that user's share together.
  @Test func verificationsAtTheSameTimeShare() throws {
    let budget = Self.budget(200_000)
    let other = VerificationBounds(user: 7, budget)
    for _ in 0..<190 { other.take(1000) }
    for number in 0..<100 {
      mkdir(bundle.directory.appending("\(resources)/\(number)"), 0o755)
    }
    #expect(try findings(VerificationBounds(user: 7, budget)).count == 1)
    #expect(try findings(VerificationBounds(user: 8, budget)) == [])
    withExtendedLifetime(other) {}
  }

  @Test func cancelledOneReadsNoFurther() throws {
    try #require(truncate(bundle.directory.appending("\(resources)/page.html"), 1 << 30) == 0)
    let progress = ReadProgress()
    let found = try findings(VerificationBounds(user: 7) { progress.count.bytes > 1 << 20 }, progress)
    #expect(found.allSatisfy { $0.detail == "the verification was cancelled" } && !found.isEmpty)
    #expect(progress.count.bytes < 1 << 24)
  }

  @Test func cancelledOneIsNeverGood() throws {
    #expect(try findings(VerificationBounds(user: 7) { true }) != [])
  }

  /// A file of the kernel's is empty and has something in it all the same.
  @Test func fileThatGrowsIsRefused() throws {
    let reader = SealReader(try bundle.open())
    let directory = try TemporaryDirectory.open("/proc/self")
    #expect {
      try reader.digests(of: "status", "status", in: directory.fd, .sha256, firstVersion: false)
    } throws: {
      ($0 as? Finding)?.detail == "it grew while it was read"
    }
  }
}
