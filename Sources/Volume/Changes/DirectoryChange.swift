// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy

/// A change of the names in one or two directories, by a request: find the objects, ask the gate, and
/// ``commit(_:_:)``.
///
/// It takes the locks of the directories' names first and reads the directories' attributes afterwards. While
/// it exists, nobody else looks up or changes a name there, so an object keeps its name until the request has
/// judged it, made its call and applied the effects. A change that is dropped without a commit has changed
/// nothing.
///
/// The caller holds the nodes of both directories for as long as the change lasts.
struct DirectoryChange: ~Copyable {
  /// A directory as it was when the change began.
  struct Directory {
    let place: ChangedDirectory
    let zone: Zone
    /// What the gate judges.
    let object: Object
    /// When names in it were last changed.
    let changed: Int64
    /// By which its volume is known; 0 for the tree itself.
    let volume: UInt32
    var isOnVolume: Bool { volume != 0 }

    var fd: FD { place.fd }
    var number: ObjectNumber { place.number }
    var position: Position { place.position }

    fileprivate init(_ reference: borrowing NodeTable.Reference, in view: View) throws(Errno) {
      place = ChangedDirectory(reference, of: view.volume)
      zone = reference.zone
      let status = try view.judgedStatus(of: reference)
      object = try view.object(status, reference)
      changed = status.st_mtim.nanoseconds
      volume = reference.volume
    }
  }

  let from: Directory
  /// Where a rename leads; any other change has one directory, which is both.
  var to: Directory { target ?? from }
  private let target: Directory?
  private let view: View
  private let request: RequestID
  private let names: NameLocks.Hold

  init(
    in directory: borrowing NodeTable.Reference, of view: View, for request: RequestID
  ) throws(Errno) {
    let names = view.volume.names(in: directory.number).exclusive(in: directory.number)
    from = try Directory(directory, in: view)
    target = nil
    self.view = view
    self.request = request
    self.names = names
  }

  init(
    from: borrowing NodeTable.Reference, to: borrowing NodeTable.Reference, of view: View,
    for request: RequestID
  ) throws(Errno) {
    let locks = view.volume.names(in: from.number)
    // Nothing is moved between volumes, also where the filesystem would do it.
    guard from.volume == to.volume else { throw .EXDEV }
    let names = locks.exclusive(in: from.number, to.number)
    let source = try Directory(from, in: view)
    let target = from.id == to.id ? nil : try Directory(to, in: view)
    self.from = source
    self.target = target
    self.view = view
    self.request = request
    self.names = names
  }

  var isWithinOneDirectory: Bool { target == nil }

  /// A name as the directory has it, or gets it if a user adds one.
  func stored(
    _ name: Name, in directory: Directory? = nil, addingFor user: UInt32? = nil
  ) throws(Errno) -> StoredName {
    let directory = directory ?? from
    guard view.volume.spellings != nil, !directory.isOnVolume,
      !names.remembers(missing: name, in: directory.number)
    else {
      return StoredName(name)
    }
    return try view.volume.stored(
      name, in: directory.fd, directory.number, directory.zone, addingFor: user, changed: directory.changed,
      for: request)
  }

  /// Whether nothing has a name where something is to go, on a volume that a program serves.
  ///
  /// The kernel looks there right before a rename. Where nobody is judged by owners, that look is as good as
  /// another one right after it, if it was the same thread's: others may be faster than either, also by
  /// another spelling of the directory.
  func knowsMissing(_ newName: Name, by thread: Int32) -> Bool {
    guard let engine = view.volume.attached.volume(numbered: to.volume)?.engine else { return false }
    if engine.isAlone, engine.hasExactNames { return names.remembers(missing: newName, in: to.number) }
    return engine.queue != nil && to.zone.hasNoOwners
      && names.remembers(missing: newName, in: to.number, by: thread)
  }

  /// Makes the change by `call`, and does what follows from it.
  ///
  /// If `call` throws, nothing has changed.
  func commit<Made: ~Copyable>(
    _ change: NameChange, _ call: () throws(Errno) -> Made
  ) throws(Errno) -> Made {
    // Also if it seems to have failed.
    defer { view.volume.attached.volume(numbered: from.volume)?.namesChanged() }
    let note =
      intents.isOn && canFindAgain(change)
      ? intents.begin(request, view: view.number, change.subject, before: change.subjectChanged) : nil
    do throws(Errno) {
      let made = try effects.apply(change) { () throws(Errno) in
        let made = try call()
        #if DEBUG
          Trap.at(.done)
        #endif
        return made
      }
      intents.end(note)
      return made
    } catch {
      intents.drop(note)
      throw error
    }
  }

  /// Whether what is there after the change would be its own: what is there already is not made, and whoever
  /// is refused for that has nothing to find again.
  private func canFindAgain(_ change: NameChange) -> Bool {
    guard let name = change.newName else { return true }
    return names.remembers(missing: name, in: from.number) || (try? from.fd.status(of: name)) == nil
  }

  /// What another worker was about to change for the request, if it has been sent again.
  var left: Intent? { view.left(by: request) }

  var intents: Intents { view.volume.intents }

  /// Looks up for the answer what a commit has added; takes the name away again if that fails.
  ///
  /// The client then gets an error, and its kernel caches no entry.
  func answer<Answer>(
    _ added: NameChange.Added, _ body: () throws(Errno) -> Answer
  ) throws(Errno) -> Answer {
    do throws(Errno) {
      return try body()
    } catch {
      rollback(added)
      throw error
    }
  }

  private func rollback(_ added: NameChange.Added) {
    defer { view.volume.attached.volume(numbered: from.volume)?.namesChanged() }
    try? effects.apply(.rolledBack(added)) { () throws(Errno) in
      try? from.fd.remove(added.name, directory: added.isDirectory)
    }
  }

  /// Lets others at the names again, before the request goes on.
  consuming func end() {}

  private var effects: ChangeEffects {
    ChangeEffects(volume: view.volume, view: view.peer, from: from.place, to: target?.place ?? from.place)
  }
}
