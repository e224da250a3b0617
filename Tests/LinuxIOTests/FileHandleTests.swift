// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

@Suite(.enabled(if: Program.isRoot, "opening by handle needs root"))
struct FileHandleTests {
  private static func handle(of path: String) throws -> FileHandle {
    let file = OwnedFD(owning: try check(clx_open(path, CLX_O_PATH | O_CLOEXEC, 0)))
    return try #require(file.fd.handle())
  }

  @Test func handleFindsItsObjectUnderEveryNameAndWithoutOne() throws {
    let temporary = try TemporaryDirectory()
    let directory = try temporary.open()
    let first = try temporary.write("text", to: "first")
    let handle = try Self.handle(of: first)
    #expect(rename(first, temporary.appending("second")) == 0)
    let found = try directory.fd.open(handle)
    #expect(unlink(temporary.appending("second")) == 0)
    let again = try directory.fd.open(handle)
    #expect(try found.fd.status().st_ino == again.fd.status().st_ino && again.fd.status().st_nlink == 0)
    do { try found.close() }
    do { try again.close() }
    #expect(throws: Errno.ESTALE) { _ = try directory.fd.open(handle) }
  }

  /// Linux says ENOMEM while the number is on its way to another file, which is not what its callers must
  /// hear.
  @Test func handleOfWhatIsGoneIsStaleAlsoWhileItsNumberIsGivenAway() throws {
    let disk = try Ext4(megabytes: 16, journal: false)
    let directory = try TemporaryDirectory.open(disk.path)
    let stale = try (0..<8).map { number in
      let path = "\(disk.path)/gone\(number)"
      close(try check(creat(path, 0o600)))
      return (path, try Self.handle(of: path))
    }
    for (path, _) in stale { #expect(unlink(path) == 0) }
    let stop = Stop()
    let makers = try (0..<2).map { maker in
      try JoinableThread(name: "maker") {
        var number = 0
        while !stop.isDue.load(ordering: .relaxed) {
          let path = "\(disk.path)/\(maker)-\(number % 4)"
          close(creat(path, 0o600))
          unlink(path)
          number += 1
        }
      }
    }
    var others: [Errno: Int] = [:]
    let end = ContinuousClock.now + .seconds(3)
    while ContinuousClock.now < end {
      for (_, handle) in stale {
        do throws(Errno) {
          try directory.fd.open(handle).close()
          others[Errno(0), default: 0] += 1
        } catch {
          if error != .ESTALE { others[error, default: 0] += 1 }
        }
      }
    }
    stop.isDue.store(true, ordering: .relaxed)
    for maker in makers { maker.join() }
    #expect(others.isEmpty)
  }

  private final class Stop: Sendable { let isDue = Atomic<Bool>(false) }
}
