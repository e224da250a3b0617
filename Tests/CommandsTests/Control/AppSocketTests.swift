// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// The sockets of apps, without apps: whoever connects is known by the socket alone.
@Suite(.serialized) struct AppSocketTests {
  /// Sockets in a directory, each of which answers with a name of its own.
  private final class Sockets: Sendable {
    let directory: TemporaryDirectory
    let server: AppSocketServer
    private let opened: OwnedFD
    /// What the calls that wait are waiting for.
    let isDone = Atomic<Bool>(false)
    /// How long an answer takes, in microseconds.
    let slowness = Atomic<UInt32>(0)
    let asked = Atomic<Int>(0)
    /// The same for each socket.
    let askedOf = Mutex<[UInt64: Int]>([:])

    init(_ limits: AppSocketServer.Limits = .init()) throws {
      directory = try TemporaryDirectory()
      opened = try FD.cwd.openFollowing(directory.path, O_RDONLY | O_DIRECTORY)
      server = try AppSocketServer(budget: Budget(Budget.Limits(descriptors: 1 << 16)), limits: limits)
    }

    deinit { server.stop() }

    /// A socket whose calls are answered with its number; a wish for a change of grants waits: for what is
    /// done for that socket, or for room if that is the version that it names.
    func add(_ number: UInt64, user: UInt32 = ProcessID.user) throws {
      let name = "s\(number)"
      let made = try LocalSocket.listen(
        in: opened.fd, name: name, mode: 0o600, takesDescriptors: false)
      try LocalSocket.neverWait(made.fd)
      try server.add(number, view: UInt32(number), user: user, listener: made) { [self] request in
        if case .grantChange(let version) = request {
          return .waits(for: version == "room" ? .space : .view(number)) { [self] in
            let answer = isDone.load(ordering: .sequentiallyConsistent)
            asked.wrappingAdd(1, ordering: .relaxed)
            askedOf.withLock { $0[number, default: 0] += 1 }
            usleep(slowness.load(ordering: .relaxed))
            return answer ? .path("done \(number)") : nil
          }
        }
        return .reply(.path("\(number)"))
      }
    }

    func client(_ number: UInt64) throws -> ControlClient {
      try ControlClient(in: opened.fd, name: "s\(number)")
    }

    func connect(_ number: UInt64) throws -> OwnedFD {
      try LocalSocket.connect(in: opened.fd, name: "s\(number)")
    }

    func isAnswered(_ number: UInt64) throws -> Bool {
      try client(number).ask(.own, milliseconds: 5000) == .path("\(number)")
    }
  }

  @Test func eachSocketIsItsOwn() throws {
    let sockets = try Sockets()
    for number in UInt64(1)...20 { try sockets.add(number) }
    for number in UInt64(1)...20 {
      #expect(try sockets.isAnswered(number))
      let client = try sockets.client(number)
      for _ in 0..<3 { #expect(try client.ask(.status, milliseconds: 5000) == .path("\(number)")) }
    }
    sockets.server.remove(7)
    #expect(eventually { (try? sockets.isAnswered(7)) != true })
    #expect(try sockets.isAnswered(8))
  }

  @Test func nobodyElseIsAnswered() throws {
    let sockets = try Sockets()
    try sockets.add(1, user: ProcessID.user &+ 1)
    #expect(throws: Errno.ECONNABORTED) {
      try sockets.client(1).ask(.own, milliseconds: 5000)
    }
  }

  @Test func callsWaitWithoutAThread() throws {
    let sockets = try Sockets()
    try sockets.add(1)
    let threads = try threadCount()
    let waiting = try (0..<10).map { _ in try sockets.client(1) }
    for client in waiting { try client.send(.grantChange(from: "")) }
    #expect(eventually { sockets.server.counts.waiting == 10 })
    // Other tests of this process may have begun or ended a thread meanwhile.
    #expect(try threadCount() < threads + waiting.count)
    // Others of the view are answered meanwhile, and changes that are not meant change nothing.
    #expect(try sockets.isAnswered(1))
    for _ in 0..<1000 { sockets.server.poke([.view(1)]) }
    #expect(throws: Errno.EAGAIN) { try waiting[0].awaitReply(milliseconds: 100) }
    // However often something changes, they are not asked again all the time.
    #expect(sockets.asked.load(ordering: .relaxed) < 300)
    sockets.isDone.store(true, ordering: .relaxed)
    sockets.server.poke([.view(1)])
    for client in waiting {
      #expect(try client.awaitReply(milliseconds: 5000) == .path("done 1"))
      #expect(try client.ask(.own, milliseconds: 5000) == .path("1"))
    }
    #expect(sockets.server.counts.waiting == 0)
  }

  /// Who takes back what an answer was made of knows that it has arrived by then, or never will.
  @Test func nothingIsOnItsWayAfterSettling() throws {
    let sockets = try Sockets()
    #expect(sockets.server.settle())
    try sockets.add(1)
    for round in 0..<20 {
      sockets.isDone.store(true, ordering: .sequentiallyConsistent)
      // It is being answered while that is taken back.
      sockets.slowness.store(2000, ordering: .relaxed)
      let before = sockets.asked.load(ordering: .relaxed)
      let client = try sockets.client(1)
      try client.send(.grantChange(from: ""))
      if round % 2 == 0 {
        while sockets.asked.load(ordering: .relaxed) == before { usleep(50) }
      }
      sockets.isDone.store(false, ordering: .sequentiallyConsistent)
      #expect(sockets.server.settle())
      if try client.fd.waitUntilReadable(milliseconds: 0) { continue }
      sockets.server.poke([.view(1)])
      #expect(throws: Errno.EAGAIN) { try client.awaitReply(milliseconds: 60) }
    }
  }

  /// Who has something changed all the time has none but their own calls asked.
  @Test func callsAreAskedWhenTheirOwnTopicChanges() throws {
    let sockets = try Sockets()
    for number in UInt64(1)...3 { try sockets.add(number) }
    let waiting = try (0..<15).map { try sockets.client(UInt64($0 % 3 + 1)) }
    for client in waiting { try client.send(.grantChange(from: "")) }
    let room = try sockets.client(2)
    try room.send(.grantChange(from: "room"))
    #expect(eventually { sockets.server.counts.waiting == 16 })
    let before = sockets.askedOf.withLock { $0 }
    #expect(before == [1: 5, 2: 6, 3: 5])
    for round in 1...10 {
      sockets.server.poke([.view(1)])
      #expect(eventually { sockets.askedOf.withLock { $0[1] == 5 + 5 * round } })
    }
    // What nobody waits for.
    sockets.server.poke([.view(4)])
    sockets.server.poke([])
    #expect(sockets.server.settle())
    #expect(sockets.askedOf.withLock { $0 } == [1: 55, 2: 6, 3: 5])
    sockets.server.poke([.space, .view(3)])
    #expect(eventually { sockets.askedOf.withLock { $0 == [1: 55, 2: 7, 3: 10] } })
  }

  /// The attack: all calls of one view are asked at once, which takes its time, and the others wait for that.
  @Test func callsThatAreAskedTakeTurns() throws {
    let sockets = try Sockets()
    for number in UInt64(1)...2 { try sockets.add(number) }
    let waiting = try (0..<15).map { _ in try sockets.client(1) }
    for client in waiting { try client.send(.grantChange(from: "")) }
    let other = try sockets.client(2)
    #expect(try other.ask(.own, milliseconds: 60_000) == .path("2"))
    #expect(eventually { sockets.server.counts.waiting == 15 })
    sockets.slowness.store(100_000, ordering: .relaxed)
    let before = sockets.asked.load(ordering: .relaxed)
    sockets.server.poke([.view(1)])
    #expect(eventually { sockets.asked.load(ordering: .relaxed) > before })
    for _ in 0..<2 { #expect(try other.ask(.own, milliseconds: 60_000) == .path("2")) }
    let asked = sockets.asked.load(ordering: .relaxed) - before
    #expect(asked < 15, "another view has waited for \(asked) of them")
    #expect(eventually { sockets.asked.load(ordering: .relaxed) - before == 15 })
  }

  /// Who gives up waiting for the thread says so.
  @Test func settlingThatGivesUpSaysSo() throws {
    let sockets = try Sockets()
    try sockets.add(1)
    sockets.slowness.store(2_000_000, ordering: .relaxed)
    let client = try sockets.client(1)
    try client.send(.grantChange(from: ""))
    #expect(eventually { sockets.asked.load(ordering: .relaxed) == 1 })
    #expect(!sockets.server.settle(milliseconds: 20))
    #expect(sockets.server.settle(milliseconds: 60_000))
  }

  private func threadCount() throws -> Int {
    try #require(ProcessID.field("Threads", of: "self").flatMap { Int($0) })
  }

  @Test func callerThatGoesWaitsNoMore() throws {
    let sockets = try Sockets()
    try sockets.add(1)
    try sockets.add(2)
    do {
      let clients = try [UInt64(1), 1, 2].map { try sockets.client($0) }
      for client in clients { try client.send(.grantChange(from: "")) }
      #expect(eventually { sockets.server.counts.waiting == 3 })
    }
    #expect(eventually { sockets.server.counts == (0, 0) })
    // The end of a view ends its calls.
    let client = try sockets.client(2)
    try client.send(.grantChange(from: ""))
    #expect(eventually { sockets.server.counts.waiting == 1 })
    sockets.server.remove(2)
    #expect(throws: Errno.ECONNABORTED) { try client.awaitReply(milliseconds: 5000) }
    #expect(eventually { sockets.server.counts == (0, 0) })
  }

  @Test func tooManyConnectionsAreRefusedAlone() throws {
    let sockets = try Sockets()
    try sockets.add(1)
    try sockets.add(2)
    let clients = try (0..<16).map { _ in try sockets.client(1) }
    for client in clients { #expect(try client.ask(.own, milliseconds: 5000) == .path("1")) }
    #expect(try sockets.client(1).ask(.own, milliseconds: 5000) == .failure(.crowded))
    #expect(try sockets.isAnswered(2))
    #expect(try clients[3].ask(.own, milliseconds: 5000) == .path("1"))
  }

  @Test func requestsHaveALength() throws {
    let sockets = try Sockets()
    try sockets.add(1)
    let socket = try sockets.connect(1)
    let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 16)
    var sent = 0
    while sent < 1 << 20, let count = try? LocalSocket.send(bytes[...], to: socket.fd) { sent += count }
    #expect(eventually { (try? socket.fd.hasHungUp()) == true })
    #expect(try sockets.isAnswered(1))
  }

  /// A thousand views with calls that hang: the others notice nothing of it.
  @Test func hangingCallsDisturbNobody() throws {
    let sockets = try Sockets()
    for number in UInt64(1)...1001 { try sockets.add(number) }
    func median() throws -> UInt64 {
      let client = try sockets.client(1001)
      var times: [UInt64] = []
      for _ in 0..<500 {
        let begin = monotonicNanoseconds()
        _ = try client.ask(.own, milliseconds: 5000)
        times.append(monotonicNanoseconds() - begin)
      }
      return times.sorted()[times.count / 2]
    }
    let before = try median()
    let hanging = try (UInt64(1)...1000).map { try sockets.client($0) }
    for client in hanging { try client.send(.grantChange(from: "")) }
    #expect(eventually { sockets.server.counts.waiting == 1000 })
    let after = try median()
    print("a call takes \(before / 1000) us, beside 1000 views with calls that hang \(after / 1000) us")
    // Neither would be seen if each call looked at all of them.
    #expect(after < before * 3 + 200_000)
  }

  /// Senseless messages end a connection, or get an answer to their own view.
  @Test func senselessMessagesHurtNobody() throws {
    let sockets = try Sockets()
    for number in UInt64(1)...3 { try sockets.add(number) }
    let count = fuzzInputs(usually: 10_000)
    var random = SeededRandom(seed: 11)
    var socket = try sockets.connect(1)
    var answered = 0
    var worst: UInt64 = 0
    for round in 0..<count {
      let message = Self.message(&random)
      if (try? LocalSocket.send(message[...], to: socket.fd)) != message.count {
        socket = try sockets.connect(1)
      }
      // Read what there is, so that the socket is not closed for want of reading.
      while (try? socket.fd.waitUntilReadable(milliseconds: 0)) == true {
        guard let arrived = try? LocalSocket.receive(from: socket.fd, limit: 65536), !arrived.bytes.isEmpty
        else {
          socket = try sockets.connect(1)
          break
        }
        for line in arrived.bytes.split(separator: UInt8(ascii: "\n")) {
          let text = String(decoding: line, as: UTF8.self)
          #expect(!text.contains("\"path\":\"2\"") && !text.contains("\"path\":\"3\""), "\(text)")
          answered += 1
        }
      }
      if round % 512 == 0 {
        let begin = monotonicNanoseconds()
        #expect(try sockets.isAnswered(2))
        worst = max(worst, monotonicNanoseconds() - begin)
      }
    }
    #expect(answered > count / 100)
    #expect(worst < 2_000_000_000, "another view has waited \(worst / 1_000_000) ms")
    #expect(try sockets.isAnswered(1) && sockets.isAnswered(3))
  }

  /// A request with damages: other bytes, more or less of it, no end of a line, several lines.
  private static func message(_ random: inout SeededRandom) -> [UInt8] {
    let requests = [
      #"{"verb":"self"}"#, #"{"verb":"path","place":"documents","identifier":"org.example.notes"}"#,
      #"{"verb":"grants","after":0,"user":0}"#, #"{"verb":"grant-change","version":"0"}"#,
      #"{"verb":"status"}"#, #"{"verb":"pass"}"#, #"{"verb":"endpoint"}"#, "", "null", "[[[[", #"{"verb":"#,
    ]
    var bytes = Array((requests.randomElement(using: &random) ?? "").utf8)
    for _ in 0..<Int.random(in: 0...4, using: &random) where !bytes.isEmpty {
      let index = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
      case 1: bytes.remove(at: index)
      case 2: bytes.insert(contentsOf: bytes.prefix(index), at: index)
      default: bytes.append(UInt8.random(in: 0...255, using: &random))
      }
    }
    if Int.random(in: 0..<8, using: &random) != 0 { bytes.append(UInt8(ascii: "\n")) }
    return bytes
  }
}
