// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What one view does, all others see when the call has returned.
///
/// The two long ones do here what fits into seconds, and all of it with `make coherence`.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct CoherenceTests {
  private static func share(_ name: String, _ short: Int) -> Int {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? short
  }

  struct Kind: Sendable, CustomTestStringConvertible {
    var rootless = false
    /// Others look at all of it again and again, so that old answers are on their way when something changes.
    var watched = false
    /// What the views may do in the place, if it is all that they have.
    var reach: Reach?
    /// Whether the others are files views that show the place.
    var areFilesViews = false
    /// Whether what is stored through a memory map is seen by the others.
    var sharesMaps: Bool { !rootless && reach?.contains(.revocable) != true }
    var scope: Scope {
      reach.map { Scope([ScopePlace("Users/Shared/work", $0, isSubtree: true)]) } ?? .wholeTree
    }
    var testDescription: String {
      "\(rootless ? "rootless" : "system")\(watched ? ", watched" : "")"
        + (reach.map { $0.contains(.revocable) ? ", granted" : ", own" } ?? "")
        + (areFilesViews ? ", files views" : "")
    }
  }
  private static let kinds = [
    Kind(), Kind(rootless: true), Kind(watched: true), Kind(rootless: true, watched: true),
    Kind(watched: true, reach: [.read, .write]), Kind(rootless: true, reach: [.read, .write]),
    Kind(watched: true, reach: [.read, .write, .revocable]),
    Kind(watched: true, areFilesViews: true), Kind(rootless: true, areFilesViews: true),
  ]

  /// Two views and the whole tree, against a model.
  @Test(arguments: kinds) func whatOneViewDoesAllOthersSee(kind: Kind) throws {
    let mounts = try SeveralMounts(
      3, rootless: kind.rootless, scope: kind.scope, user: kind.reach == nil ? nil : 0,
      files: kind.areFilesViews ? "work" : nil)
    let client = try Client()
    #expect(try client.errno("mkdir", mounts.path(0, "work"), "\(0o777)") == 0)
    #expect(try client.errno("chmod", mounts.path(0, "work"), "\(0o777)") == 0)
    let watchers = try (1..<3).prefix(kind.watched ? 2 : 0).map { number in
      let watcher = try Client()
      try watcher.send("watch", mounts.path(number, "work"))
      return watcher
    }
    defer { withExtendedLifetime(watchers) {} }
    let steps = Self.share("INSULA_COHERENCE_STEPS", 2500)
    try client.send(
      ["coherence", "20261120", "\(steps)", kind.sharesMaps ? "maps" : "no maps", mounts.backing("work")]
        + (0..<3).map { mounts.path($0, "work") })
    let answer = try client.answer(milliseconds: Int32(clamping: Int(patience) + steps * 20))
    if answer == nil { mounts.abort() }
    #expect(answer?.errno == 0, "\(answer?.words.joined(separator: " ") ?? "it hangs")")
    print(answer?.words.first ?? "")
  }

  /// Nobody waits for ever, whoever changes names in one directory at once; and in the end all see the same.
  @Test(arguments: [false, true])
  func nobodyHangsWhereAllChangeNames(rootless: Bool) throws {
    let mounts = try SeveralMounts(3, rootless: rootless)
    let milliseconds = Self.share("INSULA_COHERENCE_SECONDS", 3) * 1000
    let clients = try (0..<6).map { _ in try Client() }
    #expect(try clients[0].errno("mkdir", mounts.path(0, "work"), "\(0o777)") == 0)
    for (number, client) in clients.enumerated() {
      try client.send("contend", mounts.path(number % 3, "work"), "\(number)", "\(milliseconds)")
    }
    var counts = [0, 0, 0, 0]
    for client in clients {
      // The watchdog: who has no answer long after the end hangs, and is freed so that the test can say so.
      let answer = try client.answer(milliseconds: Int32(clamping: milliseconds + Int(patience)))
      guard let answer else {
        mounts.abort()
        Issue.record("it hangs")
        return
      }
      #expect(answer.errno == 0, "\(answer)")
      for (place, word) in answer.words.enumerated() where place < 4 { counts[place] += Int(word) ?? 0 }
    }
    print("\(counts[0]) creates, \(counts[1]) unlinks, \(counts[2]) renames, \(counts[3]) looks")
    let names = (0..<8).map { "c\($0)" }
    let there = names.filter { Glibc.access(mounts.backing("work/\($0)"), F_OK) == 0 }
    for number in 0..<3 {
      let path = mounts.path(number, "work")
      let client = clients[number]
      #expect(try client.run("list", path).words == ["\(there.count + 2)"])
      for name in names {
        #expect(try (client.errno("stat", path + "/" + name) == 0) == there.contains(name))
      }
    }
  }

  /// Who is somewhere, or has something open, when it is removed or moved through another view goes on.
  @Test(arguments: [false, true])
  func whatIsOpenOutlivesItsNameInAllViews(rootless: Bool) throws {
    let mounts = try SeveralMounts(3, rootless: rootless)
    let (here, there) = (try Client(), try Client())
    #expect(try there.errno("mkdir", mounts.path(1, "dir"), "\(0o755)") == 0)
    #expect(try there.errno("open", mounts.path(1, "dir/file"), "\(O_RDWR | O_CREAT)", "\(0o644)") == 0)
    #expect(try there.errno("write", "0", "text") == 0)
    #expect(try there.errno("chdir", mounts.path(1, "dir")) == 0)
    #expect(try here.errno("rename", mounts.path(0, "dir"), mounts.path(0, "moved")) == 0)
    #expect(try there.run("stat", "file").words.last == "4")
    #expect(try here.errno("unlink", mounts.path(2, "moved/file")) == 0)
    #expect(try there.errno("stat", "file") == ENOENT)
    #expect(try there.run("read", "0", "0").words == ["text"])
    #expect(try there.errno("write", "0", " more") == 0)
    #expect(try there.run("read", "0", "0").words == ["text more"])
    #expect(try here.errno("rmdir", mounts.path(0, "moved")) == 0)
    for view in mounts.views { view.nodes.releaseDescriptors(1000) }
    #expect(try there.run("stat", ".").errno == 0)
    #expect(try there.errno("mkdir", "new", "\(0o755)") == ENOENT)
  }

  @Test(arguments: [false, true])
  func mapsAreSharedOrNotToBeHad(rootless: Bool) throws {
    let mounts = try SeveralMounts(3, rootless: rootless)
    let clients = try (0..<2).map { _ in try Client() }
    #expect(try clients[0].errno("open", mounts.path(0, "file"), "\(O_RDWR | O_CREAT)", "\(0o644)") == 0)
    #expect(try clients[0].errno("ftruncate", "0", "4096") == 0)
    #expect(try clients[0].errno("map", "0", "4096") == 0)
    #expect(try clients[1].errno("open", mounts.path(1, "file"), "\(O_RDWR)") == 0)
    let mapped = try clients[1].errno("map", "0", "4096")
    #expect(mapped == (rootless ? ENODEV : 0))
    guard !rootless else { return }
    for (number, client) in clients.enumerated() {
      #expect(try client.errno("store", "\(number)", "\(UInt8(ascii: "a"))") == 0)
      let text = try clients[1 - number].run("read", "0", "\(number)").words.first ?? ""
      #expect(text.hasPrefix("a"))
    }
  }

  /// Two views would each have their own of the memory that the users of a database share.
  @Test(arguments: [false, true])
  func writeAheadLogIsOneViewsAtATimeWithoutPassthrough(rootless: Bool) throws {
    let mounts = try SeveralMounts(2, rootless: rootless)
    let (one, other) = (mounts.path(0, "db"), mounts.path(1, "db"))
    func run(_ words: String...) throws -> ProgramResult { try Program.run(["sqlite3", "-bail"] + words) }
    let made = try run(
      one, "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1);",
      ".shell sqlite3 \(other) 'INSERT INTO t VALUES(2)' 2>&1",
      ".shell sqlite3 \(one) 'INSERT INTO t VALUES(3)' 2>&1")
    #expect(made.status == 0)
    let refusal = "unable to open database file"
    #expect(made.output.contains(refusal) == rootless, "\(made.output)")
    #expect(!made.output.contains("I/O"), "\(made.output)")
    // One after the other.
    #expect(try run(other, "INSERT INTO t VALUES(4)").status == 0)
    let read = try run(one, "PRAGMA integrity_check; SELECT a FROM t ORDER BY a;")
    #expect(read.output == (rootless ? "ok\n1\n3\n4\n" : "ok\n1\n2\n3\n4\n"))
  }
}
