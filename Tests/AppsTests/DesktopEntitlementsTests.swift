// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import PropertyLists
internal import Testing

/// What of the desktop entitlements give.
struct DesktopEntitlementsTests {
  private func desktop(_ key: String, _ value: PropertyList) throws -> DesktopEntitlements {
    let signed = try #require(PropertyList.Dictionary([(key: "org.insula.desktop." + key, value: value)]))
    return try AppEntitlements(signed).desktop
  }

  @Test func eachGivesItsOwn() throws {
    #expect(AppEntitlements().desktop.isEmpty)
    #expect(try desktop("wayland", .boolean(false)).isEmpty)
    var expected = DesktopEntitlements()
    expected.wayland = true
    #expect(try desktop("wayland", .boolean(true)) == expected)
    #expect(try desktop("x11", .boolean(true)).x11)
    #expect(try desktop("audio", .boolean(true)).audio)
    #expect(try desktop("bus", .array([])).bus == [])
    #expect(
      try desktop("bus", .array([.string("org.a.*"), .string("org.b-c._d")])).bus == [
        "org.a.*", "org.b-c._d",
      ])
  }

  /// Names become words for a program, and some services start programs.
  @Test(arguments: [
    "", "*", "org", "org.*", ".org.a", "org..a", "org.a.", "org.a.**", "org.*.a", "--talk=org.a.b", "org.a b",
    "org.1a", "org.ä", "org.a\0b", "org.a=org.freedesktop.*", ":1.5",
    String(repeating: "a.", count: 200) + "a",
    "org.freedesktop.systemd1", "org.freedesktop.systemd1.Manager", "org.freedesktop.*",
    "org.freedesktop.Flatpak.*",
    "org.gnome.Shell", "org.gnome.*", "org.freedesktop.portal.*", "org.freedesktop.DBus",
    "org.freedesktop.portal.Desktop", "org.freedesktop.portal.Documents",
    "org.freedesktop.impl.portal.PermissionStore",
  ])
  func senselessAndDangerousNamesAreRefused(name: String) {
    #expect(throws: AppFailure.self) { try desktop("bus", .array([.string(name)])) }
  }

  @Test func namesToHaveAreCheckedToo() throws {
    #expect(try desktop("bus.own", .array([.string("org.a.b")])).busNames == ["org.a.b"])
    #expect(throws: AppFailure.self) { try desktop("bus.own", .array([.string("org.freedesktop.*")])) }
  }

  @Test func portalsAreThoseThatAppsCanHave() throws {
    #expect(
      try desktop("portals", .array([.string("OpenURI"), .string("Settings")])).portals
        == [.openURI, .settings])
    #expect(try desktop("portals", .array([])).isEmpty && desktop("gpu", .boolean(false)).isEmpty)
    #expect(try desktop("gpu", .boolean(true)).gpu == true)
    for name in ["", "FileChooser", "openuri", "OpenURI.OpenFile", "OpenURI@/", "*", "Flatpak", "Background"]
    {
      #expect(throws: AppFailure.self, "\(name)") { try desktop("portals", .array([.string(name)])) }
    }
  }

  /// Nobody signs for what an app is called on the bus, and who owns a name may call whoever has it.
  @Test(arguments: [
    "org.freedesktop.systemd1", "org.freedesktop.Flatpak", "org.freedesktop.secrets", "org.gnome.Shell",
    "org.freedesktop.portal.Desktop", "org.kde.KWin", "ca.desrt.dconf", "org.gnome.Shell.notes",
  ])
  func identifierIsNoServicesName(identifier: String) throws {
    let withBus = try desktop("bus", .array([]))
    #expect(throws: AppFailure.self) { try withBus.check(for: identifier) }
    try DesktopEntitlements().check(for: identifier)
  }

  @Test func identifierIsANameWithAllBelowIt() throws {
    #expect(DesktopEntitlements.ownName(of: "org.example.notes") == "org.example.notes.*")
    // All that a vendor has is not one app's.
    #expect(DesktopEntitlements.ownName(of: "org.gnome") == "org.gnome")
    #expect(
      DesktopEntitlements.ownName(of: "notes") == nil && DesktopEntitlements.ownName(of: "a.7b.c") == nil)
    try desktop("bus", .array([])).check(for: "org.gnome")
    try desktop("bus", .array([])).check(for: "org.example.notes")
    #expect(throws: AppFailure.self) { try desktop("bus.own", .array([.string("org.freedesktop.secrets")])) }
  }

  @Test func otherTypesAreRefused() {
    #expect(throws: AppFailure.self) { try desktop("gpu", .array([])) }
    #expect(throws: AppFailure.self) { try desktop("portals", .boolean(true)) }
    #expect(throws: AppFailure.self) { try desktop("x11", .string("yes")) }
    #expect(throws: AppFailure.self) { try desktop("bus", .boolean(true)) }
    #expect(throws: AppFailure.self) { try desktop("bus", .array([.boolean(true)])) }
    let many = PropertyList.array((0...100).map { .string("org.a.b\($0)") })
    #expect(throws: AppFailure.self) { try desktop("bus", many) }
  }
}
