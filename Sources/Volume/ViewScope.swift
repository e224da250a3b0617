// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Synchronization

/// What of the tree is in a view, as it is now: grants come and go.
final class ViewScope: Sendable {
  private let state: OrderedMutex<Scope>
  private let siblings: SiblingIndex
  private let view: UInt32
  private let siblingCount = Atomic<Int>(0)
  private let asks = Atomic<Bool>(false)
  /// How often places have been numbered again.
  private let numberings = Atomic<Int>(0)
  let root: Position

  init(_ scope: Scope, of view: UInt32, _ siblings: SiblingIndex) {
    root = scope.root
    asks.store(scope.hasPrivatePlaces, ordering: .sequentiallyConsistent)
    state = OrderedMutex(.scope, scope)
    self.view = view
    self.siblings = siblings
  }

  deinit { siblings.remove(value.siblingNumbers, of: view) }

  /// Whether what a name stands for may count, and not the name alone.
  var hasSiblings: Bool { siblingCount.load(ordering: .sequentiallyConsistent) > 0 }

  /// Whether anything in it takes its user's consent.
  var hasPrivatePlaces: Bool { asks.load(ordering: .sequentiallyConsistent) }

  /// All of it, as it is at this moment.
  var value: Scope { state.withLock { $0 } }

  /// Where a name in a directory is; `object` is what has it.
  func position(of name: Name, in directory: Position, object: SiblingObject? = nil) -> Position {
    position(of: name.buffer, in: directory, object: object)
  }

  func position(
    of name: UnsafeBufferPointer<UInt8>, in directory: Position, object: SiblingObject? = nil
  ) -> Position {
    if directory.throughout != nil { return directory }
    return state.withLock { $0.position(of: name, in: directory, object: object) }
  }

  func reach(of position: Position) -> Reach {
    position.throughout ?? state.withLock { $0.reach(of: position) }
  }

  /// Whether a directory has things that are not in the view, beside those that are.
  func hidesContents(of position: Position) -> Bool {
    position.throughout == nil && state.withLock { $0.hidesContents(of: position) }
  }

  /// Whether everything below a position has that position too.
  func isUniform(_ position: Position) -> Bool {
    position.throughout != nil || state.withLock { $0.isUniform(position) }
  }

  /// What was granted together with a position, see `Scope`.
  func grant(around position: Position) -> Position? {
    position.throughout == nil ? state.withLock { $0.grant(around: position) } : nil
  }

  func ask<Answer>(_ body: (borrowing Scope) -> Answer) -> Answer { state.withLock { body($0) } }

  func change(_ body: (inout Scope) -> Void) {
    state.withLock { scope in
      let before = scope.siblingNumbers
      body(&scope)
      asks.store(scope.hasPrivatePlaces, ordering: .sequentiallyConsistent)
      guard !before.isEmpty || scope.hasSiblings else { return }
      siblings.change(before, to: scope.siblingNumbers, of: view)
      siblingCount.store(scope.hasSiblings ? 1 : 0, ordering: .sequentiallyConsistent)
    }
  }

  /// Gives back room that the scope does not need, if that is worth while; the answer is where each
  /// position is then.
  func compactIfCrowded() -> [Position: Position]? {
    state.withLock { scope in
      guard scope.isCrowded else { return nil }
      numberings.wrappingAdd(1, ordering: .sequentiallyConsistent)
      return scope.compact()
    }
  }

  /// Tells one numbering of places from the next, for who works out a position and has no node of a request.
  var numbering: Int { numberings.load(ordering: .sequentiallyConsistent) }
}

extension View {
  /// Where a name in a directory is in the view's scope; ENOENT if it does not exist in it.
  func position(
    of name: Name, in directory: borrowing NodeTable.Reference, _ object: FD, _ status: FileStatus
  ) throws(Errno) -> Position {
    var position = scope.position(of: name, in: directory.position)
    if directory.position.throughout == nil, position.throughout != nil, scope.hasSiblings {
      let found = SiblingObject(Identity(status, of: object))
      position = scope.position(of: name, in: directory.position, object: found)
    }
    guard position != .nowhere else { throw .ENOENT }
    return position
  }

  /// Whether it takes a look at what a name stands for to tell if it exists in the view, or it does; ENOENT
  /// if not.
  func refuseUnseen(_ name: Name, in directory: Position) throws(Errno) {
    guard scope.position(of: name, in: directory) == .nowhere else { return }
    try gate.authorizePrivateName(in: directory)
    guard scope.hasSiblings else { throw .ENOENT }
  }
}
