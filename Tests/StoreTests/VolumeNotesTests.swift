// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
@testable internal import Store
internal import TestSupport
internal import Testing

/// What was added on this machine to be a volume of a store.
struct VolumeNotesTests {
  private let temporary: TemporaryDirectory
  private let notes: VolumeNotes
  private var place: String { temporary.appending("state/volumes") }

  init() throws {
    temporary = try TemporaryDirectory()
    notes = VolumeNotes(in: temporary.appending("state/volumes"), uuid: "A")
  }

  private static func record(
    in place: VolumeRecord.Place = .volumes, name: String = "a", kind: VolumeRecord.Kind = .directory,
    path: String = "/srv/a", inode: UInt64 = 7, handle: [UInt8] = [1, 2], created: Int64 = 3,
    owner: UInt32? = nil, isReadOnly: Bool = true, options: VolumeRecord.Options = []
  ) -> VolumeRecord {
    VolumeRecord(
      id: Int64.random(in: 1...9), in: place, name: Array(name.utf8), kind: kind, path: Array(path.utf8),
      identity: ObjectIdentity(inode: inode, handle: handle, created: created), owner: owner,
      isReadOnly: isReadOnly, added: Int64.random(in: 1...9), options: options)
  }

  private static let others = [
    record(in: .users), record(in: .network), record(in: .server("a")), record(name: "b"),
    record(kind: .disk), record(kind: .server), record(path: "/etc"), record(path: "/srv/a "),
    record(inode: 8), record(handle: [1, 3]), record(handle: [1, 2, 0]), record(created: 4),
    record(owner: 0), record(owner: 1000), record(isReadOnly: false), record(options: .ignoresOwners),
    record(options: .onDemand), record(options: .byProgram), record(options: .encrypted),
    record(options: .hasDisk), record(name: "", path: "/srv/aa"),
  ]

  /// A row that differs in anything that counts is another one, also in a copy of the store.
  @Test func onlyWhatWasAddedCounts() throws {
    #expect(!notes.has(Self.record()))
    try notes.add([Self.record()])
    #expect(notes.has(Self.record()))
    #expect(notes.known(Self.others).isEmpty)
    #expect(notes.has(Self.record(options: .waits)))
    #expect(!VolumeNotes(in: place, uuid: "B").has(Self.record()))
    #expect(VolumeNotes(in: place, uuid: "A").has(Self.record()))
    // Each alone, so that no two of them are one.
    for other in Self.others {
      try notes.add([other])
      #expect(notes.known(Self.others) == [other])
      try notes.remove(other)
    }
    try notes.remove(Self.record())
    #expect(!notes.has(Self.record()))
    #expect(try temporary.names(in: "state/volumes").isEmpty)
  }

  /// What is being added or deleted is so only where that was begun, whatever a copy of the store says.
  @Test(arguments: [VolumeRecord.Options.unfinished, .doomed])
  func whatHasBegunHasANoteOfItsOwn(state: VolumeRecord.Options) throws {
    let (record, changing) = (Self.record(), Self.record(options: state))
    #expect(try notes.add([record]))
    #expect(try !notes.add([record]))
    #expect(!notes.has(changing))
    try notes.begin(state, of: record)
    #expect(notes.has(changing) && notes.has(record))
    try notes.end(state, of: changing)
    #expect(!notes.has(changing) && notes.has(record))
    try notes.begin(state, of: record)
    try notes.remove(changing)
    #expect(!notes.has(changing) && !notes.has(record))
  }

  /// Homes stay with their store.
  @Test func aUsersVolumesGoWithTheUser() throws {
    let kept = [Self.record(), Self.record(owner: 10), Self.record(in: .users, owner: 1)]
    let gone = [Self.record(owner: 1), Self.record(in: .server("a"), owner: 1)]
    try notes.add(kept + gone)
    try notes.removeAll(of: 1)
    #expect(notes.known(kept + gone) == kept)
  }

  /// Where others can write, nothing is believed, and nothing is noted.
  @Test func notesOfOthersDoNotCount() throws {
    try notes.add([Self.record()])
    try #require(chmod(place, 0o720) == 0)
    #expect(!notes.has(Self.record()))
    #expect(throws: StoreError.notPermitted(doing: "note what is a volume in", path: place)) {
      try notes.add([Self.record(name: "b")])
    }
    try #require(chmod(place, 0o755) == 0)
    #expect(notes.has(Self.record()) && !notes.has(Self.record(name: "b")))
    if Program.isRoot {
      try #require(chown(place, 65534, 0) == 0)
      #expect(!notes.has(Self.record()))
    }
  }
}
