// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import PropertyLists

/// What an app may use of its user's desktop: windows, sound, other programs.
///
/// Apple's platforms give windows and sound to every app, so these names are our own.
package struct DesktopEntitlements: Codable, Equatable, Sendable {
  package static let prefix = "org.insula.desktop."

  package var wayland = false
  /// Whatever has this can read and type into all windows of the display: the X server knows no boundary.
  package var x11 = false
  package var audio = false
  /// The services of the session bus that it may call, where it may use the bus at all.
  package var bus: [String]?
  /// Names that it may have there, besides its identifier.
  package var busNames: [String] = []
  /// The desktop portals that it may call; earlier versions know of none.
  package var portals: [Portal]?
  /// The nodes of graphics processors; nil for no, which earlier versions have.
  package var gpu: Bool?

  /// Who may call these can start programs outside of the sandbox, get at files there, or pass for a program
  /// outside.
  private static let escapes = [
    "ca.desrt.dconf", "org.freedesktop.DBus", "org.freedesktop.Flatpak", "org.freedesktop.PackageKit",
    "org.freedesktop.impl.portal", "org.freedesktop.portal.Documents", "org.freedesktop.portal.Flatpak",
    "org.freedesktop.systemd1", "org.gnome.Builder", "org.gnome.Console", "org.gnome.Ptyxis",
    "org.gnome.SessionManager", "org.gnome.SettingsDaemon", "org.gnome.Shell", "org.gnome.Terminal",
    "org.gtk.vfs", "org.kde.KWin", "org.kde.kded5", "org.kde.kded6", "org.kde.klauncher",
    "org.kde.klauncher5", "org.kde.klauncher6", "org.kde.konsole", "org.kde.krunner",
    "org.kde.plasmashell", "org.xfce.SessionManager", "org.xfce.Terminal5",
  ]
  /// Below this are the desktop's own services, which no app stands in for.
  private static let desktopServices = "org.freedesktop."
  /// Which of these an app may call is said by ``portals``.
  private static let portalService = "org.freedesktop.portal.Desktop"

  package init() {}

  init(_ signed: PropertyList.Dictionary) throws(AppFailure) {
    wayland = try signed.grants(Self.prefix + "wayland")
    x11 = try signed.grants(Self.prefix + "x11")
    audio = try signed.grants(Self.prefix + "audio")
    bus = try Self.names(Self.prefix + "bus", in: signed)
    let own = Self.prefix + "bus.own"
    busNames = try Self.names(own, in: signed) ?? []
    for name in busNames where name.hasPrefix(Self.desktopServices) {
      throw .badEntitlement(key: own, reason: "'\(name)' is the name of a service of the desktop")
    }
    portals = try Self.portals(Self.prefix + "portals", in: signed)
    gpu = try signed.grants(Self.prefix + "gpu") ? true : nil
  }

  /// Throws if an app with this identifier, which is its name on the bus too, could pass for a service.
  ///
  /// Who has a name, and those below it, may also call whoever has them already.
  package func check(for identifier: String) throws(AppFailure) {
    guard bus != nil, let name = Self.ownName(of: identifier) else { return }
    guard !(Self.escapes + [Self.portalService]).contains(where: { Self.covers(name, $0) }),
      !name.hasPrefix(Self.desktopServices)
    else {
      throw .badEntitlement(
        key: Self.prefix + "bus", reason: "the app's identifier, '\(identifier)', is the name of a service")
    }
  }

  /// What an app owns on the bus by its identifier; nil where that is no name there.
  ///
  /// With what is below it, unless that is all that a vendor has.
  package static func ownName(of identifier: String) -> String? {
    guard isServiceName(identifier), !identifier.hasSuffix("*") else { return nil }
    return identifier.parts(between: ".").count > 2 ? identifier + ".*" : identifier
  }

  package var isEmpty: Bool { self == DesktopEntitlements() }

  private static func names(
    _ key: String, in signed: PropertyList.Dictionary
  ) throws(AppFailure) -> [String]? {
    let names = try signed.strings(key)
    for name in names ?? [] {
      guard isServiceName(name) else {
        throw .badEntitlement(key: key, reason: "'\(name)' is not the name of a service on the session bus")
      }
      guard !covers(name, portalService) else {
        throw .badEntitlement(
          key: key, reason: "'\(name)' stands for all desktop portals; list those in '\(prefix)portals'")
      }
      guard !escapes.contains(where: { covers(name, $0) }) else {
        throw .badEntitlement(
          key: key, reason: "'\(name)' could start programs outside of the sandbox, so no app has it")
      }
    }
    return names
  }

  private static func portals(
    _ key: String, in signed: PropertyList.Dictionary
  ) throws(AppFailure) -> [Portal]? {
    var portals: [Portal] = []
    for name in try signed.strings(key) ?? [] {
      guard let portal = Portal(rawValue: name) else {
        let known = Portal.allCases.map(\.rawValue).joined(separator: ", ")
        throw .badEntitlement(key: key, reason: "'\(name)' is no portal that apps can have: \(known)")
      }
      portals.append(portal)
    }
    return portals.isEmpty ? nil : portals
  }

  /// At least two elements of letters, digits, '_' and '-', and maybe '.*' for all names that begin so.
  package static func isServiceName(_ text: String) -> Bool {
    guard text.utf8.count <= 255 else { return false }
    let name = text.hasSuffix(".*") ? text.dropLast(2) : text[...]
    let elements = name.parts(between: ".", keepingEmpty: true)
    return elements.count >= 2
      && elements.allSatisfy { element in
        guard let first = element.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else {
          return false
        }
        return element.utf8.allSatisfy { byte in
          switch byte {
          case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
          default: false
          }
        }
      }
  }

  /// Whether a name, or a pattern, stands for a service or for one of those below it.
  private static func covers(_ name: String, _ service: String) -> Bool {
    if name == service || name.hasPrefix(service + ".") { return true }
    return name.hasSuffix(".*") && (service + ".").hasPrefix(name.dropLast(1))
  }
}
