// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Testing

/// The helper has more rights than a worker, which hands it a file to start.
@Suite struct RehearsalTests {
  /// What the helper answers to one that asks with a file.
  private func answer(to file: String) throws -> Errno? {
    let ends = try Pairs.messages()
    let mine = OwnedFD(owning: ends.mine.raw)
    let theirs = OwnedFD(owning: ends.theirs.raw)
    let program = try FD.cwd.openFollowing(file, O_RDONLY)
    for descriptor in [program.fd, FD(STDERR_FILENO)] {
      _ = try LocalSocket.send([0], with: descriptor, to: mine.fd)
    }
    do throws(Errno) {
      try Rehearsal("/bin/true", ["true", "--can-take-over"]).run(theirs.fd)
      return nil
    } catch {
      return error
    }
  }

  @Test func onlyTheInstalledProgramIsStarted() throws {
    #expect(try answer(to: "/bin/true") == nil)
    #expect(try answer(to: "/bin/sh") == .ESTALE)
  }
}
