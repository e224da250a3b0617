// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// Bundles of two apps can have one name in two places: the place that is named counts.
@Suite struct NamedPlaceTests {
  @Test func appsOfOtherPlacesStay() throws {
    let fixture = try AppFixture()
    try fixture.bundle()
    try fixture.install(for: .utilities)
    try fixture.bundle { $0.identifier = "org.example.other" }
    try fixture.install()
    let before = try fixture.snapshot()
    let refusal = AppFailure.notInstalled(identifier: "org.example.editor", domain: "/Applications")
    #expect(appFailure { try fixture.uninstall() } == refusal)
    try fixture.bundle { $0.version = "3" }
    #expect(appFailure { _ = try fixture.update() } == refusal)
    #expect(try fixture.snapshot() == before)
    #expect(try fixture.findings(deep: true) == [])
    try fixture.uninstall(of: .utilities)
    #expect(try fixture.registry.apps().map(\.identifier.text) == ["org.example.other"])
    #expect(try fixture.names("Applications") == ["Editor.app", "Utilities"])
  }
}
