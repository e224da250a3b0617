// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import TestSupport
internal import Testing

/// Where symbolic links in a bundle may lead.
@Suite struct SealLinkTests {
  @Test(
    arguments: [
      ("a.dat", true), ("./a.dat", true), ("deep/er/b.dat", true), ("deep", true), ("deep/../a.dat", true),
      ("../Resources/a.dat", true),
      ("../Info.plist", true), ("../MacOS/test", true), ("..", true),
      ("../../Contents/Resources/a.dat", true), ("link", true),
      ("de.lproj/text.strings", true), ("/System/Library/x", true), ("/Library/x", true),
      ("../Frameworks/A.framework/inside", true),
      ("../Frameworks/A.framework", true), ("", true),
      ("../..", false), ("../../..", false), ("../../../etc/passwd", false), ("/etc/passwd", false),
      ("/", false), ("/System", false),
      ("/System/../etc/passwd", false), ("/Library/./../x", false), ("/Systems/x", false), ("missing", false),
      ("deep/missing", false), ("a.dat/x", false),
      (".DS_Store", false), ("../PkgInfo", false), ("../_CodeSignature/CodeResources", false), ("new", false),
      ("new/x", false),
      ("../../other", false), ("../Frameworks/A.framework/../../../../x", false), ("A.DAT", false),
    ])
  func linksLeadToWhatIsSealed(target: String, isFine: Bool) throws {
    let bundle = try TestBundle(.contents)
    try TestBundle.makeSmall(at: bundle.base + "/Frameworks/A.framework", .flat, "org.example.framework")
    let resources = bundle.base + "/Resources"
    guard !target.isEmpty else { return }
    symlink(target, resources + "/new")
    do {
      try bundle.sign()
      #expect(isFine)
      #expect(bundle.findings().isEmpty)
    } catch let refusal as SealRefusal {
      #expect(!isFine)
      #expect(
        refusal.findings.map(\.kind) == [.badSymlink] && refusal.findings[0].path == "Contents/Resources/new")
    }
  }

  @Test func linksToLinksAreFollowedInThought() throws {
    let bundle = try TestBundle(.flat)
    symlink("two", bundle.base + "/one")
    symlink("deep", bundle.base + "/two")
    symlink("one/er/b.dat", bundle.base + "/three")
    try bundle.sign()
    #expect(bundle.findings().isEmpty)
    // Somebody else's link is the reason, and all that lead through it are named.
    unlink(bundle.base + "/two")
    symlink("/tmp", bundle.base + "/two")
    #expect(
      bundle.findings().map { "\($0.kind) \($0.path)" }
        == ["badSymlink one", "badSymlink three", "badSymlink two", "symlinkChanged two"])
  }

  /// Each link may lead through eight hundred names of four kilobytes.
  @Test func followingThemIsBounded() throws {
    let bundle = try TestBundle(.flat)
    let deep = (0..<14).map { _ in String(repeating: "d", count: 240) }.joined(separator: "/") + "/x"
    var place = bundle.base
    for name in deep.split(separator: "/") {
      place += "/" + name
      try #require(mkdir(place, 0o755) == 0)
    }
    for number in 0..<120 { symlink(String(repeating: "../x/", count: 800) + "../x", place + "/\(number)") }
    let refusal = #expect(throws: SealRefusal.self) { try bundle.sign() }
    let finding = try #require(refusal?.findings.first)
    #expect(refusal?.findings.count == 1 && finding.kind == .badSymlink)
    #expect(finding.detail.contains("too many names"), "\(finding)")
    // Some are as good as any.
    for number in 20..<120 { unlink(place + "/\(number)") }
    try bundle.sign()
    #expect(bundle.findings().isEmpty)
  }

  @Test func circlesEnd() throws {
    let bundle = try TestBundle(.flat)
    symlink("y", bundle.base + "/x")
    symlink("x/z", bundle.base + "/y")
    let refusal = #expect(throws: SealRefusal.self) { try bundle.sign() }
    #expect(refusal?.findings.map(\.detail) == ["it leads in a circle", "it leads in a circle"])
  }

  @Test func linksToOptionalFilesMayLeadNowhere() throws {
    let bundle = try TestBundle(.flat)
    symlink("de.lproj/text.strings", bundle.base + "/german")
    try bundle.sign()
    unlink(bundle.base + "/de.lproj/text.strings")
    #expect(bundle.findings().isEmpty)
  }
}
