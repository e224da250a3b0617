// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The usual mount point is made where it is missing, and nothing is made or changed elsewhere.
@Suite struct MadeMountPointTests {
  private let temporary: TemporaryDirectory
  private let context = Context.current()

  init() throws {
    temporary = try TemporaryDirectory()
    for name in ["ours", "decoy"] { try temporary.makeDirectory(name, mode: 0o700) }
  }

  private func prepare(_ path: String) throws {
    _ = try MountPoint(path, isDefault: true).prepare(
      allowingNonEmpty: false, store: temporary.appending("store"), context)
  }

  @Test func itIsMadeForEveryoneToEnter() throws {
    try prepare(temporary.appending("ours/Insula"))
    let made = try TemporaryDirectory.open(temporary.appending("ours/Insula"))
    let status = try made.fd.status()
    #expect(status.permissions == 0o755 && status.st_uid == ProcessID.user)
    // The second time it is there.
    try prepare(temporary.appending("ours/Insula"))
  }

  /// The attack: a link that comes to be on the way after the path was found.
  @Test func noLinkLeadsToWhereItIsMade() throws {
    try temporary.makeDirectory("decoy/there", mode: 0o700)
    guard symlink("decoy", temporary.appending("link")) == 0 else { throw Errno.last }
    for (name, words) in [("link/Insula", "can't create the mount point"), ("link/there", "symbolic link")] {
      let failure = #expect(throws: CommandFailure.self) { try prepare(temporary.appending(name)) }
      #expect(failure?.message.contains(words) == true, "\(String(describing: failure))")
    }
    #expect(try temporary.names(in: "decoy") == ["there"])
    let there = try TemporaryDirectory.open(temporary.appending("decoy/there"))
    let status = try there.fd.status()
    #expect(status.permissions == 0o700)
  }
}
