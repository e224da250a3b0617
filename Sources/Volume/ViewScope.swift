// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Synchronization

/// What of the tree is in a view, as it is now: grants come and go.
final class ViewScope: Sendable {
  private let state: Mutex<Scope>
  private let siblings: SiblingIndex
  private let view: UInt32
  private let siblingCount = Atomic<Int>(0)
  /// How often places have been numbered anew.
  private let numberings = Atomic<Int>(0)
  let root: Position

  init(_ scope: Scope, of view: UInt32, _ siblings: SiblingIndex) {
    root = scope.root
    state = Mutex(scope)
    self.view = view
    self.siblings = siblings
  }

  deinit { siblings.remove(value.siblingNumbers, of: view) }

  /// Whether what a name stands for may count, and not the name alone.
  var hasSiblings: Bool { siblingCount.load(ordering: .sequentiallyConsistent) > 0 }

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
    of name: Name, in directory: borrowing NodeTable.Pin, _ object: FD, _ status: FileStatus
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
  func refuseUnseen(_ name: Name, in directory: borrowing NodeTable.Pin) throws(Errno) {
    guard scope.hasSiblings || scope.position(of: name, in: directory.position) != .nowhere else {
      throw .ENOENT
    }
  }

  /// Where a name is that an object was given through whichever view, in a directory that this one may not
  /// know.
  func position(
    of name: Name, _ object: ObjectNumber, in parent: ObjectNumber, _ directory: FD
  ) -> Position {
    // Most views are of the whole tree, or all of it that they know is.
    if scope.root.throughout != nil { return scope.root }
    if let known = nodes.with(parent, { $1.position }) {
      return scope.position(of: name, in: known, object: SiblingObject(object))
    }
    return positionThroughout(directory) ?? positionByPath(of: name, in: directory)
  }

  /// The position by the path that a directory has now: something that was granted may have been moved to
  /// where the view knows nothing yet.
  private func positionByPath(of name: Name, in directory: FD) -> Position {
    guard let path = volume.path(of: directory) else { return .nowhere }
    return scope.ask { $0.position(at: path + [Array(name.buffer)]) }
  }

  /// The position of a directory that is in a part of the tree that is all in the same reach, found by
  /// climbing to one that is known; nil where the names on the way matter, which are looked up when they are
  /// next used.
  private func positionThroughout(_ directory: FD) -> Position? {
    var above = try? directory.openParent()
    // No tree is as deep as this; it only bounds what a damaged one could do.
    for _ in 0..<10_000 {
      guard let directory = above?.fd, let status = try? directory.status() else { return nil }
      if let known = nodes.with(ObjectNumber(status), { $1.position }) {
        return scope.isUniform(known) ? known : nil
      }
      above = try? directory.openParent()
    }
    return nil
  }
}
