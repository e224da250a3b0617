// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

/// What a node knows of its object's ACL and flags.
enum KnownSecurity {
  case unknown
  /// There are none.
  case none
  /// There are some; the volume's cache has them, unless it has had to make room.
  case some

  init(_ flags: Node.Flags) {
    self = !flags.contains(.securityKnown) ? .unknown : flags.contains(.hasSecurity) ? .some : .none
  }
}

/// The ACLs and flags of objects that have any, for all views of a volume.
///
/// An entry is always true: a change of an object's ACL or flags calls ``changed(_:)`` after the change and
/// before the reply. A reader passes the generation in which it began to read, and what it read is not stored
/// if a change has come since. The lock is held for memory accesses only.
final class SecurityCache: Sendable {
  /// More than this are read again when they are needed.
  static let capacity = 8192

  private struct Key: Hashable {
    let identity: Identity
    static func == (a: Key, b: Key) -> Bool {
      a.identity.inode == b.identity.inode && a.identity.device == b.identity.device
        && a.identity.handle == b.identity.handle
    }
    func hash(into hasher: inout Hasher) {
      hasher.combine(identity.inode)
      hasher.combine(identity.device)
    }
  }
  private struct State {
    var known: [Key: Security] = [:]
    /// In the order in which they came, from `oldest` on and around.
    var order: [Key] = []
    var oldest = 0
  }
  private let state = OrderedMutex(.leaf, State())
  private let counter = Atomic<UInt64>(0)

  /// How many changes there have been; to be asked for before reading.
  var changes: UInt64 { counter.load(ordering: .acquiring) }

  var count: Int { state.withLock { $0.known.count } }

  func find(_ identity: Identity) -> Security? {
    state.withLock { $0.known[Key(identity: identity)] }
  }

  /// Takes in what was read, unless something has been changed since.
  func note(_ security: Security, of identity: Identity, readAfter changes: UInt64) {
    let key = Key(identity: identity)
    state.withLock { state in
      guard self.changes == changes, state.known.updateValue(security, forKey: key) == nil else { return }
      if state.order.count < Self.capacity {
        state.order.append(key)
      } else {
        // What was forgotten meanwhile has left its place in the order; it does no harm to remove nothing.
        state.known[state.order[state.oldest]] = nil
        state.order[state.oldest] = key
        state.oldest = (state.oldest + 1) % Self.capacity
      }
    }
  }

  /// An object has other flags, or another ACL.
  func changed(_ identity: Identity) {
    state.withLock { state in
      counter.wrappingAdd(1, ordering: .acquiringAndReleasing)
      // Its place in the order stays for a later object to take; should this one be noted again, it has two.
      state.known[Key(identity: identity)] = nil
    }
  }
}
