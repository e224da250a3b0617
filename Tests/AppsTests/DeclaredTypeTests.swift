// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// What apps declare, from their bundles into the registry.
@Suite struct DeclaredTypeTests {
  private let fixture: AppFixture

  init() throws { fixture = try AppFixture() }

  private func bundle(
    _ name: String, _ identifier: String, exporting types: [(String, String)], imports: Bool = false
  ) throws {
    try fixture.bundle(name) {
      $0.identifier = identifier
      $0.info = [
        (
          imports ? "UTImportedTypeDeclarations" : "UTExportedTypeDeclarations",
          "<array>"
            + types.map {
              "<dict><key>UTTypeIdentifier</key><string>\($0.0)</string><key>UTTypeConformsTo</key>"
                + "<string>\($0.1)</string></dict>"
            }.joined() + "</array>"
        )
      ]
    }
  }

  private func declared() throws -> [String: [String]] {
    let all = try fixture.registry.documents(for: fixture.account.uid)
    return Dictionary(
      uniqueKeysWithValues: all.map {
        ($0.identifier, AppDeclarations(text: $0.declarations).exported.map(\.identifier))
      })
  }

  @Test func theyComeAndGoWithTheApp() throws {
    try bundle("Editor.app", "org.example.editor", exporting: [("a.x", "public.data")])
    try fixture.install()
    #expect(try declared() == ["org.example.editor": ["a.x"]])
    try fixture.bundle {
      $0.version = "2"
      $0.info = [("LSSupportsOpeningDocumentsInPlace", "<true/>")]
    }
    try fixture.update()
    #expect(try declared() == ["org.example.editor": []])
    try fixture.uninstall()
    #expect(try declared().isEmpty)
  }

  @Test func hostileOnesAreRefusedAndNothingIsInstalled() throws {
    try bundle("Editor.app", "org.example.editor", exporting: [("public.evil", "public.data")])
    guard case .refused(_, let findings)? = appFailure({ try fixture.install() }) else {
      Issue.record("it was installed")
      return
    }
    #expect(findings.map(\.kind) == [.badInfoPlist] && findings[0].detail.contains("'public.evil'"))
    #expect(try fixture.registry.apps().isEmpty && fixture.staged() == [])
  }

  @Test func circlesThroughOtherAppsAreRefused() throws {
    try bundle("One.app", "org.example.one", exporting: [("a.one", "a.two")])
    try fixture.install("One.app")
    try bundle("Two.app", "org.example.two", exporting: [("a.two", "a.one")])
    guard case .refused(_, let findings)? = appFailure({ try fixture.install("Two.app") }) else {
      Issue.record("it was installed")
      return
    }
    #expect(findings[0].detail.contains("'a.two', which conforms to 'a.one', which conforms to 'a.two'"))
    // The same types of the same app are no others.
    try bundle("One.app", "org.example.one", exporting: [("a.two", "a.one"), ("a.one", "public.data")])
    try fixture.update("One.app", allowingDowngrade: true)
    #expect(try declared() == ["org.example.one": ["a.two", "a.one"]])
  }

  /// Whoever imports another's types lays no circle around that one's app.
  @Test func importingStandsInNobodysWay() throws {
    try bundle("Evil.app", "org.example.evil", exporting: [("v.base", "v.drawing")], imports: true)
    try fixture.install("Evil.app")
    try bundle("Vendor.app", "org.example.vendor", exporting: [("v.drawing", "v.base")])
    try fixture.install("Vendor.app")
    #expect(try declared()["org.example.vendor"] == ["v.drawing"])
  }

  @Test func whatAnEarlierVersionHasInstalledIsAskedWhenAStoreIsOpened() throws {
    try bundle("Editor.app", "org.example.editor", exporting: [("a.x", "public.data")])
    let app = try fixture.install()
    // As after the step of the schema that made the table.
    try fixture.registry.update(app)
    #expect(try declared().isEmpty)
    try fixture.installer().recover()
    #expect(try declared() == ["org.example.editor": ["a.x"]])
  }
}
