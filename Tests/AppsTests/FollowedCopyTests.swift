// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

@Suite struct FollowedCopyTests {
  /// Keeps what it gets.
  private final class Keeper: CopyFollower {
    private let kept = Mutex<(bytes: [UInt8], status: FileStatus?)>(([], nil))

    var bytes: [UInt8] { kept.withLock { $0.bytes } }
    var status: FileStatus? { kept.withLock { $0.status } }

    func append(_ piece: UnsafeRawBufferPointer) {
      let piece = Array(piece)
      kept.withLock { $0.bytes += piece }
    }

    func finish(_ copy: FileStatus) { kept.withLock { $0.status = copy } }
  }

  private let made: TestStore
  private let store: Store
  private let keepers = Keepers()

  private final class Keepers: Sendable {
    let all = Mutex<[String: Keeper]>([:])
  }

  init() throws {
    made = try TestStore()
    store = try made.open()
    try made.temporary.makeDirectory("Editor.app")
  }

  /// Copies the source to where apps are; each large file has a follower.
  private func install(cancelledAt end: Int64 = .max) throws {
    let keepers = keepers
    let copied = Atomic<Int64>(0)
    let copy = TreeCopy(
      uid: ProcessID.user, gid: ProcessID.group, progress: { copied.store($0.bytes, ordering: .relaxed) },
      isCancelled: { copied.load(ordering: .relaxed) >= end },
      follower: { path in
        let keeper = Keeper()
        keepers.all.withLock { $0[path] = keeper }
        return keeper
      })
    let source = try TemporaryDirectory.open(made.temporary.appending("Editor.app"))
    let staged = try StagedTree(source.fd, in: store, for: "Applications", copy)
    let applications = try TemporaryDirectory.open(made.path + "/tree/Applications")
    try staged.place(as: "Editor.app", in: applications.fd)
  }

  private func keeperOf(_ path: String) -> Keeper? { keepers.all.withLock { $0[path] } }

  private func noise(_ count: Int) -> [UInt8] {
    var random = SystemRandomNumberGenerator()
    return (0..<(count + 7) / 8).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
  }

  private func write(_ bytes: [UInt8], to name: String) throws {
    try Data(bytes).write(to: URL(filePath: made.temporary.appending("Editor.app/\(name)")))
  }

  private func copy(of name: String) throws -> (bytes: [UInt8], status: FileStatus) {
    let directory = try TemporaryDirectory.open(made.path + "/tree/Applications/Editor.app")
    let file = try name.withName { (name) throws(Errno) in try directory.fd.open(name, O_RDONLY) }
    return (try file.fd.readToEnd(limit: 1 << 28), try file.fd.status())
  }

  /// One that is copied and followed by one thread, and one with a thread of its own to follow it.
  @Test(arguments: [(1 << 20) + 24, (1 << 26) + 8 * 1001])
  func followerGetsWhatTheCopyGets(size: Int) throws {
    let bytes = noise(size)
    try write(bytes, to: "large")
    try install()
    let keeper = try #require(keeperOf("large"))
    let copy = try copy(of: "large")
    #expect(copy.bytes == bytes)
    #expect(keeper.bytes == bytes)
    let finished = try #require(keeper.status)
    #expect(finished.st_ino == copy.status.st_ino && finished.st_size == copy.status.st_size)
    #expect(finished.st_ctim.tv_sec == copy.status.st_ctim.tv_sec)
    #expect(finished.st_ctim.tv_nsec == copy.status.st_ctim.tv_nsec)
  }

  /// Where its bytes do not pass through our memory, or not all of them, it must not take what it got for the
  /// file.
  @Test func whatIsSmallOrHasHolesIsNotFollowed() throws {
    try write(noise(4096), to: "small")
    try write(noise(1 << 20), to: "sparse")
    #expect(truncate(made.temporary.appending("Editor.app/sparse"), 1 << 22) == 0)
    try install()
    #expect(keeperOf("small") == nil)
    #expect(keeperOf("sparse")?.status == nil)
    #expect(try copy(of: "sparse").bytes.count == 1 << 22)
  }

  @Test(arguments: [1 << 25, 1 << 27]) func copyThatIsStoppedIsNotFinished(size: Int) throws {
    try write(noise(size), to: "large")
    do {
      try install(cancelledAt: 1 << 24)
      Issue.record("it was not stopped")
    } catch let failure as TreeCopyFailure {
      #expect(failure.reason == .cancelled)
    }
    let keeper = try #require(keeperOf("large"))
    #expect(keeper.status == nil)
    #expect(keeper.bytes.count < size)
    #expect(try made.temporary.names(in: "store/state/staging").isEmpty)
  }

  /// The one is now slower and now faster than the other.
  @Test func piecesArriveInTheirOrder() throws {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4 * 64, alignment: 8)
    defer { memory.deallocate() }
    let ring = PieceRing(memory, pieces: 4)
    let read = Mutex<[UInt8]>([])
    let thread = try JoinableThread(name: "read") {
      ring.readAll { piece in
        let piece = Array(piece)
        if piece[0] % 5 == 0 { usleep(1000) }
        read.withLock { $0 += piece }
      }
    }
    var written: [UInt8] = []
    for number in 0..<1000 {
      if number % 100 > 90 { usleep(500) }
      let piece = ring.free()
      let count = number % 64 + 1
      for index in 0..<count { piece[index] = UInt8(truncatingIfNeeded: number &+ index) }
      written += piece[..<count]
      ring.handOver(count)
    }
    ring.end()
    thread.join()
    #expect(read.withLock { $0 == written })
  }
}
