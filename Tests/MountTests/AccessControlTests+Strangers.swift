// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

extension AccessControlTests {
  /// What a stranger leaves in somebody's directory, its owner can remove, whatever ACL it has.
  @Test(arguments: ["", "nopassthrough"]) func ownersRemoveWhatStrangersLeave(options: String) throws {
    let mounted = try MountedStore.mounted(options: options.isEmpty ? nil : options)
    let account = try TemporaryAccount()
    #expect(try mounted.run("user", "add", "--store", mounted.store, account.account.name).status == 0)
    let box = mounted.path("Users/\(account.account.name)/Public/Drop Box")
    let owner = try Client(uid: account.account.uid, gid: account.account.gid)
    let giver = try Client(uid: Self.alice)
    let stranger = try Client(uid: Self.bob)
    #expect(try giver.errno("create", box + "/file", "\(0o600)") == 0)
    #expect(try giver.errno("mkdir", box + "/folder", "\(0o700)") == 0)
    for name in ["file", "folder"] {
      setACL("\(box)/\(name)", AccessControlEntry(.deny, .everyone, .delete))
      #expect(try stranger.errno(name == "file" ? "unlink" : "rmdir", "\(box)/\(name)") == EACCES)
    }
    #expect(try owner.errno("unlink", box + "/file") == 0)
    #expect(try owner.errno("rmdir", box + "/folder") == 0)
    // What one has denied oneself stays denied.
    #expect(try owner.errno("create", box + "/own", "\(0o600)") == 0)
    setACL(box + "/own", AccessControlEntry(.deny, .everyone, .delete))
    #expect(try owner.errno("unlink", box + "/own") == EACCES)
  }
}
