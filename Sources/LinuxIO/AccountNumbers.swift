// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// Which numbers are accounts of their own, although another account may have been given them.
///
/// Ranges of `subuid(5)` reach where directory services have their accounts, and `useradd(8)` knows nothing
/// of those. The name service may wait for a server, so a thread of its own asks it; until it has answered,
/// a number is none of these.
package final class AccountNumbers: Sendable {
  private struct Known {
    var isAccount: Bool
    /// When the machine's own file was looked at, and when the name service was asked.
    var looked: UInt32
    var asked: UInt32?
  }
  private struct State {
    var known: [UInt32: Known] = [:]
    /// Owners of homes: the machine may have forgotten them, or their server may be away.
    var owners: Set<UInt32> = []
    /// What the name service is to be asked.
    var waiting: Set<UInt32> = []
    var isAsking = false
  }
  private let local: LocalAccounts
  private let nameService: @Sendable (UInt32) -> Bool
  private let state = Mutex(State())

  /// An account can act under tens of thousands of numbers.
  private static let mostKnown = 1 << 17
  private static let mostWaiting = 1024
  /// In seconds: the name service is asked again, for accounts come and go.
  private static let validity: UInt32 = 600

  package init(
    local: LocalAccounts = .users,
    nameService: @escaping @Sendable (UInt32) -> Bool = { Account.numbered($0) != nil }
  ) {
    self.local = local
    self.nameService = nameService
  }

  /// What is known; it waits for no server.
  package func contains(_ user: UInt32) -> Bool {
    let now = coarseSeconds()
    let known = state.withLock { state in
      state.owners.contains(user) ? Known(isAccount: true, looked: now, asked: now) : state.known[user]
    }
    if let known, known.looked == now { return known.isAccount }
    let isLocal = local.name(of: user) != nil
    let (isAccount, isToAsk) = state.withLock { state in
      if state.known.count >= Self.mostKnown { state.known = state.known.filter { $0.value.isAccount } }
      var known = state.known[user] ?? Known(isAccount: false, looked: now)
      known.looked = now
      let isDue = known.asked.map { now &- $0 >= Self.validity } ?? true
      if isLocal {
        known.isAccount = true
        // Should it go from the file, the name service counts again.
        known.asked = nil
      } else if isDue, state.waiting.count < Self.mostWaiting {
        state.waiting.insert(user)
      }
      state.known[user] = known
      let isToAsk = !state.waiting.isEmpty && !state.isAsking
      if isToAsk { state.isAsking = true }
      return (known.isAccount, isToAsk)
    }
    if isToAsk { askForWaiting() }
    return isAccount
  }

  /// The same for a thread that can wait: if nothing is known yet, it asks.
  package func find(_ user: UInt32) -> Bool {
    if contains(user) { return true }
    // It may have been asked meanwhile, by the thread that asks for those who don't wait.
    if let known = state.withLock({ $0.known[user] }), known.asked != nil { return known.isAccount }
    return ask(user)
  }

  /// Notes owners of homes.
  package func note(owners: some Sequence<UInt32>) { state.withLock { $0.owners.formUnion(owners) } }

  private func askForWaiting() {
    let thread = try? JoinableThread(name: "accounts") { [self] in
      while let user = next() { _ = ask(user) }
    }
    // The next call tries again.
    if let thread { thread.detach() } else { state.withLock { $0.isAsking = false } }
  }

  private func next() -> UInt32? {
    state.withLock { state in
      let next = state.waiting.popFirst()
      if next == nil { state.isAsking = false }
      return next
    }
  }

  private func ask(_ user: UInt32) -> Bool {
    let isAccount = nameService(user)
    let now = coarseSeconds()
    state.withLock { state in
      state.waiting.remove(user)
      state.known[user] = Known(isAccount: isAccount, looked: now, asked: now)
    }
    return isAccount
  }
}
