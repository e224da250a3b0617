// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy

/// A change of the names in one directory or two.
enum NameChange {
  case added(Added)
  /// A name that was added is removed again, before its reply was sent.
  case rolledBack(Added)
  case removed(Name, NamedObject, by: Payer)
  /// Another worker has removed a name, and not done what follows.
  case gone(Name, ObjectNumber)
  case renamed(NameMove)
  /// The daemon has changed names without saying which.
  case unknown
  /// The daemon has put an object into an Inbox.
  case delivered(ObjectNumber, isDirectory: Bool)

  /// A new name, of a new object or of one that was there before.
  struct Added {
    let name: Name
    var isDirectory = false
    /// Nil for a new object.
    var linked: ObjectNumber?
    /// What the object that was there is beside granted files from then on, if anything.
    var sibling: NewSibling?
  }

  /// The object that loses a name or gets another one, by which it is found out later whether that has
  /// happened.
  var subject: ObjectNumber? {
    switch self {
    case .added(let added), .rolledBack(let added): added.linked
    case .removed(_, let target, _): target.number
    case .renamed(let move): move.moved.number
    case .gone(_, let number): number
    case .unknown, .delivered: nil
    }
  }

  /// When that was last changed before, if it loses a name.
  var subjectChanged: Int64 {
    if case .removed(_, let target, _) = self { target.status.st_ctim.nanoseconds } else { 0 }
  }

  /// A name that nothing is to have before.
  var newName: Name? { if case .added(let added) = self { added.name } else { nil } }
}

/// A directory whose names change, held open by whoever changes them.
struct ChangedDirectory {
  let fd: FD
  let number: ObjectNumber
  /// Its node and its place in the scope, in the view through which the change is made.
  let node: NodeID?
  let position: Position
  /// Whether all spellings of a name in it are one.
  private let ignoresCase: Bool

  init(_ reference: borrowing NodeTable.Reference, of volume: Volume) {
    ignoresCase = volume.settings.ignoresCase && !reference.isOnVolume
    fd = reference.fd
    number = reference.number
    node = reference.id
    position = reference.position
  }

  /// A directory that the daemon itself changes.
  init(_ fd: FD, of volume: Volume) throws(Errno) {
    ignoresCase = volume.settings.ignoresCase && volume.attached.holding(fd).isStore
    self.fd = fd
    number = ObjectNumber(try fd.status())
    node = nil
    position = .whole
  }

  func step(_ name: Name) -> ResolvedPath.Step {
    ResolvedPath.Step(Array(name.buffer), in: number, ignoringCase: ignoresCase)
  }
}

/// An object whose name is about to be removed or changed.
struct NamedObject {
  let status: FileStatus
  let object: Object
  /// What it is where only files were granted; nil anywhere else.
  var sibling: SiblingObject?

  var number: ObjectNumber { ObjectNumber(status) }
  /// The right to a directory that lets one add such a thing to it.
  var addition: Rights { object.isDirectory ? .addSubdirectory : .addFile }
}

/// A rename, or an exchange of two names.
struct NameMove {
  /// An object and what it is in its new place.
  struct Moved {
    let number: ObjectNumber
    let isDirectory: Bool
    let zone: Zone
    /// What it is beside granted files from then on, if anything.
    var sibling: NewSibling?
  }

  let name: Name
  let from: ChangedDirectory
  let newName: Name
  let to: ChangedDirectory
  let moved: Moved
  /// What has the old name then; nil if it is no exchange.
  var exchanged: Moved?
  /// What had the new name and is gone.
  var replaced: NamedObject?
  /// Whether what is granted stays with the names.
  ///
  /// A grant on a container is for the location. And an app that was granted a single file renames only in
  /// order to save it.
  let staysWithNames: Bool
  /// Whether the kernel may cache names in each directory; it takes what it remembers of a name along.
  var remembersNamesInSource = true
  var remembersNamesInTarget = true
  /// Whether it has nothing of the name to take along.
  var isNameWithdrawn = false
  /// Who pays for what is kept open of an object that loses its name.
  let payer: Payer

  var isExchange: Bool { exchanged != nil }
}
