// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// The sockets by which programs reach the person's desktop, as the caller's variables name them.
///
/// Which of them an app gets is known only when the machine's tree was left. So a mount of each goes along,
/// detached; that can be had only of what is mounted in a namespace of ours.
struct DesktopSockets {
  /// What a socket is for; the name is that of the socket in the sandbox, but for X11's.
  enum Service: String, CaseIterable {
    case wayland
    case x11 = "X11"
    case pulse
    case pipewire
    case bus
  }

  let display: XDisplay?
  /// Those of that display alone.
  let cookies: [UInt8]?
  /// What the variables name and is not there, and why.
  private(set) var missing: [Service: String] = [:]
  private(set) var sockets: [Service: SharedFD] = [:]

  /// Entering a namespace of our own must have come before, and leaving the tree must not.
  init(_ context: Context) {
    let variables = context.environment
    let runtime = variables["XDG_RUNTIME_DIR"].flatMap { $0.begins(with: "/") ? $0 : nil }
    func below(_ directory: String?, _ name: String) -> String? {
      name.begins(with: "/") ? name : directory.map { "\($0)/\(name)" }
    }
    var paths: [Service: (path: String?, variable: String)] = [
      .wayland: (below(runtime, variables["WAYLAND_DISPLAY"] ?? "wayland-0"), "WAYLAND_DISPLAY"),
      .pipewire: (
        below(variables["PIPEWIRE_RUNTIME_DIR"] ?? runtime, variables["PIPEWIRE_REMOTE"] ?? "pipewire-0"),
        "PIPEWIRE_REMOTE"
      ),
      .pulse: (below(runtime, "pulse/native"), "PULSE_SERVER"),
      .bus: (below(runtime, "bus"), "DBUS_SESSION_BUS_ADDRESS"),
    ]
    if let server = variables["PULSE_SERVER"] { paths[.pulse]?.path = Self.pulsePath(server) }
    if let address = variables["DBUS_SESSION_BUS_ADDRESS"] { paths[.bus]?.path = Self.busPath(address) }
    display = variables["DISPLAY"].flatMap(XDisplay.init)
    paths[.x11] = (display?.socket, "DISPLAY")
    cookies = display.flatMap { display in
      let path = variables["XAUTHORITY"] ?? context.home + "/.Xauthority"
      guard let file = try? FD.cwd.openFollowing(path, O_RDONLY | O_NONBLOCK),
        let bytes = try? file.fd.readToEnd(limit: XAuthority.limit)
      else { return nil }
      return XAuthority.cookies(in: bytes, for: display, host: hostName() ?? "")
    }
    for (service, place) in paths {
      if let path = place.path, let mount = Self.mount(of: path) {
        sockets[service] = mount
      } else if let value = variables[place.variable] {
        missing[service] = "\(place.variable) is '\(value)', which is no socket of this machine"
      }
    }
  }

  private static func mount(of path: String) -> SharedFD? {
    guard !path.utf8.contains(0), let socket = try? FD.cwd.openFollowing(path, pathOnly),
      let status = try? socket.fd.status(), status.type == S_IFSOCK,
      let mount = try? DetachedMount.copy(of: socket.fd)
    else { return nil }
    return SharedFD(mount)
  }

  /// "unix:/path" or a path; the first of several.
  static func pulsePath(_ server: String) -> String? {
    // A machine's id in braces may come first.
    let first = server.parts(between: " ").first.map(String.init) ?? ""
    let name = first.hasPrefix("{") ? first.drop { $0 != "}" }.dropFirst() : first[...]
    let path = name.hasPrefix("unix:") ? name.dropFirst(5) : name
    return path.begins(with: "/") ? String(path) : nil
  }

  /// The path in "unix:path=/run/user/1000/bus,guid=..."; the first of several addresses.
  static func busPath(_ address: String) -> String? {
    let first = address.parts(between: ";").first ?? ""
    guard first.hasPrefix("unix:") else { return nil }
    for pair in first.dropFirst(5).parts(between: ",") where pair.hasPrefix("path=") {
      return unescaped(pair.dropFirst(5).utf8)
    }
    return nil
  }

  /// Bytes that are no letters may be written as '%' and two digits; nil if one is not.
  private static func unescaped(_ text: Substring.UTF8View) -> String? {
    var bytes: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
