// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// What the thread of ``AppSocketServer`` serves: endpoints and connections, by the numbers under which the
/// kernel tells of them.
struct ServedAppSockets: ~Copyable {
  /// The number of what wakes the thread.
  static let wakeup: UInt64 = 0
  /// Callers of one view that are taken in before the others have their turn.
  private static let mostAtOnce = 16
  private static let mostEvents = 256
  /// For so long an endpoint has no new callers when there is no descriptor for them.
  private static let pause: UInt64 = 100_000_000

  private let poller: Poller
  private let limits: AppSocketServer.Limits
  private let budget: Budget
  /// Is told how many calls wait for an answer.
  private let countWaiting: (Int) -> Void
  private var last = ServedAppSockets.wakeup
  private var endpoints: [UInt64: AppEndpoint] = [:]
  private var connections: [UInt64: AppConnection] = [:]
  /// The numbers of an endpoint and of its connections, by the number of the view.
  private var ofView: [UInt64: (endpoint: UInt64, connections: [UInt64])] = [:]
  /// Connections with a request that was not looked at yet.
  private var ready: Set<UInt64> = []
  /// Those that wait for an answer.
  private var parked = ParkedCalls() { didSet { countWaiting(parked.count) } }
  /// What has changed since calls were last asked.
  private var news: Set<AppTopic> = []
  private var lastPoke: UInt64 = 0
  /// Those whose topic has changed, and that were not asked yet.
  private var due: Set<UInt64> = []
  /// Endpoints that take nobody in for a while.
  private var paused: [UInt64: AppEndpoint] = [:]
  private var pausedAt: UInt64 = 0

  var count: Int { connections.count }

  init(
    _ limits: AppSocketServer.Limits, _ budget: Budget, wakeup: FD, countWaiting: @escaping (Int) -> Void
  ) throws(Errno) {
    let made = try Poller()
    try made.add(wakeup, as: Self.wakeup)
    poller = made
    self.limits = limits
    self.budget = budget
    self.countWaiting = countWaiting
  }

  // MARK: Views

  mutating func add(_ endpoint: AppEndpoint) {
    last &+= 1
    guard (try? poller.add(endpoint.fd, as: last)) != nil else {
      return DaemonLog.write("no memory for the socket of an app of uid \(endpoint.user)")
    }
    endpoints[last] = endpoint
    ofView[endpoint.number] = (last, [])
  }

  mutating func remove(_ view: UInt64) {
    guard let known = ofView.removeValue(forKey: view) else { return }
    endpoints[known.endpoint] = nil
    paused[known.endpoint] = nil
    for number in known.connections { forget(number) }
  }

  // MARK: Turns

  /// What has happened; waits until there is something to do.
  borrowing func wait() throws(Errno) -> [Poller.Event] {
    try poller.wait(most: Self.mostEvents, milliseconds: patience)
  }

  private var patience: Int32 {
    if !ready.isEmpty || !due.isEmpty { return 0 }
    var ends: [UInt64] = []
    if !news.isEmpty { ends.append(lastPoke &+ AppSocketServer.pokeNanoseconds) }
    if !paused.isEmpty { ends.append(pausedAt &+ Self.pause) }
    guard let end = ends.min() else { return -1 }
    let now = monotonicNanoseconds()
    return end <= now ? 0 : Int32(clamping: (end &- now) / 1_000_000 &+ 1)
  }

  /// Gives each view with something to say its turn.
  mutating func serve(_ events: [Poller.Event]) {
    for event in events where event.number != Self.wakeup {
      if let endpoint = endpoints[event.number] {
        welcome(endpoint, event.number)
      } else if connections[event.number] == nil {
        // It has gone since.
      } else if event.isReadable {
        ready.insert(event.number)
      } else if event.hasEnded {
        close(event.number)
      }
    }
    for number in oneOfEachView(ready) { takeTurn(number) }
    if !news.isEmpty, monotonicNanoseconds() &- lastPoke >= AppSocketServer.pokeNanoseconds { findDue() }
    for number in oneOfEachView(due) { askAgain(number) }
    if !paused.isEmpty, monotonicNanoseconds() &- pausedAt >= Self.pause { goOn() }
  }

  /// Of some connections one of each view, the one that has had no turn for longest.
  private mutating func oneOfEachView(_ numbers: Set<UInt64>) -> [UInt64] {
    let views = Set(numbers.compactMap { connections[$0]?.endpoint.number })
    return views.compactMap { view in ofView[view]?.connections.first(where: numbers.contains) }
  }

  private mutating func takeTurn(_ number: UInt64) {
    ready.remove(number)
    guard let connection = connections[number] else { return }
    switch connection.takeTurn(requestLimit: limits.requestBytes) {
    case .isOver: close(number)
    case .goesOn:
      moveBack(number, of: connection.endpoint.number)
      if connection.hasRequest { ready.insert(number) }
    case .waits(let topic, let until):
      connection.answer = until
      parked.insert(number, topic)
      // It may have come to that before it was known that somebody waits for it.
      if let reply = until() { return answer(number, reply) }
      guard (try? poller.change(connection.fd, as: number, to: .nothing)) != nil else { return close(number) }
    }
  }

  private mutating func moveBack(_ number: UInt64, of view: UInt64) {
    guard let index = ofView[view]?.connections.firstIndex(of: number) else { return }
    ofView[view]?.connections.remove(at: index)
    ofView[view]?.connections.append(number)
  }

  // MARK: Calls that wait

  /// Something has changed; what nobody waits for makes no difference.
  mutating func poke(_ topics: Set<AppTopic>) {
    for topic in topics where parked.has(topic) { news.insert(topic) }
  }

  private mutating func findDue() {
    lastPoke = monotonicNanoseconds()
    for topic in news { due.formUnion(parked.calls(for: topic)) }
    news = []
  }

  private mutating func askAgain(_ number: UInt64) {
    due.remove(number)
    if let reply = connections[number]?.answer?() { answer(number, reply) }
  }

  private mutating func answer(_ number: UInt64, _ reply: ControlReply) {
    guard let connection = connections[number] else { return }
    parked.remove(number)
    connection.answer = nil
    guard connection.send(reply), (try? poller.change(connection.fd, as: number, to: .reading)) != nil else {
      return close(number)
    }
    moveBack(number, of: connection.endpoint.number)
    if connection.hasRequest { ready.insert(number) }
  }

  // MARK: Callers

  private mutating func welcome(_ endpoint: AppEndpoint, _ number: UInt64) {
    do throws(Errno) {
      for _ in 0..<Self.mostAtOnce { try admit(LocalSocket.accept(endpoint.fd), of: endpoint) }
    } catch {
      // Without a free descriptor the caller stays in the queue, and the kernel would tell of it at once.
      guard error != .EAGAIN, error != .ECONNABORTED else { return }
      guard (try? poller.change(endpoint.fd, as: number, to: .nothing)) != nil else { return }
      paused[number] = endpoint
      pausedAt = monotonicNanoseconds()
    }
  }

  private mutating func goOn() {
    for (number, endpoint) in paused { try? poller.change(endpoint.fd, as: number, to: .reading) }
    paused = [:]
  }

  private mutating func admit(_ socket: consuming OwnedFD, of endpoint: AppEndpoint) {
    let caller = try? LocalSocket.peer(of: socket.fd)
    // Nobody but the app's user gets into its view; whoever got here otherwise has no answer to get.
    guard caller?.uid == endpoint.user else { return }
    let count = ofView[endpoint.number]?.connections.count ?? 0
    guard let share = try? BudgetShare(.descriptors, of: endpoint.payer, in: budget) else { return }
    let connection = AppConnection(socket, of: endpoint, share)
    guard count < limits.connections else {
      budget.refuse(.requests, endpoint.user)
      _ = connection.send(.failure(.crowded))
      return
    }
    last &+= 1
    guard (try? poller.add(connection.fd, as: last)) != nil else { return }
    connections[last] = connection
    ofView[endpoint.number]?.connections.append(last)
  }

  private mutating func close(_ number: UInt64) {
    guard let view = connections[number]?.endpoint.number else { return }
    ofView[view]?.connections.removeAll { $0 == number }
    forget(number)
  }

  private mutating func forget(_ number: UInt64) {
    connections[number] = nil
    ready.remove(number)
    due.remove(number)
    if parked.contains(number) { parked.remove(number) }
  }
}

/// The calls that wait, by what they wait for.
struct ParkedCalls {
  private var topics: [UInt64: AppTopic] = [:]
  private var numbers: [AppTopic: Set<UInt64>] = [:]

  var count: Int { topics.count }

  func contains(_ number: UInt64) -> Bool { topics[number] != nil }
  func has(_ topic: AppTopic) -> Bool { numbers[topic] != nil }
  func calls(for topic: AppTopic) -> Set<UInt64> { numbers[topic] ?? [] }

  mutating func insert(_ number: UInt64, _ topic: AppTopic) {
    topics[number] = topic
    numbers[topic, default: []].insert(number)
  }

  mutating func remove(_ number: UInt64) {
    guard let topic = topics.removeValue(forKey: number) else { return }
    numbers[topic]?.remove(number)
    if numbers[topic]?.isEmpty == true { numbers[topic] = nil }
  }
}
