// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
package import LinuxIO
internal import Policy

// Changes of the tree that the daemon makes itself: for installations, deliveries and imports.

/// A change of names in the tree that no request has asked for.
private struct OwnChange: ~Copyable {
  private let names: NameLocks.Hold
  private let effects: ChangeEffects

  init(from: ChangedDirectory, to: ChangedDirectory, of volume: Volume) {
    names = volume.names(in: from.number).exclusive(in: from.number, to.number)
    effects = ChangeEffects(volume: volume, view: nil, from: from, to: to)
  }

  func commit(_ change: NameChange, _ call: () throws(Errno) -> Void) throws(Errno) {
    effects.volume.kept?.beginsOwnChange()
    defer { effects.volume.kept?.endsOwnChange() }
    try effects.apply(change) { () throws(Errno) in
      try call()
      #if DEBUG
        Trap.at(.done)
      #endif
    }
  }
}

extension Volume {
  /// Changes names in a directory of the tree; what any kernel knows of them is withdrawn when this returns.
  package func changeNames(in directory: FD, _ body: () throws(Errno) -> Void) throws(Errno) {
    let directory = try ChangedDirectory(directory, of: self)
    try OwnChange(from: directory, to: directory, of: self).commit(.unknown, body)
  }

  /// Does `body`, which moves something from one directory of the tree to an app's Inbox.
  ///
  /// What a kernel knows of it from before is as little to be changed from then on as what is newly found
  /// there.
  package func deliver(
    _ name: Name, from source: FD, to inbox: FD, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    let from = try ChangedDirectory(source, of: self)
    let to = try ChangedDirectory(inbox, of: self)
    let change = OwnChange(from: from, to: to, of: self)
    let status = try source.status(of: name)
    try change.commit(.delivered(ObjectNumber(status), isDirectory: status.isDirectory), body)
  }

  /// Does `body`, which exchanges a container with a directory beside it.
  ///
  /// What the kernels know of both gets the rules of the place that it is in now. What is granted there is
  /// for the place.
  package func exchange(
    _ container: Name, with other: Name, in directory: FD, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    let place = try ChangedDirectory(directory, of: self)
    let change = OwnChange(from: place, to: place, of: self)
    let old = try directory.status(of: container)
    let new = try directory.status(of: other)
    let move = NameMove(
      name: other, from: place, newName: container, to: place,
      moved: NameMove.Moved(number: ObjectNumber(new), isDirectory: true, zone: .container),
      exchanged: NameMove.Moved(number: ObjectNumber(old), isDirectory: true, zone: .user),
      staysWithNames: true, payer: Payer(user: old.st_uid))
    try change.commit(.renamed(move), body)
  }
}
