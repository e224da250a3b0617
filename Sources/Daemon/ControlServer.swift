// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Synchronization

/// Answers commands on a local socket, on a thread of its own.
///
/// Nothing that a client does, or fails to do, keeps another user waiting. Connections are accepted at once,
/// so that nobody can fill the socket's backlog. Then each user has a turn, in which one request is answered.
/// What a client sends is collected until a line is whole, what it does not fetch is not sent again, and
/// whatever looks at the disk is a job (``ControlJobs``). So is taking in a descriptor
/// (``PassedDescriptors``).
package final class ControlServer: Sendable {
  /// Answers one request, or says what is to be done about it; runs on the server's thread, so it must not
  /// wait for anything.
  package typealias Handler = @Sendable (ControlCall) -> ControlAnswer

  /// How many callers are taken in before the others have their turn.
  private static let mostAtOnce = 256

  private let limits: ControlConnections.Limits
  private let listener: OwnedFD
  private let wakeup: Wakeup
  private let handler: Handler
  private let thread = Mutex<JoinableThread?>(nil)
  private let budget: Budget
  private let jobs: ControlJobs
  private let passed = PassedDescriptors()

  /// What other threads have to say to this one.
  private struct Messages {
    var isStopping = false
    /// The users for whom something has changed.
    var poked: Set<UInt32> = []
    /// Their jobs are done.
    var returning: [ControlConnection] = []
  }
  private let messages = Mutex(Messages())

  /// Listens in `directory`; a socket of that name that nobody listens on any more is cleared away.
  ///
  /// EADDRINUSE when somebody does. Only one who holds the store's lock may call this.
  package init(
    in directory: FD, name: String, mode: UInt32, limits: ControlConnections.Limits = .init(),
    budget: Budget = Budget(Budget.Limits(descriptors: 0)), kept: KeptState? = nil,
    handler: @escaping Handler
  ) throws(Errno) {
    if let left = kept?.descriptor(.listener) {
      listener = OwnedFD(owning: left.raw)
    } else {
      try LocalSocket.clearStale(in: directory, name: name)
      listener = try LocalSocket.listen(in: directory, name: name, mode: mode, takesDescriptors: false)
      kept?.keep(listener.fd, as: .listener)
    }
    wakeup = try Wakeup()
    self.limits = limits
    self.budget = budget
    jobs = ControlJobs(budget: budget)
    self.handler = handler
  }

  /// Starts to answer.
  package func start() throws(Errno) {
    let started = try JoinableThread(name: "control") { [self] in serve() }
    thread.withLock { $0 = started }
  }

  /// Ends after the answer that is being given, if one is; jobs are cancelled.
  package func stop() {
    jobs.stop()
    messages.withLock { $0.isStopping = true }
    wakeup.ring()
    let thread = thread.withLock { $0.take() }
    if let thread { thread.join() }
    LocalSocket.stopListening(listener.fd)
  }

  /// Something has changed that callers of a user may be waiting for; never waits.
  ///
  /// Nobody else's are asked.
  package func poke(callersOf user: UInt32) {
    let isFirst = messages.withLock { messages in
      defer { messages.poked.insert(user) }
      return messages.poked.isEmpty
    }
    if isFirst { wakeup.ring() }
  }

  private func serve() {
    var clients = ControlConnections(limits)
    while true {
      let connections = clients.all
      let watched = [wakeup.fd, listener.fd] + connections.map(\.fd)
      guard let ready = try? waitForAny(of: watched, milliseconds: clients.hasRequests ? 0 : -1) else {
        // The machine is short of memory; whoever asks waits for a moment.
        if messages.withLock({ $0.isStopping }) { return }
        pauseThread(milliseconds: 100)
        continue
      }
      if ready[0] {
        guard let (returning, poked) = takeMessages() else { return }
        for connection in returning { admit(connection, to: &clients) }
        if !poked.isEmpty {
          clients.removeAll { poked.contains($0.caller.uid) && !$0.answerAwaited() }
        }
      }
      if ready[1] { welcome(&clients) }
      let talking = Set(zip(connections, ready.dropFirst(2)).compactMap { $1 ? ObjectIdentifier($0) : nil })
      // Who waits and can be read has hung up; many may do that at once.
      if !talking.isEmpty {
        clients.removeAll { $0.isWaiting && talking.contains(ObjectIdentifier($0)) }
      }
      for connection in clients.turns({ talking.contains(ObjectIdentifier($0)) }) {
        clients.remove(connection)
        switch connection.takeTurn(answeringWith: handler) {
        case .goesOn: admit(connection, to: &clients)
        case .isOver: break
        case .waits(let queue, let job):
          jobs.start(job, in: queue, for: connection) { [self] in returns($0) }
        }
      }
    }
  }

  /// The connections whose jobs are done, and the users for whom something has changed; nil at the end.
  private func takeMessages() -> (returning: [ControlConnection], poked: Set<UInt32>)? {
    _ = try? wakeup.fd.readAvailable(limit: 8)
    return messages.withLock { messages in
      defer { (messages.returning, messages.poked) = ([], []) }
      return messages.isStopping ? nil : (messages.returning, messages.poked)
    }
  }

  /// A job is done, and its caller may ask for something else.
  private func returns(_ connection: ControlConnection) {
    messages.withLock { $0.returning.append(connection) }
    wakeup.ring()
  }

  private func admit(_ connection: ControlConnection, to clients: inout ControlConnections) {
    if connection.hasEnded { return }
    if let dismissed = clients.add(connection) { dismiss(dismissed) }
  }

  private func dismiss(_ connection: ControlConnection) {
    budget.refuse(.requests, connection.caller.uid)
    connection.dismiss()
  }

  private func welcome(_ clients: inout ControlConnections) {
    do throws(Errno) {
      for _ in 0..<Self.mostAtOnce {
        admit(try ControlConnection(try LocalSocket.accept(listener.fd), passed), to: &clients)
      }
    } catch {
      // Without a free descriptor the caller stays in the queue; asking again at once would only spin.
      guard error == .EMFILE || error == .ENFILE || error == .ENOMEM else { return }
      if let dismissed = clients.removeFromLargest() {
        dismiss(dismissed)
      } else {
        _ = try? wakeup.fd.waitUntilReadable(milliseconds: 100)
      }
    }
  }
}
