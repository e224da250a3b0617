// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

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

  /// Who may call these can start programs outside of the sandbox.
  private static let escapes = [
    "org.freedesktop.systemd1", "org.freedesktop.Flatpak", "org.freedesktop.portal.Flatpak",
    "org.gnome.Shell",
    "org.kde.klauncher5", "org.kde.KWin", "org.kde.plasmashell", "org.freedesktop.DBus",
  ]

  package init() {}

  init(_ signed: PropertyList.Dictionary) throws(AppFailure) {
    wayland = try signed.grants(Self.prefix + "wayland")
    x11 = try signed.grants(Self.prefix + "x11")
    audio = try signed.grants(Self.prefix + "audio")
    bus = try Self.names(Self.prefix + "bus", in: signed)
    busNames = try Self.names(Self.prefix + "bus.own", in: signed) ?? []
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
      guard !escapes.contains(where: { covers(name, $0) }) else {
        throw .badEntitlement(
          key: key, reason: "'\(name)' could start programs outside of the sandbox, so no app has it")
      }
    }
    return names
  }

  /// At least two elements of letters, digits, '_' and '-', and maybe '.*' for all names that begin so.
  package static func isServiceName(_ text: String) -> Bool {
    guard text.utf8.count <= 255 else { return false }
    let name = text.hasSuffix(".*") ? text.dropLast(2) : text[...]
    let elements = name.split(separator: ".", omittingEmptySubsequences: false)
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
