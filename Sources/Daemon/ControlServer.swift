// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Synchronization

/// Answers commands on a local socket, on a thread of its own.
///
/// Nothing that a client does, or fails to do, keeps another waiting: what it sends is collected until a line is whole, what it
/// does not fetch is not sent again, and when too many are connected, of the user with the most the one that has been silent for
/// longest goes.
package final class ControlServer: Sendable {
  /// Answers one request, or says what is to be done about it; runs on the server's thread.
  package typealias Handler = @Sendable (ControlCall) -> ControlAnswer

  private let mostClients: Int
  private let listener: OwnedFD
  private let wakeup: Wakeup
  private let handler: Handler
  private let thread = Mutex<JoinableThread?>(nil)
  private let jobs = ControlJobs()
  private let passed = PassedDescriptors()

  /// Listens in `directory`; a socket of that name that nobody listens on any more is cleared away.
  ///
  /// Only one who holds the store's lock may call this: that is what makes an old socket a stale one.
  package init(
    in directory: FD, name: String, mode: UInt32, mostClients: Int = 512, handler: @escaping Handler
  ) throws(Errno) {
    do throws(Errno) {
      try directory.remove(name, directory: false)
    } catch {
      guard error == .ENOENT else { throw error }
    }
    listener = try LocalSocket.listen(in: directory, name: name, mode: mode)
    wakeup = try Wakeup()
    self.mostClients = mostClients
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
    wakeup.ring()
    let thread = thread.withLock { $0.take() }
    if let thread { thread.join() }
  }

  private func serve() {
    // Oldest activity first.
    var clients: [ControlConnection] = []
    while true {
      let watched = [wakeup.fd, listener.fd] + clients.map(\.fd)
      guard let ready = try? waitForAny(of: watched, milliseconds: -1), !ready[0] else { return }
      var silent: [ControlConnection] = []
      var active: [ControlConnection] = []
      for (client, isReady) in zip(clients, ready.dropFirst(2)) {
        if !isReady {
          silent.append(client)
          continue
        }
        switch client.receive(answeringWith: handler) {
        case .goesOn: active.append(client)
        case .isOver: break
        case .waits(let queue, let job): jobs.start(job, in: queue, for: client)
        }
      }
      clients = silent + active
      if ready[1] { welcome(&clients) }
    }
  }

  /// Who connects without end loses their own connections, and nobody else theirs.
  private static func dismissOne(of clients: inout [ControlConnection]) {
    let counts = clients.reduce(into: [UInt32: Int]()) { $0[$1.peer.uid, default: 0] += 1 }
    guard let user = counts.max(by: { $0.value < $1.value })?.key,
      let first = clients.firstIndex(where: { $0.peer.uid == user })
    else { return }
    clients.remove(at: first)
  }

  private func welcome(_ clients: inout [ControlConnection]) {
    do throws(Errno) {
      clients.append(try ControlConnection(try LocalSocket.accept(listener.fd), passed))
      if clients.count > mostClients { Self.dismissOne(of: &clients) }
    } catch {
      // Without a free descriptor the caller stays in the queue; asking again at once would only spin.
      guard error == .EMFILE || error == .ENFILE || error == .ENOMEM else { return }
      if clients.isEmpty {
        _ = try? wakeup.fd.waitUntilReadable(milliseconds: 100)
      } else {
        Self.dismissOne(of: &clients)
      }
    }
  }
}
