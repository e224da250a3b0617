// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
@testable internal import Commands
@testable internal import Daemon
internal import Policy
internal import Store
internal import Testing

/// An app may declare many types; a desktop reads all that it is told of when it starts.
@Suite struct DesktopFloodTests {
  /// An app that claims extensions of its own, as many as it may.
  private func app(_ number: Int, types: Int) -> AppDocuments {
    var declarations = AppDeclarations()
    declarations.exported = (0..<types).map { type in
      DeclaredType(
        "org.example.app\(number).type\(type)", parents: ["public.data"],
        extensions: ["x\(number)y\(type)"], mimeTypes: ["application/x-app\(number)-\(type)"], kind: "")
    }
    declarations.claims = [
      AppDeclarations.Claim(
        name: "", rank: .owner, isPackage: false,
        types: declarations.exported.map(\.identifier), extensions: [])
    ]
    return AppDocuments(
      identifier: "org.example.app\(number)", name: "App \(number)", path: "Applications/App\(number).app",
      declarations: declarations.text)
  }

  private func types(_ apps: [AppDocuments]) -> DesktopTypes {
    var page = DocumentsPage([], after: 0)
    page.apps = apps
    return DesktopTypes(KnownDocuments(page), machine: [])
  }

  @Test func oneAppHasSoManyAndTakesNothingFromOthers() {
    let found = types([app(1, types: 500), app(2, types: 3)])
    #expect(found.isCut)
    #expect(found.mimeTypes.map(\.count) == [DesktopTypes.limitOfApp, 3])
    #expect(found.unregistered.count == DesktopTypes.limitOfApp + 3)
  }

  @Test func allAppsTogetherHaveSoMany() {
    let found = types((1...25).map { app($0, types: 250) })
    #expect(found.isCut && found.mimeTypes.map(\.count).reduce(0, +) == DesktopTypes.limitOfAll)
  }

  @Test func orderlyAppsLoseNothing() {
    let found = types([app(1, types: 250), app(2, types: 20)])
    #expect(!found.isCut && found.mimeTypes.map(\.count) == [250, 20])
  }
}
