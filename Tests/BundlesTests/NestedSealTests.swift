// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Bundles in bundles are sealed as units.
@Suite struct NestedSealTests {
  private func nested() throws -> TestBundle {
    let bundle = try TestBundle(.contents)
    try TestBundle.makeSmall(at: bundle.base + "/Frameworks/A.framework", .flat, "org.example.framework")
    let plugIn = bundle.base + "/PlugIns/B.appex/Contents"
    try TestBundle.makeSmall(at: plugIn, .contents, "org.example.plugin")
    try TestBundle.makeSmall(
      at: plugIn + "/Library/LoginItems/C.app/Contents", .contents, "org.example.login")
    try TestBundle.write([1], to: bundle.base + "/Frameworks/libplain.so")
    return bundle
  }

  @Test func bundlesInBundlesAreSealedByTheirSignatures() throws {
    let bundle = try nested()
    try bundle.sign()
    #expect(bundle.findings().isEmpty)
    let seal = try ResourceSeal(reading: TestBundle.read(bundle.base + "/_CodeSignature/CodeResources"))
    let paths = seal.entries.filter { if case .nested = $0.content { true } else { false } }.map(\.path)
    #expect(paths == ["Frameworks/A.framework", "PlugIns/B.appex"])
    // A library is no bundle, and has no signature of its own here: its bytes are sealed.
    #expect(seal.entries.contains { $0.path == "Frameworks/libplain.so" })
    #expect(!seal.entries.contains { $0.path.hasPrefix("Frameworks/A.framework/") })
  }

  @Test(
    arguments: [
      ("Frameworks/A.framework/a.dat", "changed Contents/Frameworks/A.framework/a.dat"),
      ("Frameworks/A.framework/Info.plist", "badInfoPlist Contents/Frameworks/A.framework/Info.plist"),
      ("Frameworks/A.framework/test", "nestedRejected Contents/Frameworks/A.framework"),
      (
        "Frameworks/A.framework/_CodeSignature/CodeResources",
        "nestedRejected Contents/Frameworks/A.framework"
      ),
      ("Frameworks/A.framework/new", "added Contents/Frameworks/A.framework/new"),
      (
        "PlugIns/B.appex/Contents/Resources/a.dat",
        "changed Contents/PlugIns/B.appex/Contents/Resources/a.dat"
      ),
      (
        "PlugIns/B.appex/Contents/Library/LoginItems/C.app/Contents/Resources/a.dat",
        "changed Contents/PlugIns/B.appex/Contents/Library/LoginItems/C.app/Contents/Resources/a.dat"
      ),
      (
        "PlugIns/B.appex/Contents/Library/LoginItems/C.app/Contents/MacOS/test",
        "nestedRejected Contents/PlugIns/B.appex/Contents/Library/LoginItems/C.app"
      ),
    ])
  func damageInsideIsFoundWithItsPath(path: String, expected: String) throws {
    let bundle = try nested()
    try bundle.sign()
    try TestBundle.write([0], to: bundle.base + "/" + path)
    #expect(bundle.findings().map { "\($0.kind) \($0.path)" } == [expected])
  }

  @Test func otherCodeInItsPlaceIsRejected() throws {
    let bundle = try nested()
    try bundle.sign()
    // Another well signed bundle, with a seal that is right.
    let other = try TestBundle(.flat, name: "A.framework")
    try other.sign()
    let place = bundle.base + "/Frameworks/A.framework"
    #expect(try Program.run(["sh", "-c", "rm -r \(place) && cp -a \(other.path) \(place)"]).status == 0)
    #expect(bundle.findings().map(\.kind) == [.nestedRejected])
    #expect(try Program.run(["rm", "-r", place]).status == 0)
    #expect(bundle.findings().map { "\($0.kind) \($0.path)" } == ["missing Contents/Frameworks/A.framework"])
    try TestBundle.write([1], to: place)
    #expect(bundle.findings().map(\.kind) == [.typeChanged])
    unlink(place)
    symlink("libplain.so", place)
    #expect(bundle.findings().map(\.kind) == [.typeChanged])
    unlink(place)
    try TestBundle.write([1], to: place + "/x")
    #expect(
      bundle.findings().map { "\($0.kind) \($0.path)" } == ["notABundle Contents/Frameworks/A.framework"])
  }

  @Test func directoriesThatShouldBeBundlesAreNotSealed() throws {
    let bundle = try TestBundle(.contents)
    try TestBundle.write([1], to: bundle.base + "/Frameworks/1.0/x")
    let refusal = #expect(throws: SealRefusal.self) { try bundle.sign() }
    #expect(refusal?.findings.map { "\($0.kind) \($0.path)" } == ["notABundle Contents/Frameworks/1.0"])
  }

  @Test func bundlesAreNotNestedWithoutEnd() throws {
    let bundle = try TestBundle(.contents)
    var base = bundle.base
    for number in 0...CodeBundle.depthLimit {
      base += "/PlugIns/\(number).appex/Contents"
      try TestBundle.makeSmall(at: base, .contents, "org.example.n\(number)")
    }
    let refusal = #expect(throws: SealRefusal.self) { try bundle.sign() }
    #expect(refusal?.findings.map(\.kind) == [.tooDeep])
  }
}
