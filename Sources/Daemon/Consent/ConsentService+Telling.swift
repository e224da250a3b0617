// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// Who is told of what is new for those who wait; none of them but ``settled`` may wait.
final class ConsentListeners: Sendable {
  let agents = Mutex<[@Sendable (_ user: UInt32) -> Void]>([])
  let apps = Mutex<[@Sendable (_ view: UInt64) -> Void]>([])
  let settled = Mutex<[@Sendable () -> Bool]>([])
}

// Only those are told who wait for what is new: nobody has everybody's calls asked.

extension ConsentService {
  /// Has someone told when there is something new for a user's agents, or for those that read for their apps.
  func tellAgents(_ body: @escaping @Sendable (_ user: UInt32) -> Void) {
    listeners.agents.withLock { $0.append(body) }
  }

  /// Has someone told when a call of a view has its answer.
  func tellApps(_ body: @escaping @Sendable (_ view: UInt64) -> Void) {
    listeners.apps.withLock { $0.append(body) }
  }

  /// Has someone see to it that no app is told any more what was found before a decision; it may wait, and
  /// says whether it is so.
  func settle(_ body: @escaping @Sendable () -> Bool) { listeners.settled.withLock { $0.append(body) } }

  func poke(agentsOf user: UInt32) { for body in listeners.agents.withLock({ $0 }) { body(user) } }

  /// A call of a view that waits; whoever gives the answer need tell nobody.
  func call(of view: UInt64) -> PromptCall {
    PromptCall { [listeners] in for body in listeners.apps.withLock({ $0 }) { body(view) } }
  }

  /// Sees to it that no app is told any more what was found before; what to say where that could not be
  /// waited for.
  func settle() -> ControlFailure? {
    guard !listeners.settled.withLock({ $0 }).allSatisfy({ $0() }) else { return nil }
    DaemonLog.write(
      "the thread that answers apps does not get on; what was decided is in effect all the same")
    return ControlFailure(
      "the change is recorded and in effect, but the daemon is too slow with its answers to apps: an app may "
        + "still be told what was found for it before; run this command again to be sure")
  }
}
