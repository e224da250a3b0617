// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Synchronization

// The sockets of running apps, one for each view.
//
//  1. Whoever calls is known by the socket that the call came through: each view has one of its own, bound
//     into its sandbox. Nothing that a caller sends says who they are.
//  2. All sockets are served on one thread, which never waits for a caller or a disk. Each view has a turn,
//     in which one of its calls is answered; so a view that calls all the time has as much as any other.
//  3. A call that has no answer yet costs its connection and nothing else: no thread, no descriptor besides.
//     It ends with its answer, with its caller, or with the view.
//  4. Connections are counted, for each view and in its user's budget. Whoever has too many is refused alone.
//  5. No descriptor is taken in or given out.
//  6. A call that waits says for what. Whoever changes something says what it was, and only the calls are
//     asked that wait for that, one of each view in a turn. So nobody makes the thread work by changes that
//     concern them alone, beyond what their own calls cost; asking a call must cost little. What takes a look
//     at a disk is read on a thread of the user's (`GrantReadings`).

/// What a call may wait for.
package enum AppTopic: Hashable, Sendable {
  /// What an app of a user was granted.
  case grants(AppOfUser)
  /// What somebody does for one view: the number of a ``RunningView``.
  case view(UInt64)
  /// How much room there is.
  case space
}

/// What becomes of a call.
package enum AppAnswer: Sendable {
  case reply(ControlReply)
  /// There is no answer yet. `until` gives it as soon as there is one: it is asked at once, and again
  /// whenever its topic has changed (``AppSocketServer/poke(_:)``).
  case waits(for: AppTopic, until: @Sendable () -> ControlReply?)
}

/// See the rules above.
package final class AppSocketServer: Sendable {
  /// Answers a call; runs on the server's thread, so it must not wait for anything.
  package typealias Handler = @Sendable (ControlRequest) -> AppAnswer

  /// What one view may have.
  package struct Limits: Sendable {
    package var connections = 16
    /// No request is longer.
    package var requestBytes = 8192

    package init() {}
  }

  /// How often those that wait are asked again, however often something changes.
  static let pokeNanoseconds: UInt64 = 20_000_000

  private enum Change {
    case add(AppEndpoint)
    case remove(UInt64)
  }

  /// What other threads have to say to this one.
  private struct Messages {
    /// In order: endpoints that come, and views that go.
    var changes: [Change] = []
    /// What has changed.
    var news: Set<AppTopic> = []
    var isStopping = false
    /// Those who wait for the end of this turn.
    var settling: [Condition<Bool>] = []
    var thread: JoinableThread?
    /// The views that have a socket.
    var known: Set<UInt64> = []
  }

  private let messages = Mutex(Messages())
  private let wakeup: Wakeup
  private let budget: Budget
  private let limits: Limits
  /// Calls that wait for an answer.
  private let waiting = Atomic<Int>(0)
  private let connections = Atomic<Int>(0)

  package init(
    budget: Budget = Budget(Budget.Limits(descriptors: 0)), limits: Limits = Limits()
  ) throws(Errno) {
    wakeup = try Wakeup()
    self.budget = budget
    self.limits = limits
  }

  /// How many connections there are, and how many of them wait for an answer.
  package var counts: (connections: Int, waiting: Int) {
    (connections.load(ordering: .relaxed), waiting.load(ordering: .relaxed))
  }

  /// Serves the socket of a view from here on, in place of an earlier one.
  ///
  /// `view` is what the budget knows it by. The listener must not wait when it is asked for callers.
  package func add(
    _ number: UInt64, view: UInt32 = 0, user: UInt32, listener: consuming OwnedFD, handler: @escaping Handler
  ) throws(Errno) {
    let endpoint = AppEndpoint(number, user, view, listener, handler)
    try messages.withLock { (messages) throws(Errno) in
      guard !messages.isStopping else { throw .EBUSY }
      if messages.thread == nil {
        messages.thread = try JoinableThread(name: "app-sockets") { [self] in serve() }
      }
      if !messages.known.insert(number).inserted { messages.changes.append(.remove(number)) }
      messages.changes.append(.add(endpoint))
    }
    wakeup.ring()
  }

  /// The view has ended, and with it all its calls.
  package func remove(_ number: UInt64) {
    let isKnown = messages.withLock { messages in
      guard messages.known.remove(number) != nil else { return false }
      messages.changes.append(.remove(number))
      return true
    }
    if isKnown { wakeup.ring() }
  }

  /// Something has changed that calls may be waiting for.
  ///
  /// Costs nothing where none waits; never waits.
  package func poke(_ topics: Set<AppTopic>) {
    guard !topics.isEmpty, waiting.load(ordering: .sequentiallyConsistent) > 0 else { return }
    let isFirst = messages.withLock { messages in
      defer { messages.news.formUnion(topics) }
      return messages.news.isEmpty
    }
    if isFirst { wakeup.ring() }
  }

  /// How long whoever has changed something waits for the thread, which never waits itself: this is for one
  /// that can't go on at all.
  package static let settleMilliseconds = 10_000

  /// Returns when all answers have gone out, or never will, that were found before; for whoever has changed
  /// something after which they would be others.
  ///
  /// False if the thread did not get that far in time. Not on the server's own thread, nor in a handler.
  package func settle(milliseconds: Int = settleMilliseconds) -> Bool {
    let isOver = Condition(false)
    let isServed = messages.withLock { messages in
      guard messages.thread != nil, !messages.isStopping else { return false }
      messages.settling.append(isOver)
      return true
    }
    guard isServed else { return true }
    wakeup.ring()
    return isOver.wait(milliseconds: milliseconds) { $0 }
  }

  /// Serves nobody any more.
  package func stop() {
    let thread = messages.withLock { messages in
      messages.isStopping = true
      return messages.thread.take()
    }
    wakeup.ring()
    thread?.join()
  }

  // MARK: The thread

  private func serve() {
    let begun = untilStopped { () throws(Errno) in
      try ServedAppSockets(limits, budget, wakeup: wakeup.fd) { [self] in
        waiting.store($0, ordering: .sequentiallyConsistent)
      }
    }
    guard var served = begun else { return }
    while let events = untilStopped({ () throws(Errno) in try served.wait() }) {
      if events.contains(where: { $0.number == ServedAppSockets.wakeup }), !takeMessages(&served) { return }
      served.serve(events)
      connections.store(served.count, ordering: .relaxed)
    }
  }

  /// Tries again what fails while the machine is short of something: apps wait for this thread alone.
  private func untilStopped<Result: ~Copyable>(_ body: () throws(Errno) -> Result) -> Result? {
    var isTold = false
    while true {
      do throws(Errno) { return try body() } catch {
        if messages.withLock({ $0.isStopping }) { return nil }
        if !isTold { DaemonLog.write("can't serve the sockets of apps for a moment: \(error.message)") }
        isTold = true
        pauseThread(milliseconds: 100)
      }
    }
  }

  /// False at the end.
  private func takeMessages(_ served: inout ServedAppSockets) -> Bool {
    _ = try? wakeup.fd.readAvailable(limit: 8)
    let (changes, news, isStopping, settling) = messages.withLock { messages in
      defer { (messages.changes, messages.news, messages.settling) = ([], [], []) }
      return (messages.changes, messages.news, messages.isStopping, messages.settling)
    }
    for isOver in settling { isOver.change { $0 = true } }
    if isStopping { return false }
    for change in changes {
      switch change {
      case .add(let endpoint): served.add(endpoint)
      case .remove(let view): served.remove(view)
      }
    }
    served.poke(news)
    return true
  }
}
