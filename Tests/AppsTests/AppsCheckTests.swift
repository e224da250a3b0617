// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

@Suite struct AppsCheckTests {
  private let fixture: AppFixture
  private var bundle: String { "\(fixture.tree)/Applications/Editor.app" }

  init() throws {
    fixture = try AppFixture()
    try fixture.bundle()
    try fixture.install()
  }

  @Test func changedFileIsFoundByADeepLook() throws {
    try fixture.write("<p>PAGE</p>\n", to: "store/tree/Applications/Editor.app/Contents/Resources/page.html")
    #expect(try fixture.findings() == [])
    let findings = try fixture.findings(deep: true)
    #expect(
      findings.count == 1 && findings.allSatisfy { $0.contains("Contents/Resources/page.html: differs") })
  }

  @Test func otherSignatureIsFound() throws {
    try fixture.bundle { $0.version = "3" }
    let other = try Program.run(
      ["cp", "-r", fixture.temporary.appending("Editor.app/Contents"), bundle])
    #expect(other.status == 0)
    let findings = try fixture.findings()
    #expect(
      findings.count == 1 && findings.allSatisfy { $0.contains("is not the bundle of org.example.editor") })
  }

  @Test func bundleThatIsNoneIsFound() throws {
    unlink(bundle + "/Contents/Info.plist")
    let findings = try fixture.findings()
    #expect(findings.count == 1 && findings.allSatisfy { $0.contains("there is no Info.plist") })
  }

  @Test func missingBundleIsFoundOnce() throws {
    let directory = try TemporaryDirectory.open(fixture.tree + "/Applications")
    try "Editor.app".withName { (name) throws(Errno) in try directory.fd.removeTree(name) }
    let findings = try fixture.findings(deep: true)
    #expect(findings.count == 1 && findings.allSatisfy { $0.contains("is missing") })
  }

  /// It was signed a century ago by the clock of a later day.
  @Test func certificatesThatAreOverAreNoDamage() throws {
    let app = try #require(try fixture.registry.apps().first)
    #expect(app.installed == fixture.now)
    let bundle = try CodeBundle(in: TemporaryDirectory.open(bundle), name: "Editor.app")
    let trust = try StoreTrust.read(fixture.store)
    let later = bundle.verify(trust, at: fixture.now + 100 * 365 * 86400, includingStrangers: true)
    #expect(later.findings.map(\.kind) == [.expired])
    #expect(try fixture.findings(deep: true) == [])
  }

  @Test func rootThatIsTrustedNoMoreIsAWarning() throws {
    for name in try fixture.temporary.names(in: "store/keys/trust") {
      unlink(fixture.temporary.appending("store/keys/trust/\(name)"))
    }
    let trust = try StoreTrust.read(fixture.store)
    let findings = try AppsCheck(fixture.store, verifyingBy: { _ in trust }).findings()
    #expect(findings.map(\.severity) == [.warning])
    #expect(try fixture.findings() == [])
  }
}
