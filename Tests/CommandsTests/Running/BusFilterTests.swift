// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
@testable internal import Commands
internal import Testing

/// What xdg-dbus-proxy is told that an app may say.
struct BusFilterTests {
  private func words(
    _ change: (inout DesktopEntitlements) -> Void, of identifier: String = "org.example.notes"
  )
    -> [String]
  {
    var desktop = DesktopEntitlements()
    change(&desktop)
    return BusFilter(desktop, of: identifier).words
  }

  @Test func servicesAndNamesAreThoseOfTheEntitlement() {
    #expect(words { _ in } == [])
    #expect(
      words {
        $0.bus = ["org.a.b"]
        $0.busNames = ["org.c.d"]
      } == ["--own=org.example.notes.*", "--own=org.c.d", "--talk=org.a.b"])
    #expect(words({ $0.bus = [] }, of: "7com.example") == [])
    // Without the bus itself, an app has no name there.
    #expect(words { $0.busNames = ["org.c.d"] } == [])
  }

  @Test func portalsAreCalledByTheirInterfacesAlone() {
    let words = words { $0.portals = [.openURI, .settings] }
    let (service, object) = ("org.freedesktop.portal.Desktop", "@/org/freedesktop/portal/desktop")
    #expect(words.contains("--call=\(service)=org.freedesktop.portal.OpenURI.OpenURI\(object)"))
    #expect(words.contains("--call=\(service)=org.freedesktop.portal.Settings.*\(object)"))
    #expect(words.allSatisfy { !$0.hasPrefix("--talk") && !$0.hasPrefix("--own") })
    #expect(words.filter { $0.contains("=org.freedesktop.portal.") && $0.contains(".*@") }.count == 3)
  }

  @Test func identityNamesTheApp() {
    #expect(
      BusFilter.identity(of: "org.example.notes", hasNetwork: true)
        == "[Application]\nname=org.example.notes\n\n[Context]\nshared=network;\n")
    #expect(!BusFilter.identity(of: "org.example.notes", hasNetwork: false).contains("network"))
  }
}
