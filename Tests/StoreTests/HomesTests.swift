// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

@Suite struct HomesTests {
  private let store: TestStore
  private let homes: Homes
  /// An account that this process may make a home for.
  private let name: String
  private let users: String

  init() throws {
    store = try TestStore()
    let opened = try store.open()
    homes = try Homes(tree: opened.tree, path: store.path + "/tree", mode: opened.description.mode)
    name = Program.isRoot ? "nobody" : try #require(Account.numbered(ProcessID.user)).name
    users = store.path + "/tree/Users"
  }

  private func error(_ body: () throws(StoreError) -> Void) -> StoreError? {
    do throws(StoreError) {
      try body()
      return nil
    } catch {
      return error
    }
  }

  @Test func homeIsWholeAndItsOwners() throws {
    try homes.add(name)
    let account = try #require(Account.named(name))
    for (path, mode) in [("", HomeDirectory.homeMode)] + HomeDirectory.all.map({ ("/" + $0.path, $0.mode) }) {
      var status = stat()
      #expect(lstat("\(users)/\(name)\(path)", &status) == 0)
      #expect(status.st_mode & 0o7777 == mode, "\(path)")
      #expect(status.st_uid == account.uid && status.st_gid == account.gid, "\(path)")
    }
    #expect(try homes.list() == [.init(name: name, uid: account.uid, account: name, missing: [])])
    #expect(try store.temporary.names(in: "store/tree/Users") == ["Shared", name])
  }

  /// Of what nobody can look into, nobody says that it is complete.
  @Test(.enabled(if: Program.isRoot, "mounts need root")) func whatCanNotBeExaminedIsNotComplete() throws {
    try homes.add(name)
    #expect(mount("tmpfs", "\(users)/\(name)", "tmpfs", 0, nil) == 0)
    defer { umount2("\(users)/\(name)", CLX_MNT_DETACH) }
    #expect(try homes.list().map(\.problem) == [Errno.EXDEV.message])
    var check = try StoreCheck(try store.open(), repairing: false)
    try check.run()
    #expect(
      check.findings.contains {
        $0.path.hasSuffix("/Users/\(name)") && $0.problem.contains("can't be examined")
      })
  }

  /// What a command was stopped in, the next one clears away: of a process that is gone, and nothing else.
  @Test(arguments: ["add", "remove"]) func remaindersGoWithTheNextCommand(verb: String) throws {
    if verb == "remove" { try homes.add(name) }
    let ended = try Program.run(["sh", "-c", "echo $$"]).output.dropLast()
    let stay = [".x.removed-\(ProcessID.own)", ".hidden", ".x.removed-home"]
    for name in stay + [".x.removed-\(ended)", ".y.new-1.new-\(ended)"] {
      try store.temporary.makeDirectory("store/tree/Users/\(name)")
      try store.temporary.makeDirectory("store/tree/Users/\(name)/Documents")
    }
    if verb == "add" { try homes.add(name) } else { try homes.remove(name) }
    let names = try store.temporary.names(in: "store/tree/Users")
    #expect(Set(names) == Set(stay + ["Shared"] + (verb == "add" ? [name] : [])))
  }

  @Test func homeBeginsWithACLsAndFlags() throws {
    try homes.add(name)
    let account = try #require(Account.named(name))
    let metadata = Metadata(isSystem: Program.isRoot)
    let staying = AccessControlEntry(.deny, .everyone, .delete)
    for path in [""] + HomeDirectory.all.map({ "/" + $0.path }) {
      let directory = try TemporaryDirectory.open("\(users)/\(name)\(path)")
      let security = try metadata.security(of: directory.fd)
      if path.hasPrefix("/Library/") {
        #expect(security.acl == .none, "\(path)")
        continue
      }
      var entries = [staying]
      if path == "/Public/Drop Box" {
        entries.append(
          AccessControlEntry(.permit, .user(account.uid), .all, [.fileInherit, .directoryInherit]))
      }
      #expect(security.acl == .acl(AccessControlList(entries)), "\(path)")
      #expect(security.flags == (path == "/Library" ? .hidden : []), "\(path)")
    }
  }

  @Test func homeThatIsThereStaysAsItIs() throws {
    try homes.add(name)
    try store.temporary.write("mine", to: "store/tree/Users/\(name)/Documents/file")
    #expect(error { () throws(StoreError) in try homes.add(name) } == .homeExists(path: "\(users)/\(name)"))
    #expect(store.temporary.text(of: "store/tree/Users/\(name)/Documents/file") == "mine")
    #expect(try store.temporary.names(in: "store/tree/Users") == ["Shared", name])
  }

  @Test(
    arguments: [
      "", ".", "..", "a/b", "/etc", "../x", "Shared", ".hidden", "-rf", "a\nb", "a\u{7f}",
      String(repeating: "x", count: 201),
    ])
  func namesThatNoHomeCanHave(name: String) throws {
    for body in [homes.add, homes.remove, homes.require] as [(String) throws(StoreError) -> Void] {
      guard case .badHomeName(name, _) = error({ () throws(StoreError) in try body(name) }) else {
        Issue.record("not refused, or for another reason")
        continue
      }
    }
    #expect(try store.temporary.names(in: "store/tree/Users") == ["Shared"])
  }

  @Test func accountThatTheMachineDoesNotKnow() {
    #expect(
      error { () throws(StoreError) in try homes.add("no-such-person") }
        == .unknownAccount(name: "no-such-person"))
  }

  @Test func rootlessStoreHoldsItsOwnersHomeAlone() throws {
    let opened = try store.open(.inspect)
    let rootless = try Homes(tree: opened.tree, path: "/p", mode: .rootless)
    let other = Program.isRoot ? "nobody" : "root"
    #expect(error { () throws(StoreError) in try rootless.add(other) } == .otherAccount(name: other))
  }

  @Test func removingTakesEverythingAndFollowsNoLink() throws {
    try homes.add(name)
    try store.temporary.write("kept", to: "store/tree/Users/Shared/file")
    #expect(symlink("../../Shared", "\(users)/\(name)/Documents/link") == 0)
    try store.temporary.write("gone", to: "store/tree/Users/\(name)/Public/Drop Box/file")
    try homes.remove(name)
    #expect(try store.temporary.names(in: "store/tree/Users") == ["Shared"])
    #expect(store.temporary.text(of: "store/tree/Users/Shared/file") == "kept")
  }

  @Test func linkInThePlaceOfAHomeIsNoHome() throws {
    #expect(symlink("Shared", "\(users)/\(name)") == 0)
    #expect(try homes.list().isEmpty)
    #expect(error { () throws(StoreError) in try homes.remove(name) } == .noHome(path: "\(users)/\(name)"))
    #expect(try store.temporary.names(in: "store/tree/Users") == ["Shared", name])
  }

  @Test func missingDirectoriesAreListed() throws {
    try homes.add(name)
    #expect(removeMarked("\(users)/\(name)/Public/Drop Box") == 0)
    #expect(removeMarked("\(users)/\(name)/Movies") == 0)
    try store.temporary.write("a file", to: "store/tree/Users/\(name)/Movies")
    #expect(try homes.list().map(\.missing) == [["Movies", "Public/Drop Box"]])
  }

  @Test(.enabled(if: Program.isRoot, "a small disk needs root"))
  func fullDiskLeavesNoHalfHome() throws {
    let disk = try SmallDisk(bytes: 1 << 20, files: 50)
    try Store.create(at: disk.path + "/store", TestStore.description)
    let opened = try Store(opening: disk.path + "/store", .exclusive)
    let homes = try Homes(tree: opened.tree, path: "/p", mode: .system)
    #expect(error { () throws(StoreError) in try homes.add("nobody") } == .noSpace(path: "/p/Users/nobody"))
    let users = try TemporaryDirectory.open(disk.path + "/store/tree/Users")
    #expect(try users.fd.entries().count == 1)
  }
}
