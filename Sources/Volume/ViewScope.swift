// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Synchronization

/// What of the tree is in a view, as it is now: grants come and go.
final class ViewScope: Sendable {
  private let state: Mutex<Scope>

  init(_ scope: Scope) { state = Mutex(scope) }

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
}
