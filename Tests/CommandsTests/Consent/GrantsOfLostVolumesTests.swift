// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing
internal import Volume

/// An earlier version was killed between the end of a volume and that of what was granted of it.
struct GrantsOfLostVolumesTests {
  @Test func theyCountForNothing() throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.appending("store")
    try Store.create(at: path, TestStore.description)
    let store = try Store(opening: path, .exclusive)
    let registry = try Registry(of: store)
    let (one, two) = (ProcessID.user, UInt32(1))
    for (name, owner) in [("all", nil), ("ones", one), ("twos", two)] as [(String, UInt32?)] {
      _ = try registry.add(
        VolumeRecord(
          name: Array(name.utf8), path: Array("/srv/\(name)".utf8),
          identity: ObjectIdentity(inode: 1, handle: [], created: 1), owner: owner, isReadOnly: false,
          added: 1))
    }
    var kept: Set<Int64> = []
    let places = [
      ("Volumes/all/x", one, true), ("Volumes/all/x", two, true), ("Volumes/ones/x", one, true),
      ("Volumes/ones/x", two, false), ("Volumes/none/x", one, false), ("Volumes/none", two, false),
      ("Volumes/twos/x", one, false), ("Volumes/twos/x", two, true), ("Users/Shared/x", one, true),
      ("Network/none/x", one, true), ("Network/Library/x", one, false), ("Network/Incoming", two, false),
      ("Network/Servers/nas/x", one, true),
    ]
    for (path, user, isKept) in places {
      let noted = try registry.add(
        GrantRecord(
          identifier: #require(AppIdentifier("com.example.other")), user: user, team: Team("T", root: nil),
          path: GrantPath.names(Array(path.utf8)), isWritable: true, isDirectory: true,
          identity: ObjectIdentity(inode: 7, handle: [8, 0, 1], created: 0), granted: 7))
      if isKept { kept.insert(noted.id) }
    }
    let volume = Volume(tree: store.tree, settings: VolumeSettings())
    let grants = try GrantService(store, volume) { _ throws(StoreError) in registry }
    #expect(Set(volume.grantedNumbers) == kept)
    grants.finish()
    #expect(try registry.grantNumbers() == kept)
  }
}
