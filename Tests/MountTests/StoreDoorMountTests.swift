// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Whoever could put another store in a store's place keeps it from being mounted.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct StoreDoorMountTests {
  @Test(arguments: [false, true]) func aStoreThatOthersCanExchangeIsNotMounted(asNobody: Bool) throws {
    let mounted = try MountedStore(asNobody: asNobody)
    let parent = mounted.temporary.path
    // Nobody but root is in root's group.
    #expect(chown(mounted.store, uid_t.max, 65_534) == 0)
    for (path, mode) in [(mounted.store, 0o777), (mounted.store, 0o720), (parent, 0o777)]
      as [(String, mode_t)]
    {
      #expect(chmod(path, mode) == 0)
      for options in [[], ["-o", "ro"]] {
        let refused = try mounted.run(["mount", mounted.store, mounted.point] + options)
        #expect(refused.status == 7 && refused.errors.contains("\(path) lets other users put"), "\(refused)")
        #expect(!mounted.isMounted)
      }
      let check = try mounted.run("check", mounted.store)
      #expect(check.status == 8 && check.output.contains("\(path) lets other users put"), "\(check)")
      let doctor = try mounted.run("doctor", mounted.store)
      #expect(doctor.output.contains("\(path) lets other users put"), "\(doctor)")
      #expect(chmod(path, path == parent ? 0o1777 : 0o700) == 0)
    }
    try mounted.mount()
    #expect(mounted.isMounted)
  }

  /// Two who may say where their links lead: each could put a store of their own in this one's place.
  @Test(arguments: [false, true]) func aStoreBehindAnothersLinkIsNotMounted(asNobody: Bool) throws {
    let mounted = try MountedStore(asNobody: asNobody)
    let parent = mounted.temporary.path
    let places = try [54_321, 54_322].map { (uid: uid_t) in
      let place = try TemporaryDirectory()
      #expect(symlink(parent, place.appending("link")) == 0 && chown(place.path, uid, uid) == 0)
      return (uid: uid, place: place)
    }
    for (uid, place) in places {
      let via = parent + "/via-\(uid)"
      #expect(symlink(place.appending("link/store"), via) == 0)
      let words = "\(place.path) belongs to uid \(uid), who can put another store in this one's place"
      for (path, directory) in [(place.appending("link/store"), "/"), ("link/store", place.path), (via, "/")]
      {
        let inPlace = ["env", "--chdir=\(directory)"]
        let refused = try mounted.run(["mount", path, mounted.point], before: inPlace)
        #expect(refused.status == 7 && refused.errors.contains(words), "\(refused)")
        #expect(!mounted.isMounted)
        let check = try mounted.run(["check", path], before: inPlace)
        #expect(check.status == 8 && check.output.contains(words), "\(check)")
      }
    }
    // A link of one's own, or of root's.
    #expect(symlink(mounted.store, parent + "/own") == 0)
    #expect(lchown(parent + "/own", asNobody ? 65_534 : 0, 0) == 0)
    #expect(try mounted.run("mount", parent + "/own", mounted.point).status == 0 && mounted.isMounted)
    #expect(try mounted.run("status", mounted.store).status == 0)
  }

  /// A group with its owner's name is private as long as nobody else is put into it.
  @Test func aGroupWithMembersIsNotPrivate() throws {
    let (account, member) = (try TemporaryAccount(), try TemporaryAccount())
    let owner = account.account
    defer { withExtendedLifetime(account) {} }
    let group = owner.name
    func administer(_ words: String...) throws {
      let result = try Program.run(words, environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
      try #require(result.status == 0, "\(result)")
    }
    try #require(AccountGroup.numbered(owner.gid)?.name == group, "useradd gives each user a group here")
    let place = try TemporaryDirectory()
    #expect(chown(place.path, owner.uid, owner.gid) == 0 && chmod(place.path, 0o2770) == 0)
    let mounted = try MountedStore(owner: owner, store: place.appending("store"))
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 0)
    #expect(try mounted.unmount().status == 0)
    try administer("gpasswd", "--add", member.account.name, group)
    #expect(AccountGroup.numbered(owner.gid)?.members == [member.account.name])
    let refused = try mounted.run("mount", mounted.store, mounted.point)
    #expect(
      refused.status == 7 && refused.errors.contains("\(place.path) lets other users put"), "\(refused)")
    let check = try mounted.run("check", mounted.store)
    #expect(check.status == 8 && check.output.contains("\(place.path) lets other users put"), "\(check)")
    // The owner is no other.
    try administer("gpasswd", "--members", owner.name, group)
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 0)
    #expect(try mounted.unmount().status == 0)
  }

  /// A store that others can only look into is mounted, and that is said.
  @Test(arguments: [false, true]) func aStoreThatOthersCanReachIsNamed(asNobody: Bool) throws {
    let mounted = try MountedStore(asNobody: asNobody)
    #expect(chmod(mounted.store, 0o755) == 0)
    let said = try mounted.run("mount", mounted.store, mounted.point)
    #expect(said.status == 0 && mounted.isMounted, "\(said)")
    #expect(said.errors.contains("\(mounted.store) lets other users reach the files"), "\(said)")
    #expect(try mounted.run("doctor", mounted.store).output.contains("past all ACLs"))
    #expect(try mounted.unmount().status == 0)
    let check = try mounted.run("check", mounted.store)
    #expect(check.status == 8 && check.output.contains("chmod 700"), "\(check)")
    #expect(try mounted.run("check", "--repair", mounted.store).status == 0)
    #expect(try mounted.run("check", mounted.store).status == 0)
  }
}
