// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

// A store may come from somebody else: a copy, a disk, a backup. What its registry says of volumes would lead
// root's daemon to any directory, disk or server of this machine, for whomever the registry names.
//
//  1. So a volume counts only where this machine has noted that it was added here, outside of the store.
//  2. A note has all that decides what is opened, and for whom. Of what the registry says, only the number of
//     the row, the time, and whether somebody waits there are left out. That a volume is being added or
//     deleted has a note of its own beside it: what is begun here is ended here, and a copy of the store can
//     say of no volume of its original that it is to be ended.
//  3. Notes are found by the store's UUID, which a copy has too. It may open what was added to its original,
//     and nothing else.
//  4. A note that nobody needs any more is removed with its volume. One that is lost takes the volume from
//     the tree until somebody confirms it.

/// What was added on this machine to be a volume of a store.
package struct VolumeNotes: Sendable {
  /// Where the notes of all stores are.
  package let directory: String
  private let name: String

  /// Far more than the volumes of a store take.
  private static let limit = 1 << 24

  package init(of store: Store) {
    self.init(in: Self.directory(of: store.description.mode), uuid: store.description.uuid)
  }

  /// `uuid` is text from the store.
  init(in directory: String, uuid: String) {
    self.directory = directory
    name = uuid.utf8.map { String($0, radix: 16) }.joined()
  }

  /// The machine's own state: that of the store's user, or root's.
  private static func directory(of mode: StoreDescription.Mode) -> String {
    func variable(_ name: String) -> String? {
      getenv(name).map { String(cString: $0) }.flatMap { $0.begins(with: "/") ? $0 : nil }
    }
    if mode == .system {
      #if DEBUG
        // Tests note nothing of this machine.
        if let chosen = variable("INSULA_MACHINE_STATE") { return chosen + "/volumes" }
      #endif
      return "/var/lib/insula-machine/volumes"
    }
    if let state = variable("XDG_STATE_HOME") { return state + "/insula/volumes" }
    let home = variable("HOME") ?? Account.numbered(ProcessID.user)?.home ?? "/"
    return home + "/.local/state/insula/volumes"
  }

  // MARK: Reading

  /// Whether a volume was added here as what the registry says of it.
  ///
  /// What can't be read is no note.
  package func has(_ record: VolumeRecord) -> Bool { noted().contains(record.note) }

  /// Which of some were.
  package func known(_ records: [VolumeRecord]) -> [VolumeRecord] {
    if records.isEmpty { return [] }
    let noted = noted()
    return records.filter { noted.contains($0.note) }
  }

  private func noted() -> Set<[UInt8]> {
    guard let place = try? open() else { return [] }
    return (try? notes(in: place.fd)) ?? []
  }

  private func notes(in directory: FD) throws(Errno) -> Set<[UInt8]> {
    do throws(Errno) {
      let bytes = try directory.contents(of: name, limit: Self.limit)
      return Set(bytes.split(separator: UInt8(ascii: "\n")).map { Array($0) })
    } catch .ENOENT {
      return []
    }
  }

  /// Nobody but whose state it is may change anything there.
  private func open() throws(Errno) -> OwnedFD {
    let opened = try FD.cwd.openFollowing(directory, O_RDONLY | O_DIRECTORY)
    let status = try opened.fd.status()
    guard status.st_uid == ProcessID.user, status.permissions & 0o022 == 0 else { throw .EACCES }
    return opened
  }

  // MARK: Writing

  /// Gives whether any of them is noted from now on, and was not before.
  @discardableResult
  package func add(_ records: [VolumeRecord]) throws(StoreError) -> Bool {
    try change(making: true) { $0.union(records.map(\.note)) }
  }

  /// Takes the notes of a volume away that is no more.
  package func remove(_ record: VolumeRecord) throws(StoreError) {
    let states: [VolumeRecord.Options] = [[], .unfinished, .doomed]
    try change { $0.subtracting(states.map { record.isNow($0).note }) }
  }

  /// Notes that a volume is being added or deleted.
  package func begin(_ state: VolumeRecord.Options, of record: VolumeRecord) throws(StoreError) {
    try add([record.isNow(state)])
  }

  /// Notes that this is over.
  package func end(_ state: VolumeRecord.Options, of record: VolumeRecord) throws(StoreError) {
    try change { $0.subtracting([record.isNow(state).note]) }
  }

  /// Takes those of a user's volumes away, of which a home is none: whoever has the number next adds their
  /// own.
  package func removeAll(of user: UInt32) throws(StoreError) {
    try change { notes in
      notes.filter { !$0.starts(with: VolumeRecord.notePrefix(of: user)) }
    }
  }

  @discardableResult
  private func change(
    making isMaking: Bool = false, _ change: (Set<[UInt8]>) -> Set<[UInt8]>
  ) throws(StoreError) -> Bool {
    guard isMaking || FD.cwd.has(directory) else { return false }
    return try explaining("note what is a volume in", directory) { () throws(Errno) in
      let place = try make()
      // Two stores of one UUID may be mounted at a time.
      try retrying { flock(place.fd.raw, LOCK_EX) }
      let before = try notes(in: place.fd)
      let after = change(before)
      guard after != before else { return false }
      guard !after.isEmpty else {
        try place.fd.remove(name, directory: false)
        return true
      }
      let lines = after.inOrder { $0.lexicographicallyPrecedes($1) }
      let bytes = lines.flatMap { $0 + [UInt8(ascii: "\n")] }
      guard bytes.count < Self.limit else { throw .EFBIG }
      try place.fd.replaceContents(of: name, with: bytes, mode: 0o600)
      return true
    }
  }

  /// Opens the directory, and makes those that are missing.
  private func make() throws(Errno) -> OwnedFD {
    do throws(Errno) { return try open() } catch .ENOENT {}
    var path = ""
    for part in directory.parts(between: "/") {
      path += "/\(part)"
      do throws(Errno) {
        try path.withName { (name) throws(Errno) in try FD.cwd.makeDirectory(name, mode: 0o700) }
      } catch {
        // A directory that is there may be on a filesystem that can't be written.
        guard error == .EEXIST || FD.cwd.has(path) else { throw error }
      }
    }
    return try open()
  }
}

extension VolumeRecord {
  /// What makes no difference to what is opened.
  private static let passing: Options = .waits

  /// The same while it is being added or deleted, or neither.
  package func isNow(_ state: Options) -> VolumeRecord {
    var record = self
    record.options = options.subtracting([.unfinished, .doomed]).union(state)
    return record
  }

  /// All that decides what is opened and for whom, in one line.
  var note: [UInt8] {
    func field(_ bytes: some Sequence<UInt8>) -> String {
      let digits = bytes.flatMap { [$0 >> 4, $0 & 15] }
      return "x" + digits.map { String($0, radix: 16) }.joined()
    }
    let fields = [
      field(name), "\(kind.rawValue)", field(path), "\(identity.inode)", field(identity.handle),
      "\(identity.created)", isReadOnly ? "ro" : "rw", "\(options.subtracting(Self.passing).rawValue)",
    ]
    return Self.notePrefix(of: owner, in: place == .users ? "home" : field(place.path.utf8))
      + Array(fields.joined(separator: " ").utf8)
  }

  /// How the notes of a user's volumes begin that are no homes.
  fileprivate static func notePrefix(of user: UInt32) -> [UInt8] { notePrefix(of: user, in: "x") }

  private static func notePrefix(of user: UInt32?, in place: String) -> [UInt8] {
    Array("1 \(user.map { "\($0)" } ?? "all") \(place)\(place == "x" ? "" : " ")".utf8)
  }
}
