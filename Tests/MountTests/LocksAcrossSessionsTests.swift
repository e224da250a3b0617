// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing
internal import Volume

/// Locks that are taken through one mount of a volume hold in the other.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct LocksAcrossSessionsTests {
  private static let write = "\(F_WRLCK)"
  private static let read = "\(F_RDLCK)"
  private static let none = "\(F_UNLCK)"

  private func clients(_ mounts: TwoMounts) throws -> (Client, Client) {
    let first = try Client()
    let second = try Client()
    #expect(try first.errno("open", mounts.path(0, "file"), "\(O_RDWR | O_CREAT)", "\(0o666)") == 0)
    #expect(try second.errno("open", mounts.path(1, "file"), "\(O_RDWR)") == 0)
    return (first, second)
  }

  @Test(arguments: ["posix", "ofd"])
  func byteRangesExcludeEachOther(style: String) throws {
    let mounts = try TwoMounts()
    let (first, second) = try clients(mounts)
    #expect(try first.errno("lock", style, "0", Self.write, "0", "10") == 0)
    #expect(try second.errno("lock", style, "0", Self.write, "5", "10") == EAGAIN)
    #expect(try second.errno("lock", style, "0", Self.read, "9", "1") == EAGAIN)
    #expect(try second.errno("lock", style, "0", Self.write, "10", "10") == 0)
    #expect(try first.errno("lock", style, "0", Self.read, "0", "0") == EAGAIN)
    #expect(try first.errno("lock", style, "0", Self.none, "0", "10") == 0)
    #expect(try second.errno("lock", style, "0", Self.write, "0", "0") == 0)
    // Who waits is woken, also by the end of the process that has it.
    try first.send("lock", style + " wait", "0", Self.write, "0", "0")
    #expect(try first.answer(milliseconds: 200) == nil)
    #expect(try second.errno("lock", style, "0", Self.none, "0", "0") == 0)
    #expect(try first.answer()?.errno == 0)
    try second.send("lock", style + " wait", "0", Self.read, "3", "1")
    #expect(try second.answer(milliseconds: 200) == nil)
    #expect(try first.errno("close all") == 0)
    #expect(try second.answer()?.errno == 0)
    #expect(try second.errno("close all") == 0)
  }

  @Test func flocksExcludeEachOther() throws {
    let mounts = try TwoMounts()
    let (first, second) = try clients(mounts)
    #expect(try first.errno("flock", "0", "\(LOCK_EX)") == 0)
    #expect(try second.errno("flock", "0", "\(LOCK_EX | LOCK_NB)") == EAGAIN)
    #expect(try second.errno("flock", "0", "\(LOCK_SH | LOCK_NB)") == EAGAIN)
    // The two kinds know nothing of each other.
    #expect(try second.errno("lock", "posix", "0", Self.write, "0", "0") == 0)
    try second.send("flock", "0", "\(LOCK_EX)")
    #expect(try second.answer(milliseconds: 200) == nil)
    #expect(try first.errno("flock", "0", "\(LOCK_UN)") == 0)
    #expect(try second.answer()?.errno == 0)
    #expect(try first.errno("flock", "0", "\(LOCK_SH | LOCK_NB)") == EAGAIN)
  }

  @Test func circleThroughBothIsRefused() throws {
    let mounts = try TwoMounts()
    let (first, second) = try clients(mounts)
    #expect(try first.errno("lock", "posix", "0", Self.write, "0", "1") == 0)
    #expect(try second.errno("lock", "posix", "0", Self.write, "1", "1") == 0)
    try first.send("lock", "posix wait", "0", Self.write, "1", "1")
    #expect(try first.answer(milliseconds: 200) == nil)
    #expect(try second.errno("lock", "posix wait", "0", Self.write, "0", "1") == EDEADLK)
    #expect(try second.errno("lock", "posix", "0", Self.none, "0", "0") == 0)
    #expect(try first.answer()?.errno == 0)
  }

  /// Linux never refuses a wait for the lock of an open file: another thread may give back what stands
  /// against it.
  @Test(arguments: [false, true])
  func circleOfOpenFilesIsRefusedHereAndWaitsOnLinux(plain: Bool) throws {
    let mounts = try TwoMounts()
    let path = plain ? try mounts.temporary.write("", to: "plain") : mounts.path(0, "file")
    let (first, second) = (try Client(), try Client())
    #expect(try first.errno("open", path, "\(O_RDWR | O_CREAT)", "\(0o666)") == 0)
    #expect(try second.errno("open", path, "\(O_RDWR)") == 0)
    #expect(try first.errno("lock", "ofd", "0", Self.write, "0", "1") == 0)
    #expect(try second.errno("lock", "ofd", "0", Self.write, "1", "1") == 0)
    try first.send("lock", "ofd wait", "0", Self.write, "1", "1")
    #expect(try first.answer(milliseconds: 200) == nil)
    try second.send("lock", "ofd wait", "0", Self.write, "0", "1")
    guard !plain else { return #expect(try second.answer(milliseconds: 500) == nil) }
    #expect(try second.answer()?.errno == EDEADLK)
    #expect(try second.errno("lock", "ofd", "0", Self.none, "0", "0") == 0)
    #expect(try first.answer()?.errno == 0)
  }

  /// What becomes of three readers of a byte, two of whom want to write, when the third gives it back: for
  /// each who waited, the answer and when it came.
  private func outcome(_ paths: [String], arrivals: [Int], writers: [Int]) throws -> [String] {
    let clients = try paths.map { path in
      let client = try Client()
      #expect(try client.errno("open", path, "\(O_RDWR | O_CREAT)", "\(0o666)") == 0)
      return client
    }
    for number in arrivals {
      #expect(try clients[number].errno("lock", "posix", "0", Self.read, "0", "1") == 0)
    }
    var told: [String] = []
    for number in writers {
      try clients[number].send("lock", "posix wait", "0", Self.write, "0", "1")
      if let answer = try clients[number].answer(milliseconds: 300) {
        told.append("\(number): \(answer) at once")
      }
    }
    #expect(try clients[2].errno("lock", "posix", "0", Self.none, "0", "1") == 0)
    // One of the two is told, and the other one waits for what that has.
    var waiting = writers.filter { number in !told.contains { $0.hasPrefix("\(number)") } }
    let isTold = try eventually {
      for number in waiting {
        guard let answer = try clients[number].answer(milliseconds: 10) else { continue }
        told.append("\(number): \(answer)")
        waiting.removeAll { $0 == number }
      }
      return waiting.count <= 1
    }
    try #require(isTold, "both wait for ever: \(arrivals), \(writers)")
    let last = try #require(waiting.first)
    let loser = try #require(writers.first { $0 != last })
    #expect(try clients[loser].errno("lock", "posix", "0", Self.none, "0", "1") == 0)
    told.append("\(last): \(try #require(try clients[last].answer())) in the end")
    return told
  }

  /// A circle of waiters that another reader hides is found when that one has gone: by whom, and when, as on
  /// the machine's own filesystem.
  @Test(arguments: [[2, 0, 1], [0, 2, 1], [0, 1, 2]], [[0, 1], [1, 0]])
  func circleBehindAnotherReaderIsFound(arrivals: [Int], writers: [Int]) throws {
    let mounts = try TwoMounts()
    let plain = try mounts.temporary.write("", to: "plain")
    let (first, second) = (mounts.path(0, "file"), mounts.path(1, "file"))
    let found = try outcome([first, second, first], arrivals: arrivals, writers: writers)
    let expected = try outcome([plain, plain, plain], arrivals: arrivals, writers: writers)
    #expect(found == expected)
    #expect(found.contains { $0.contains(Errno.EDEADLK.message) }, "\(found)")
  }

  @Test func localLocksAreTheKernelsAndOfOneMountOnly() throws {
    let mounts = try TwoMounts(localLocks: true)
    let (first, second) = try clients(mounts)
    let third = try Client()
    #expect(try third.errno("open", mounts.path(0, "file"), "\(O_RDWR)") == 0)
    for style in ["posix", "ofd"] {
      #expect(try first.errno("lock", style, "0", Self.write, "0", "0") == 0)
      #expect(try second.errno("lock", style, "0", Self.write, "0", "0") == 0)
      #expect(try third.errno("lock", style, "0", Self.write, "0", "0") == EAGAIN)
      #expect(try second.errno("lock", style, "0", Self.none, "0", "0") == 0)
      #expect(try first.errno("lock", style, "0", Self.none, "0", "0") == 0)
    }
    for (client, expected) in [(first, 0), (second, 0), (third, EAGAIN)] {
      #expect(try client.errno("flock", "0", "\(LOCK_EX | LOCK_NB)") == expected)
    }
    for view in mounts.views { #expect(view.counts.locks == 0) }
  }

  @Test func killedClientLeavesNoLock() throws {
    let mounts = try TwoMounts()
    var (first, second): (Client?, Client) = try clients(mounts)
    #expect(try first?.errno("lock", "posix", "0", Self.write, "0", "0") == 0)
    #expect(try first?.errno("flock", "0", "\(LOCK_EX)") == 0)
    try second.send("lock", "posix wait", "0", Self.write, "0", "0")
    #expect(try second.answer(milliseconds: 200) == nil)
    first = nil
    #expect(try second.answer()?.errno == 0)
    #expect(try second.errno("flock", "0", "\(LOCK_EX)") == 0)
    // A client that is killed while it waits leaves nothing in the queue either.
    let third = try Client()
    #expect(try third.errno("open", mounts.path(0, "file"), "\(O_RDWR)") == 0)
    var fourth: Client? = try Client()
    #expect(try fourth?.errno("open", mounts.path(0, "file"), "\(O_RDWR)") == 0)
    try fourth?.send("lock", "posix wait", "0", Self.write, "0", "0")
    #expect(try fourth?.answer(milliseconds: 200) == nil)
    fourth = nil
    #expect(try second.errno("lock", "posix", "0", Self.none, "0", "0") == 0)
    #expect(try third.errno("lock", "posix", "0", Self.write, "0", "0") == 0)
  }

  @Test(arguments: ["posix wait", "ofd wait", "flock"])
  func interruptedClientIsNotWaitedFor(style: String) throws {
    let mounts = try TwoMounts()
    let (first, second) = try clients(mounts)
    if style == "flock" {
      #expect(try first.errno("flock", "0", "\(LOCK_EX)") == 0)
    } else {
      #expect(try first.errno("lock", "posix", "0", Self.write, "0", "0") == 0)
    }
    #expect(try second.errno("alarm", "300") == 0)
    let wait = style == "flock" ? ["flock", "0", "\(LOCK_EX)"] : ["lock", style, "0", Self.write, "0", "0"]
    try second.send(wait)
    #expect(try second.answer()?.errno == EINTR)
    // It has left the queue: what is released is free.
    #expect(try first.errno("flock", "0", "\(LOCK_UN)") == 0)
    #expect(try first.errno("lock", "posix", "0", Self.none, "0", "0") == 0)
    for view in mounts.views { #expect(view.counts.locks == 0) }
  }

  /// A view that ends takes along what was locked through it, and whoever still waits there.
  @Test func endedViewLeavesNoLock() throws {
    let mounts = try SeveralMounts(3)
    var (first, second): (Client?, Client) = try clients(mounts)
    let third = try Client()
    #expect(try third.errno("open", mounts.path(2, "file"), "\(O_RDWR)") == 0)
    #expect(try second.errno("lock", "posix", "0", Self.write, "0", "0") == 0)
    #expect(try second.errno("flock", "0", "\(LOCK_EX)") == 0)
    try first?.send("lock", "posix wait", "0", Self.write, "0", "0")
    try third.send("flock", "0", "\(LOCK_EX)")
    #expect(try first?.answer(milliseconds: 200) == nil)
    #expect(try third.answer(milliseconds: 10) == nil)
    // What is aborted tells of no close.
    mounts.abort([1])
    #expect(try first?.answer()?.errno == 0)
    #expect(try third.answer()?.errno == 0)
    #expect(try second.errno("open", mounts.path(1, "file"), "\(O_RDWR)") != 0)
    first = nil
  }

  @Test(arguments: ["delete", "wal"])
  func databaseIsWrittenThroughAllAtOnce(journal: String) throws {
    guard try Program.run(["sqlite3", "--version"]).status == 0 else {
      print("not tested: sqlite3 is not installed")
      return
    }
    let mounts = try SeveralMounts(3)
    let start = "pragma journal_mode=\(journal); create table t (who integer, n integer, unique (who, n));"
    let made = try Program.run(["sqlite3", mounts.path(0, "db"), start])
    #expect(made.status == 0 && made.output.hasPrefix(journal), "\(made.errors)")
    // Each says which rows it was told are there. One opens the database once, one for each row.
    let acknowledged = Mutex<[String]>([])
    let failures = Mutex<[String]>([])
    let writers = try (0..<6).map { who in
      let path = mounts.path(who % 3, "db")
      let once = """
        for n in $(seq 1 200); do echo "insert into t values (\(who), $n); select '\(who)|$n';"; done |
          sqlite3 -bail -cmd '.timeout 120000' '\(path)'
        """
      let eachTime = """
        for n in $(seq 1 40); do
          sqlite3 -bail -cmd '.timeout 120000' '\(path)' \
        "insert into t values (\(who), $n)" && echo "\(who)|$n"
        done
        """
      return try JoinableThread(name: "writer") {
        guard let result = try? Program.run(["sh", "-c", who < 3 ? once : eachTime]) else { return }
        acknowledged.withLock { $0 += result.output.split(separator: "\n").map(String.init) }
        if !result.errors.isEmpty { failures.withLock { $0.append(result.errors) } }
      }
    }
    for writer in writers { writer.join() }
    let rows = acknowledged.withLock { $0 }
    #expect(failures.withLock { $0 } == [])
    #expect(rows.count == 3 * 200 + 3 * 40)
    for number in 0..<3 {
      let path = mounts.path(number, "db")
      #expect(try Program.run(["sqlite3", path, "pragma integrity_check"]).output == "ok\n")
      let found = try Program.run(["sqlite3", path, "select who, n from t"]).output.split(separator: "\n")
        .map(String.init)
      #expect(Set(found) == Set(rows) && found.count == rows.count)
    }
  }
}
