// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// Reads for apps what they were granted, on one thread for each user.
///
/// What their users may be told of it lies on disks, which can be slow or not answer at all. So the thread
/// that serves the sockets of all apps does not look, and a user's own thread keeps nobody else waiting.
final class GrantReadings: Sendable {
  /// A call that waits; what nobody waits for any more is not read.
  final class Call: Sendable {
    fileprivate enum State {
      case idle
      case isRead
      case done(ControlReply)
    }
    fileprivate let state = Mutex(State.idle)
    fileprivate let user: UInt32
    private let readings: GrantReadings
    private let read: @Sendable () -> ControlReply
    private let tell: @Sendable () -> Void

    fileprivate init(
      _ user: UInt32, _ readings: GrantReadings, _ read: @escaping @Sendable () -> ControlReply,
      _ tell: @escaping @Sendable () -> Void
    ) {
      (self.user, self.readings, self.read, self.tell) = (user, readings, read, tell)
    }

    /// Whether the answer was asked for before.
    var isBegun: Bool {
      state.withLock { if case .idle = $0 { false } else { true } }
    }

    /// The answer if there is one; otherwise it is being read, or will be.
    func take() -> ControlReply? {
      let (reply, isNew) = state.withLock { state in
        switch state {
        case .idle:
          state = .isRead
          return (ControlReply?.none, true)
        case .isRead: return (nil, false)
        case .done(let reply): return (reply, false)
        }
      }
      guard isNew, !readings.add(self) else { return reply }
      return .failure(ControlFailure("too much is being done; try again later", .EAGAIN))
    }

    fileprivate func go() {
      let reply = read()
      state.withLock { $0 = .done(reply) }
      tell()
    }
  }

  private struct Waiting: Sendable {
    private(set) weak var call: Call?
  }

  private struct State {
    /// What waits, of users who have a thread.
    var lines: [UInt32: [Waiting]] = [:]
    var isOver = false
  }
  private let state = Condition(State())

  /// A call of a user's app: `read` gives its answer on the user's thread, and `tell` tells that it is there.
  func call(
    of user: UInt32, _ read: @escaping @Sendable () -> ControlReply, tell: @escaping @Sendable () -> Void
  ) -> Call {
    Call(user, self, read, tell)
  }

  /// False if it will never be read.
  private func add(_ call: Call) -> Bool {
    let user = call.user
    return state.withLock { state in
      if state.isOver { return false }
      if var line = state.lines.removeValue(forKey: user) {
        // Who hangs up again and again, while the disk does not answer, has no more waiting than calls.
        line.removeAll { $0.call == nil }
        state.lines[user] = line + [Waiting(call: call)]
        return true
      }
      guard let thread = try? JoinableThread(name: "app-grants", { [self] in readAll(of: user) }) else {
        return false
      }
      thread.detach()
      state.lines[user] = [Waiting(call: call)]
      return true
    }
  }

  private func readAll(of user: UInt32) {
    while let next = next(of: user) { next.call?.go() }
  }

  private func next(of user: UInt32) -> Waiting? {
    state.change { state in
      guard !state.isOver, var line = state.lines[user], !line.isEmpty else {
        state.lines[user] = nil
        return nil
      }
      let next = line.removeFirst()
      state.lines[user] = line
      return next
    }
  }

  /// How many wait for a user's thread.
  func count(of user: UInt32) -> Int { state.withLock { $0.lines[user]?.count ?? 0 } }

  /// Reads nothing more; what a disk keeps from ending is left alone after a moment.
  func stop(milliseconds: Int = 2000) {
    state.withLock { $0.isOver = true }
    _ = state.wait(milliseconds: milliseconds) { $0.lines.isEmpty }
  }
}
