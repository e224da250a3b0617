// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps

/// What an app may say on the session bus, in the words of xdg-dbus-proxy.
struct BusFilter: Equatable {
  let words: [String]
  /// Where whoever looks at the root of a process finds what app it is: xdg-desktop-portal takes who has none
  /// for a program outside of any sandbox, and asks the user less.
  static let identityFile = "/.flatpak-info"

  init(_ desktop: DesktopEntitlements, of identifier: String) {
    var words: [String] = []
    if let services = desktop.bus {
      // Not every identifier is a name on the bus: none there has a part that begins with a digit.
      if let name = DesktopEntitlements.ownName(of: identifier) { words.append("--own=\(name)") }
      words += desktop.busNames.map { "--own=\($0)" } + services.map { "--talk=\($0)" }
    }
    self.words = words + Self.words(for: desktop.portals ?? [])
  }

  private static func words(for portals: [Portal]) -> [String] {
    guard !portals.isEmpty else { return [] }
    let (service, object) = ("org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop")
    var rules = portals.map { portal in
      // Its other methods take descriptors of files and directories, whose paths outside are others.
      portal == .openURI
        ? "org.freedesktop.portal.OpenURI.OpenURI@\(object)"
        : "org.freedesktop.portal.\(portal.rawValue).*@\(object)"
    }
    rules.append("org.freedesktop.DBus.Properties.Get@\(object)")
    // What is asked of the user is an object of its own meanwhile.
    rules += ["Request", "Session"].map { "org.freedesktop.portal.\($0).*@\(object)/*" }
    return rules.map { "--call=\(service)=\($0)" } + ["--broadcast=\(service)=*@\(object)/*"]
  }

  /// What that file says of an app.
  static func identity(of identifier: String, hasNetwork: Bool) -> String {
    "[Application]\nname=\(identifier)\n\n[Context]\n\(hasNetwork ? "shared=network;\n" : "")"
  }
}
