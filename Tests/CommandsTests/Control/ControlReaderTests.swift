// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// Connections of those who read for an app: they are not counted, and end with their app's view.
@Suite struct ControlReaderTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  /// What of the apps 1 and 2 has ended, and how many read.
  private final class Apps: Sendable {
    let ended = Mutex<Set<UInt64>>([])
    let readers = Atomic<Int>(0)

    /// Who sends 'next-task' for an app that they have started reads for the second one, and else for the
    /// first.
    func answer(_ call: ControlCall, waits: Bool) -> ControlAnswer {
      guard case .nextTask(let ofStarted) = call.request else { return .reply(.done) }
      let view: UInt64 = ofStarted ? 2 : 1
      _ = call.connection.agent(of: view, isReader: true) { [self] in
        readers.wrappingAdd(1, ordering: .relaxed)
        return AgentPresence(
          1, view: view, isReader: true, hasEnded: { self.ended.withLock { $0.contains(view) } },
          left: { _ in self.readers.wrappingSubtract(1, ordering: .relaxed) })
      }
      return waits ? .waits { nil } : .reply(.done)
    }

    func areThere(_ count: Int) -> Bool { readers.load(ordering: .relaxed) == count }
  }

  private func server(
    _ apps: Apps, waits: Bool = true, limits: ControlConnections.Limits = .init()
  ) throws -> ControlServer {
    let directory = try temporary.open()
    var limits = limits
    // They are counted until they have said that they read.
    limits.ofOneUser = 256
    let server = try ControlServer(in: directory.fd, name: "s", mode: 0o600, limits: limits) { call in
      apps.answer(call, waits: waits)
    }
    try server.start()
    return server
  }

  private func reader(ofSecond: Bool = false) throws -> SharedFD {
    let directory = try temporary.open()
    let socket = try LocalSocket.connect(in: directory.fd, name: "s")
    try socket.fd.writeAll(ControlLine.encode(ControlRequest.nextTask(ofStarted: ofSecond)))
    return SharedFD(socket)
  }

  private func hasHungUp(_ socket: SharedFD, within milliseconds: Int32) throws -> Bool {
    try socket.use { (fd) throws(Errno) in
      guard try fd.waitUntilReadable(milliseconds: milliseconds) else { return false }
      return try fd.readAvailable(limit: 4096) == nil
    }
  }

  /// Also who has its answer, and waits for none.
  @Test(arguments: [true, false]) func readersEndWithTheirApps(waits: Bool) throws {
    let apps = Apps()
    let server = try server(apps, waits: waits)
    defer { server.stop() }
    let (first, second) = (
      try (0..<100).map { _ in try reader() }, try (0..<3).map { _ in try reader(ofSecond: true) }
    )
    #expect(eventually { apps.areThere(103) })
    if !waits {
      for socket in first + second {
        try socket.use { (fd) throws(Errno) in
          _ = try fd.waitUntilReadable(milliseconds: patience)
          _ = try fd.readAvailable(limit: 4096)
        }
      }
    }
    apps.ended.withLock { _ = $0.insert(1) }
    server.poke(callersOf: ProcessID.user)
    #expect(eventually { apps.areThere(3) })
    for socket in first { #expect(try hasHungUp(socket, within: patience)) }
    for socket in second { #expect(try !hasHungUp(socket, within: 0)) }
  }

  @Test func whoeverWaitsMayHangUp() throws {
    let apps = Apps()
    let server = try server(apps)
    defer { server.stop() }
    let other = try reader(ofSecond: true)
    try withExtendedLifetime((0..<100).map { _ in try reader() }) { _ in
      #expect(eventually { apps.areThere(101) })
    }
    #expect(eventually { apps.areThere(1) })
    #expect(try !hasHungUp(other, within: 0))
  }

  /// Each may send as much as was read for an app, and all of a user only so much at a time.
  @Test func whatReadersSendHasALimit() throws {
    let apps = Apps()
    var limits = ControlConnections.Limits()
    limits.ofReading = 70_000
    let server = try server(apps, waits: false, limits: limits)
    defer { server.stop() }
    let sockets = try (0..<3).map { _ in try reader() }
    let part = [UInt8](repeating: UInt8(ascii: " "), count: 30_000)
    for socket in sockets {
      try socket.use { (fd) throws(Errno) in
        #expect(try fd.waitUntilReadable(milliseconds: patience))
        _ = try fd.readAvailable(limit: 4096)
        try fd.writeAll(part)
      }
    }
    #expect(eventually { apps.areThere(2) })
    #expect(try sockets.count { try hasHungUp($0, within: 0) } <= 1)
  }
}
