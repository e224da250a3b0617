// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import Glibc
internal import JSON
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite struct ControlTests {
  private let temporary: TemporaryDirectory
  private let directory: OwnedDirectory
  private let server: ControlServer

  private final class OwnedDirectory: Sendable {
    let owned: OwnedFD
    init(_ owned: consuming OwnedFD) { self.owned = owned }
  }

  init() throws {
    temporary = try TemporaryDirectory()
    directory = OwnedDirectory(try temporary.open())
    var limits = ControlConnections.Limits()
    limits.ofOneUser = 32
    server = try ControlServer(in: directory.owned.fd, name: "s", mode: 0o600, limits: limits) { call in
      let words =
        switch call.request {
        case .unmount(let lazily): "unmount \(lazily) \(call.caller.uid)"
        default: "\(call.request) \(call.caller.uid)"
        }
      return .reply(.path(words))
    }
    try server.start()
  }

  private func client() throws -> ControlClient { try ControlClient(in: directory.owned.fd, name: "s") }
  private func raw() throws -> OwnedFD { try LocalSocket.connect(in: directory.owned.fd, name: "s") }

  @Test func answersWithWhoAsked() throws {
    defer { server.stop() }
    let client = try client()
    for _ in 0..<3 {
      let reply = try client.ask(.unmount(lazily: true), milliseconds: patience)
      #expect(reply == .path("unmount true \(ProcessID.user)"))
    }
  }

  @Test(
    arguments: [
      "nonsense", "", "{}", "{\"verb\":\"format\"}", "[1]", "\u{0}\u{1}", "{\"verb\":\"status\"", "null",
    ])
  func garbageGetsAnAnswerAndTheNextRequestToo(line: String) throws {
    defer { server.stop() }
    let socket = try raw()
    try socket.fd.writeAll(Array((line + "\n{\"verb\":\"status\"}\n").utf8))
    var text = ""
    while text.split(separator: "\n").count < 2 {
      try #require(try socket.fd.waitUntilReadable(milliseconds: patience))
      text += String(decoding: try #require(try socket.fd.readAvailable(limit: 4096)), as: UTF8.self)
    }
    let lines = text.split(separator: "\n")
    #expect(lines[0].contains("\"ok\":false"))
    #expect(lines[1].contains("status \(ProcessID.user)"))
  }

  @Test func lineWithoutAnEndIsCutOff() throws {
    defer { server.stop() }
    let socket = try raw()
    let chunk = [UInt8](repeating: UInt8(ascii: "x"), count: 4096)
    var sent = 0
    var end: Errno?
    // The server hangs up after four chunks and not after a thousand.
    while end == nil, sent < 1000 * chunk.count {
      do throws(Errno) {
        sent += try LocalSocket.send(chunk[...], to: socket.fd)
      } catch {
        if error == .EAGAIN { usleep(1000) } else { end = error }
      }
    }
    #expect(end == Errno(EPIPE) || end == Errno(ECONNRESET))
    #expect(try client().ask(.status, milliseconds: patience).isGood)
  }

  @Test func thoseWhoSayNothingKeepNobodyWaiting() throws {
    defer { server.stop() }
    // More than the server keeps.
    let silent = try (0..<100).map { _ in OwnedDirectory(try raw()) }
    let half = try raw()
    try half.fd.writeAll(Array("{\"verb\":".utf8))
    for _ in 0..<3 { #expect(try client().ask(.status, milliseconds: patience).isGood) }
    // Those who were silent for longest have been hung up on; the last ones have not.
    try #require(try silent[0].owned.fd.waitUntilReadable(milliseconds: patience))
    let words = try #require(try silent[0].owned.fd.readAvailable(limit: 4096))
    #expect(String(decoding: words, as: UTF8.self).contains("too many requests in progress"))
    #expect(try silent[0].owned.fd.readAvailable(limit: 1) == nil)
    #expect(try !silent[99].owned.fd.waitUntilReadable(milliseconds: 0))
  }

  @Test func oneWhoDoesNotListenIsLeft() throws {
    defer { server.stop() }
    let deaf = try raw()
    let requests = Array(String(repeating: "{\"verb\":\"status\"}\n", count: 200).utf8)
    // Stops when neither side can take more, or when the server has hung up.
    for _ in 0..<1000 {
      guard let sent = try? LocalSocket.send(requests[...], to: deaf.fd), sent == requests.count else {
        break
      }
    }
    #expect(try client().ask(.status, milliseconds: patience).isGood)
  }

  @Test func staleSocketIsReplacedAndAStoppedServerRefuses() throws {
    server.stop()
    // The name is still there, as after a crash.
    #expect(try temporary.names() == ["s"])
    let next = try ControlServer(in: directory.owned.fd, name: "s", mode: 0o600) { _ in .reply(.done) }
    try next.start()
    #expect(try client().ask(.status, milliseconds: patience) == .done)
    next.stop()
  }

  @Test func daemonThatIsGoneIsAnErrorAndNotAWait() throws {
    let client = try client()
    server.stop()
    #expect(throws: Errno.self) { try client.ask(.status, milliseconds: 100) }
  }
}

@Suite struct ControlMessageTests {
  @Test func countsOfAnyKindComeThrough() {
    struct Report: Codable {
      var word = "a", yes = true, many = UInt64(1) << 40, half = 0.5
    }
    let fields = JSONValue.fields(of: Report())
    #expect(
      fields == ["word": .string("a"), "yes": .bool(true), "many": .integer(1 << 40), "half": .number(0.5)])
    #expect(JSONValue.fields(of: [1, 2]).isEmpty)
  }

  @Test func socketsLieWhereTheirUsersMayLook() {
    #expect(ControlPlace(uid: 0, runtimeDirectory: "/run/user/0").ownDirectory == "/run/insula")
    #expect(ControlPlace(uid: 5, runtimeDirectory: "/run/user/5").ownDirectory == "/run/user/5/insula")
    #expect(ControlPlace(uid: 5, runtimeDirectory: nil).ownDirectory == nil)
    #expect(ControlPlace(uid: 5, runtimeDirectory: "relative").ownDirectory == nil)
  }
}
