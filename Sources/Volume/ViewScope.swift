// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Synchronization

/// What of the tree is in a view, as it is now: grants come and go.
final class ViewScope: Sendable {
  private let state: Mutex<Scope>
  let root: Position

  init(_ scope: Scope) {
    root = scope.root
    state = Mutex(scope)
  }

  /// Where a name in a directory is.
  func position(of name: Name, in directory: Position) -> Position {
    if directory.throughout != nil { return directory }
    return state.withLock { $0.position(of: name.buffer, in: directory) }
  }

  func position(of name: UnsafeBufferPointer<UInt8>, in directory: Position) -> Position {
    if directory.throughout != nil { return directory }
    return state.withLock { $0.position(of: name, in: directory) }
  }

  func reach(of position: Position) -> Reach {
    position.throughout ?? state.withLock { $0.reach(of: position) }
  }

  func position(at path: [[UInt8]]) -> Position { state.withLock { $0.position(at: path) } }

  /// Where something is in a place if the scope has nothing to say about it.
  func inside(_ position: Position) -> Position {
    position.throughout == nil ? state.withLock { $0.inside(position) } : position
  }

  func change(_ body: (inout Scope) -> Void) { state.withLock { body(&$0) } }
}

extension View {
  /// Where a name in a directory is in the view's scope; ENOENT if it does not exist in it.
  func position(of name: Name, in directory: borrowing NodeTable.Pin) throws(Errno) -> Position {
    let position = scope.position(of: name, in: directory.position)
    guard position != .nowhere else { throw .ENOENT }
    return position
  }

  /// Where a name is that an object was given through whichever view, in a directory that this one may not know.
  func position(of name: Name, in parent: ObjectNumber, _ directory: FD) -> Position {
    // Most views are of the whole tree, or all of it that they know is.
    if scope.root.throughout != nil { return scope.root }
    if let known = nodes.with(parent, { $1.position }) { return scope.position(of: name, in: known) }
    return positionThroughout(directory) ?? positionByPath(of: name, in: directory)
  }

  /// The position by the path that a directory has now: something that was granted may have been moved to where the view knows
  /// nothing yet.
  private func positionByPath(of name: Name, in directory: FD) -> Position {
    guard let path = volume.path(of: directory) else { return .nowhere }
    return scope.position(at: path + [Array(name.buffer)])
  }

  /// The position of a directory that is in a part of the tree that is all in the same reach, found by climbing to one that is known;
  /// nil where the names on the way matter, which are looked up when they are next used.
  private func positionThroughout(_ directory: FD) -> Position? {
    var above = try? directory.openParent()
    // No tree is as deep as this; it only bounds what a damaged one could do.
    for _ in 0..<10_000 {
      guard let directory = above?.fd, let status = try? directory.status() else { return nil }
      if let known = nodes.with(ObjectNumber(status), { $1.position }) {
        return known.throughout == nil ? nil : known
      }
      above = try? directory.openParent()
    }
    return nil
  }
}
