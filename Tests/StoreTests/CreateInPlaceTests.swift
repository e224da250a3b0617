// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
@testable internal import Store
internal import TestSupport
internal import Testing

/// A store that is made in a directory that is there: nothing of anybody else's gets into it.
@Suite struct CreateInPlaceTests {
  private static let stranger: UInt32 = 65534
  private let temporary: TemporaryDirectory
  private var path: String { temporary.appending("store") }

  init() throws {
    temporary = try TemporaryDirectory()
    try temporary.makeDirectory("store")
  }

  private func status(_ name: String) throws -> FileStatus {
    var status = stat()
    guard lstat(temporary.appending(name), &status) == 0 else { throw Errno.last }
    return FileStatus(status)
  }

  private func give(_ name: String) throws {
    guard lchown(temporary.appending(name), Self.stranger, Self.stranger) == 0 else { throw Errno.last }
  }

  /// What an interrupted `insula init` leaves.
  private func leaveUnfinished() throws {
    try temporary.write("", to: "store/unfinished")
    for name in ["keys", "state", "tree"] { try temporary.makeDirectory("store/\(name)", mode: 0o700) }
    try temporary.write("", to: "store/state/lock")
  }

  private func isRefused() throws {
    let before = try (temporary.names(in: "store"), status("store"))
    #expect(throws: StoreError.notEmpty(path: path)) { try Store.create(at: path, TestStore.description) }
    let after = try (temporary.names(in: "store"), status("store"))
    #expect(after.0 == before.0 && after.1.st_uid == before.1.st_uid)
    #expect(after.1.st_gid == before.1.st_gid && after.1.permissions == before.1.permissions)
  }

  @Test func oursIsFinished() throws {
    try leaveUnfinished()
    #expect(throws: StoreError.halfMade(path: path)) { _ = try Store(opening: path, .inspect) }
    try Store.create(at: path, TestStore.description)
    #expect(try temporary.names(in: "store") == ["keys", "state", "store.plist", "tree"])
    #expect(try status("store").permissions == 0o700)
  }

  @Test(arguments: ["store", "store/unfinished"]) func whatOthersMayWriteIsNotOurs(name: String) throws {
    try leaveUnfinished()
    for mode in [0o020, 0o002] as [UInt32] {
      let before = try status(name).permissions
      guard chmod(temporary.appending(name), before | mode) == 0 else { throw Errno.last }
      try isRefused()
      guard chmod(temporary.appending(name), before) == 0 else { throw Errno.last }
    }
    try Store.create(at: path, TestStore.description)
  }

  @Test(arguments: ["unfinished", "state/lock"]) func linksAreNotOurs(name: String) throws {
    try leaveUnfinished()
    let decoy = try temporary.write("decoy", to: "decoy")
    for make in [{ symlink($0, $1) }, { link($0, $1) }] as [(String, String) -> Int32] {
      guard unlink("\(path)/\(name)") == 0, make(decoy, "\(path)/\(name)") == 0 else { throw Errno.last }
      try isRefused()
    }
    #expect(temporary.text(of: "decoy") == "decoy")
  }

  @Test func otherThingsAreNotOurs() throws {
    try leaveUnfinished()
    try temporary.write("mine", to: "store/mine")
    try isRefused()
  }

  @Test(
    .enabled(if: Program.isRoot, "others' files need root"),
    arguments: ["store", "store/unfinished", "store/keys", "store/state", "store/state/lock"])
  func whatIsSomebodyElsesIsNotTaken(name: String) throws {
    try leaveUnfinished()
    try give(name)
    try isRefused()
    #expect(throws: (any Error).self) { _ = try Store(opening: path, .inspect) }
  }

  /// Everything in it is theirs: trusted roots, a registry, a tree.
  @Test(.enabled(if: Program.isRoot, "others' files need root"))
  func whatAUserHasPreparedIsNotTaken() throws {
    try leaveUnfinished()
    try temporary.makeDirectory("store/keys/trust")
    try temporary.write("root", to: "store/keys/trust/evil.pem")
    try temporary.write("registry", to: "store/state/insula.db")
    for name in [
      "keys/trust/evil.pem", "keys/trust", "state/insula.db", "state/lock", "keys", "state", "tree",
      "unfinished", "",
    ] {
      try give("store/\(name)")
    }
    try isRefused()
    #expect(temporary.text(of: "store/state/insula.db") == "registry")
    #expect(try status("store/state").st_uid == Self.stranger)
  }

  /// What a user's directory passes on to what is made in it would be rights of theirs in the store.
  @Test(.enabled(if: Program.isRoot, "others' directories need root"))
  func rightsThatADirectoryPassesOnGo() throws {
    try give("store")
    let access = try Program.run(["setfacl", "-d", "-m", "u:\(Self.stranger):rwx", path])
    try #require(access.status == 0, "\(access.errors)")
    try Store.create(at: path, TestStore.description)
    let found = try Program.run(["getfacl", "-Rns", path])
    #expect(found.status == 0 && !found.output.contains("user:\(Self.stranger)"), "\(found.output)")
  }
}
