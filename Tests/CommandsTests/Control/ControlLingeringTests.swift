// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Daemon
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Network connections that wait when they are closed keep nobody but who has passed them on.
///
/// Before Linux 6.16 a socket can't refuse descriptors.
@Suite(.enabled(if: refusesDescriptors)) struct ControlLingeringTests {
  private let temporary: TemporaryDirectory
  private static let wait: Int32 = 20

  init() throws { temporary = try TemporaryDirectory() }

  /// A server whose thread can be kept busy for a moment, by asking for apps.
  private func server() throws -> ControlServer {
    let directory = try temporary.open()
    let server = try ControlServer(in: directory.fd, name: "s", mode: 0o600) { call in
      if case .apps = call.request { usleep(300_000) }
      return .reply(call.descriptor == nil ? .done : .path("a directory"))
    }
    try server.start()
    return server
  }

  private func connection() throws(Errno) -> OwnedFD {
    let directory = try temporary.open()
    return try LocalSocket.connect(in: directory.fd, name: "s")
  }

  /// A connection with data that nobody takes, whose last close waits for that.
  private func lingering() throws -> (connection: FD, others: [SharedFD]) {
    func made(_ raw: Int32) throws -> OwnedFD { OwnedFD(owning: try check(raw)) }
    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let listener = try made(socket(AF_INET, kind, 0))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout.size(ofValue: address))
    let client = try made(socket(AF_INET, kind, 0))
    try withUnsafeMutablePointer(to: &address) { pointer in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        try check(bind(listener.fd.raw, address, size))
        try check(listen(listener.fd.raw, 1))
        try check(getsockname(listener.fd.raw, address, &size))
        try check(connect(client.fd.raw, address, size))
      }
    }
    let accepted = try LocalSocket.accept(listener.fd)
    let bytes = [UInt8](repeating: 0, count: 1 << 16)
    while send(client.fd.raw, bytes, bytes.count, Int32(MSG_DONTWAIT)) > 0 {}
    var linger = linger(l_onoff: 1, l_linger: Self.wait)
    try check(
      setsockopt(
        client.fd.raw, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger))))
    return (client.release(), [SharedFD(listener), SharedFD(accepted)])
  }

  private func secondsToAnswer() throws -> Double {
    let begun = monotonicNanoseconds()
    let directory = try temporary.open()
    let client = try ControlClient(in: directory.fd, name: "s")
    #expect(try client.ask(.status, milliseconds: patience).isGood)
    return Double(monotonicNanoseconds() - begun) / 1e9
  }

  @Test func descriptorThatNobodyAskedForIsRefused() throws {
    let server = try server()
    defer { server.stop() }
    var kept: [SharedFD] = []
    // What the server holds last is what it waits for: it is kept busy until the sender has none any more.
    let busy = try connection()
    _ = try LocalSocket.send(ControlLine.encode(ControlRequest.apps(user: nil, after: nil))[...], to: busy.fd)
    usleep(50_000)
    for _ in 0..<6 {
      let (lingering, others) = try lingering()
      let caller = try connection()
      let end = caller.fd
      #expect(throws: Errno.EPERM) {
        _ = try LocalSocket.send(
          ControlLine.encode(ControlRequest.status)[...], with: lingering, to: end)
      }
      kept += others
      kept.append(SharedFD(caller))
      // Closed without waiting, should it be ours alone.
      dropAtOnce(lingering)
    }
    usleep(400_000)
    #expect(try secondsToAnswer() < 5)
  }

  @Test func descriptorThatWasAskedForHoldsItsOwnUserAlone() throws {
    let server = try server()
    defer { server.stop() }
    var kept: [SharedFD] = []
    for _ in 0..<6 {
      let (lingering, others) = try lingering()
      let caller = try connection()
      _ = try LocalSocket.send(ControlLine.encode(ControlRequest.pass)[...], to: caller.fd)
      // Behind those who wait there already it is not its turn yet.
      let isReady = try caller.fd.waitUntilReadable(milliseconds: 500)
      if isReady { _ = try? LocalSocket.send([10], with: lingering, to: caller.fd) }
      kept += others
      kept.append(SharedFD(caller))
      dropAtOnce(lingering)
    }
    #expect(try secondsToAnswer() < 5)
  }

  /// Lets go of a connection on a thread that nobody waits for: one that ends does not linger either.
  private func dropAtOnce(_ connection: FD) {
    let thread = try? JoinableThread(name: "drop") { _ = close(connection.raw) }
    thread?.detach()
  }

  @Test func directoryComesAlongByAsking() throws {
    let server = try server()
    defer { server.stop() }
    let directory = try temporary.open()
    let client = try ControlClient(in: directory.fd, name: "s")
    for _ in 0..<3 {
      let reply = try client.ask(.status, with: directory.fd)
      #expect(reply == .path("a directory"))
    }
    // It belongs to one request alone.
    #expect(try client.ask(.status, milliseconds: patience) == .done)
  }

  @Test func whoeverAsksToPassAndPassesNothingIsAnswered() throws {
    let server = try server()
    defer { server.stop() }
    let caller = try connection()
    _ = try LocalSocket.send(ControlLine.encode(ControlRequest.pass)[...], to: caller.fd)
    var lines: [ControlMessage] = []
    while lines.count < 2 {
      #expect(try caller.fd.waitUntilReadable(milliseconds: patience))
      let arrived = try #require(try LocalSocket.receive(from: caller.fd, limit: 4096))
      lines += arrived.bytes.split(separator: 10).compactMap {
        try? ControlLine.decode(ControlMessage.self, $0)
      }
      if lines.count == 1 { _ = try LocalSocket.send([10], to: caller.fd) }
    }
    #expect(lines[0] == .awaitsDescriptor && lines[1] == .reply(.done))
    let end = caller.fd
    #expect(throws: Errno.EPERM) {
      let directory = try temporary.open()
      _ = try LocalSocket.send([10], with: directory.fd, to: end)
    }
  }
}

/// Whether this kernel has sockets that refuse descriptors.
private let refusesDescriptors: Bool = {
  let raw = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
  defer { close(raw) }
  return LocalSocket.allowDescriptors(false, to: FD(raw))
}()
