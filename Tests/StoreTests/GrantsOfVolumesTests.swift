// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What was granted of a volume goes in the transaction in which the volume goes: whoever is killed after it
/// leaves nothing to the next one of that name.
@Suite struct GrantsOfVolumesTests {
  private let fixture: TestFixture
  private let users: [UInt32]
  private var registry: Registry { fixture.registry }

  init() throws {
    fixture = try TestFixture()
    users = [fixture.account.uid, 1]
  }

  private func add(_ name: String, of owner: UInt32?, in place: VolumeRecord.Place) throws -> VolumeRecord {
    try registry.add(
      VolumeRecord(
        in: place, name: Array(name.utf8), path: Array("/srv/\(name)".utf8),
        identity: ObjectIdentity(inode: 1, handle: [], created: 1), owner: owner, isReadOnly: false, added: 1)
    )
  }

  /// Grants both users' apps places; what they have then, as "user path".
  private func grant(_ paths: [String]) throws -> [String] {
    for path in paths {
      for user in users {
        _ = try registry.add(
          GrantRecord(
            identifier: #require(AppIdentifier("com.example.other")), user: user, team: Team("T", root: nil),
            path: GrantPath.names(Array(path.utf8)), isWritable: true, isDirectory: true,
            identity: ObjectIdentity(inode: 7, handle: [], created: 0), granted: 7))
      }
    }
    return try granted()
  }

  private func granted() throws -> [String] {
    try registry.grants().map { "\($0.user) \(String(decoding: GrantPath.path($0.path), as: UTF8.self))" }
  }

  @Test func theyGoWithIt() throws {
    let volumes = try [add("work", of: nil, in: .volumes), add("works", of: nil, in: .volumes)]
    let all = try grant(["Volumes/work", "Volumes/work/x", "Volumes/works/x", "Users/Shared/Volumes/work/x"])
    try registry.ejectVolume(volumes[0])
    #expect(try granted() == all.filter { !$0.contains(" Volumes/work/") && !$0.hasSuffix(" Volumes/work") })
    #expect(try granted().count == 4 && registry.volumes() == [volumes[1]])
  }

  @Test func namesakesOfOthersKeepTheirs() throws {
    let volumes = try users.map { try add("work", of: $0, in: .volumes) }
    _ = try grant(["Volumes/work/x"])
    try registry.ejectVolume(volumes[0])
    #expect(try granted() == ["\(users[1]) Volumes/work/x"])
    try registry.ejectVolume(volumes[1])
    #expect(try granted().isEmpty)
  }

  /// In a store that ignores case, a grant may spell the volume otherwise; another name's are not its.
  @Test func otherSpellingsGoWithIt() throws {
    let volumes = try [add("work", of: users[0], in: .volumes), add("nas", of: nil, in: .volumes)]
    let share = try add("Music", of: nil, in: .server("nas.example"))
    _ = try grant(["Volumes/WORK/x", "Volumes/works/X", "Network/Servers/NAS.example/music/y", "Volumes/NAS"])
    try registry.ejectVolume(volumes[0])
    #expect(try granted().filter { $0.contains("WORK") } == [])
    try registry.ejectVolume(share)
    let left = ["Volumes/works/X", "Volumes/NAS"].flatMap { path in users.map { "\($0) \(path)" } }
    #expect(try granted() == left)
  }

  /// One that comes back is the same one, unless somebody may still use it; nothing counts until then.
  @Test func homesComeBackAsTheyWere() throws {
    let all = try grant(["Users/one", "Users/one/Documents", "Users/once/Documents"])
    try registry.ejectHome(add("one", of: nil, in: .users))
    #expect(try granted() == all.filter { $0.hasSuffix("once/Documents") })
    let back = try add("one", of: nil, in: .users)
    try registry.note(owner: 1234, ofHome: back.id)
    #expect(try registry.takeUpGrants().count == 4 && granted() == all)
    try registry.removeVolume(back.id)
    try registry.ejectHome(add("one", of: nil, in: .users), droppingGrants: true)
    #expect(try granted() == all.filter { $0.hasSuffix("once/Documents") })
  }

  /// With a home that is deleted goes also what was granted of all of it.
  @Test func homesTakeTheirsWithThem() throws {
    let all = try grant(["Users/one", "Users/one/Documents", "Users/once/Documents"])
    try registry.forgetHome("one")
    #expect(try granted() == all.filter { $0.hasSuffix("once/Documents") })
  }
}
