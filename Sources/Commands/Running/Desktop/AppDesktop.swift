// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import Glibc
internal import LinuxIO

/// What an app gets of the person's desktop: what it is entitled to, and is there.
struct AppDesktop {
  private static let directory = "/run/desktop"

  /// What bubblewrap is to show in the sandbox, by the path there.
  private var shown: [(source: String, path: String)] = []
  /// Whether there is an X server's socket, which all programs look for below /tmp.
  private(set) var isBelowTemporary = false
  /// By which programs find it.
  private(set) var variables: [String: String] = [:]
  /// Of graphics processors.
  private var devices: [String] = []
  /// By which programs find what the machine says of a device.
  private var links: [GraphicsDevices.Link] = []
  private var proxy: BusProxy?
  private var waylandContext: WaylandContext?

  /// Nothing.
  init() {}

  /// Puts everything in its place beside the view; says what is missing.
  init(
    of plan: LaunchPlan, from sockets: DesktopSockets, _ graphics: GraphicsDevices, in place: ViewPlace,
    _ context: Context
  ) throws {
    guard let entitlements = plan.desktop else { return }
    var services: [DesktopSockets.Service] = []
    if entitlements.wayland { services.append(.wayland) }
    if entitlements.x11 { services.append(.x11) }
    if entitlements.audio { services += [.pulse, .pipewire] }
    for service in services {
      guard let socket = sockets.sockets[service] else {
        if let reason = sockets.missing[service] {
          context.console.note("the app goes without \(service.rawValue): \(reason)")
        }
        continue
      }
      switch service {
      case .wayland: try showWayland(socket, of: plan, in: place, context)
      case .x11: try showX11(socket, sockets, in: place)
      default: show(try place.attach(socket, as: service.rawValue), as: service.rawValue)
      }
    }
    if entitlements.bus != nil || entitlements.portals != nil {
      try showBus(entitlements, sockets, of: plan, in: place, context)
    }
    if entitlements.gpu == true { try show(graphics, in: place, context) }
    set("WAYLAND_DISPLAY", .wayland)
    set("PULSE_SERVER", .pulse, prefix: "unix:")
    set("PIPEWIRE_REMOTE", .pipewire)
    set("DBUS_SESSION_BUS_ADDRESS", .bus, prefix: "unix:path=")
  }

  /// The words for bubblewrap.
  var words: [String] {
    var words: [String] = []
    if !shown.isEmpty {
      words += ["--dir", Self.directory] + shown.flatMap { ["--ro-bind", $0.source, $0.path] }
    }
    return words + devices.flatMap { ["--dev-bind", $0, $0] }
      + links.flatMap { ["--symlink", $0.target, $0.path] }
  }

  private mutating func show(_ source: String, as name: String) {
    shown.append((source, "\(Self.directory)/\(name)"))
  }

  private mutating func set(_ variable: String, _ service: DesktopSockets.Service, prefix: String = "") {
    let path = "\(Self.directory)/\(service.rawValue)"
    if shown.contains(where: { $0.path == path }) { variables[variable] = prefix + path }
  }

  private mutating func showX11(
    _ socket: SharedFD, _ sockets: DesktopSockets, in place: ViewPlace
  ) throws {
    guard let display = sockets.display else { return }
    shown.append((try place.attach(socket, as: DesktopSockets.Service.x11.rawValue), display.socket))
    isBelowTemporary = true
    variables["DISPLAY"] = display.text
    guard let cookies = sockets.cookies else { return }
    let name = "Xauthority"
    try place.write(cookies, to: name)
    show("\(place.files)/\(name)", as: name)
    variables["XAUTHORITY"] = "\(Self.directory)/\(name)"
  }

  /// A socket of the app's own, where the compositor makes such, and the compositor's otherwise.
  ///
  /// One that has crashed leaves its socket behind, so an app does without it.
  private mutating func showWayland(
    _ socket: SharedFD, of plan: LaunchPlan, in place: ViewPlace, _ context: Context
  ) throws {
    let (name, compositors) = (DesktopSockets.Service.wayland.rawValue, "wayland-compositor")
    let path = try place.attach(socket, as: compositors)
    do throws(Errno) {
      let directory = try FD.cwd.open(place.files, pathOnly | O_DIRECTORY)
      waylandContext = try WaylandContext(
        at: compositors, listeningAt: name, in: directory.fd, for: plan.identifier)
    } catch {
      return context.console.note(
        "the app goes without wayland: the compositor does not answer as it should (\(error.message))")
    }
    show(waylandContext == nil ? path : "\(place.files)/\(name)", as: name)
  }

  private mutating func show(_ graphics: GraphicsDevices, in place: ViewPlace, _ context: Context) throws {
    if graphics.nodes.isEmpty {
      context.console.note("the app goes without a graphics processor: there is none in /dev/dri")
    }
    devices = graphics.nodes
    links = graphics.links
    for (number, description) in graphics.descriptions.enumerated() {
      shown.append((try place.attachDirectory(description.mount, as: "gpu-\(number)"), description.path))
    }
  }

  private mutating func showBus(
    _ entitlements: DesktopEntitlements, _ sockets: DesktopSockets, of plan: LaunchPlan, in place: ViewPlace,
    _ context: Context
  ) throws {
    guard let socket = sockets.sockets[.bus] else {
      if let reason = sockets.missing[.bus] {
        context.console.note("the app goes without a session bus: \(reason)")
      }
      return
    }
    guard let program = Requirements.find("xdg-dbus-proxy", context) else {
      return context.console.note(
        "the app goes without a session bus: install xdg-dbus-proxy ('apt-get install xdg-dbus-proxy')")
    }
    let own = try place.attach(socket, as: "session-bus")
    let offered = "\(place.files)/\(DesktopSockets.Service.bus.rawValue)"
    if entitlements.portals != nil {
      let identity = BusFilter.identity(of: plan.identifier, hasNetwork: plan.hasNetwork)
      try place.write(Array(identity.utf8), at: BusFilter.identityFile)
      variables["GTK_USE_PORTAL"] = "1"
    }
    let filter = BusFilter(entitlements, of: plan.identifier)
    proxy = try BusProxy(program, from: own, to: offered, filter, context)
    show(offered, as: DesktopSockets.Service.bus.rawValue)
  }
}
