// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// Where only a file was granted, an editor still saves it as it always does: it writes another beside it, and renames that over
// it. Such companions are in the view as long as they exist; what else is in the directory is not.

extension View {
  /// A name has been given to a file.
  func addCompanion(_ name: Name, in directory: borrowing NodeTable.Pin) {
    guard directory.position.throughout == nil,
      scope.position(of: name, in: directory.position) == .nowhere
    else { return }
    scope.change { $0.addCompanion(name.buffer, in: directory.position) }
  }

  /// A name has been taken away.
  func removeCompanion(_ name: Name, in directory: borrowing NodeTable.Pin) {
    guard directory.position.throughout == nil else { return }
    scope.change { $0.removeCompanion(name.buffer, in: directory.position) }
  }

  /// A name has been given to another file, or two have been exchanged.
  func noteCompanions(
    _ name: Name, in from: borrowing NodeTable.Pin, to newName: Name, in to: borrowing NodeTable.Pin,
    isExchange: Bool
  ) {
    addCompanion(newName, in: to)
    if !isExchange { removeCompanion(name, in: from) }
  }

  /// Only plain files are put beside one that was granted.
  func refuseCompanion(_ kind: Object.Kind, in directory: Object) throws(Errno) {
    if kind != .file, !directory.reach.contains(.write) { throw .EPERM }
  }

  /// What can be taken back is kept apart from what can't, as if it lay on another disk: otherwise a rename or a link would be a
  /// way to keep it.
  func refuseAcross(_ one: Object, _ other: Object) throws(Errno) {
    if one.isRevocable != other.isRevocable { throw .EXDEV }
  }
}

extension Reach {
  /// Whether what is in it, or what may be done in it, was granted.
  var isRevocable: Bool { !isDisjoint(with: [.revocable, .beside]) }
}

extension Object {
  var isRevocable: Bool { reach.isRevocable }
}
