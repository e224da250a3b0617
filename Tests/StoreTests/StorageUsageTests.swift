// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

// What a hostile user may put where it is counted:
//
// - links out of it, fifos, devices, files with holes, names that control a terminal or are no text, several
//   names for a file: `countsWhatDiskUsageCounts`
// - a tree that is too deep for a path: `deepTreesAreCounted`
// - names that come without end, and one that changes meanwhile: `endsWhereNamesComeWithoutEnd`,
//   `whatGoesMeanwhileIsNotCounted`
// - a walk that nobody waits for any more: `canBeEnded`

@Suite struct StorageUsageTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  private func shell(_ script: String) throws -> String {
    let result = try Program.run(["bash", "-ec", script], in: temporary.path)
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    return result.output
  }

  private func measure(
    _ zone: StorageZone = .container, most: Int64 = .max, pause: () throws(Errno) -> Void = {}
  ) throws -> StorageUsage {
    let directory = try TemporaryDirectory.open(temporary.path)
    let owner = StorageOwner(user: nil, app: AppIdentifier("com.example.editor"))
    return try StorageUsage(of: directory.fd, as: zone, owner, most: most, pause: pause)
  }

  private static let container = """
    mkdir -p Data/{Documents/a/b,tmp/c,Library/{Caches/d/e,Preferences}}
    mkdir -p "Data/Library/Application Support/com.example.editor"
    fill() { head -c "$1" /dev/zero >"$2"; }
    fill 300000 Data/Documents/a/b/x; fill 200000 Data/tmp/c/x; fill 100000 Data/Library/Caches/d/e/x
    fill 5000 Data/Library/Preferences/p; ln -s /nowhere Data/Editor.app
    """

  private func sizes(_ paths: [String]) throws -> [Int64] {
    try shell("du -sx --block-size=1 \(paths.joined(separator: " ")) | cut -f1").split(separator: "\n")
      .compactMap { Int64($0) }
  }

  @Test func countsWhatDiskUsageCounts() throws {
    _ = try shell(
      Self.container + """

        cd Data/Documents
        ln a/b/x again; ln a/b/x a/third; ln -s / out; ln -s .. up; mkfifo pipe
        truncate -s 1T holes; fill 4097 $'\\e[31m\\xff\\xfe<b>\\u202e'; mkdir $'\\xff'; fill 10000 $'\\xff/y'
        """)
    let usage = try measure()
    let all = try sizes(["."])
    #expect([usage.sizes.total] == all && usage.isComplete)
    let parts = try sizes(["Data/Documents", "Data/Library/Caches", "Data/tmp"])
    #expect([usage.sizes[.documents], usage.sizes[.caches], usage.sizes[.tmp]] == parts)
    #expect(usage.sizes[.bundle] == 0 && usage.sizes[.groups] == 0)
    #expect(Int64(try shell("find . | wc -l").trimmingCharacters(in: .newlines)) == usage.count)
    // What goes with a purge is what is in both directories, not the directories themselves.
    let purged = try sizes(["Data/Library/Caches/d", "Data/tmp/c"]).reduce(0, +)
    #expect(usage.purgeable.bytes == purged && usage.purgeable.count == 5)
    #expect(usage.advice.isEmpty)
  }

  /// A whole directory can be one part.
  @Test func otherPlacesAreOnePart() throws {
    _ = try shell(Self.container)
    let usage = try measure(.part(.groups))
    #expect([usage.sizes[.groups]] == (try sizes(["."])))
    #expect(usage.sizes.total == usage.sizes[.groups] && usage.purgeable.count == 0)
  }

  @Test func filesInWrongPlacesAreTold() throws {
    _ = try shell(
      Self.container + """

        mkdir -p Data/Stuff/deep "Data/Library/Application Support/db"
        fill 10000 Data/Stuff/deep/x; fill 10000 Data/Library/loose; fill 5000 $'Data/\\xff'
        fill 20000 "Data/Library/Application Support/db/x"
        fill 20000 "Data/Library/Application Support/com.example.editor/x"
        """)
    let advice = Dictionary(uniqueKeysWithValues: try measure().advice.map { ($0.kind, $0) })
    let misplaced = try #require(advice[.misplaced])
    #expect(misplaced.count == 3 && misplaced.examples.contains("Data/Stuff/deep/x"))
    #expect(misplaced.examples.contains("Data/\u{fffd}"))
    let support = try #require(advice[.unnamedSupport])
    #expect(support.count == 1 && support.examples == ["Data/Library/Application Support/db/x"])
    #expect(support.bytes >= 20000 && advice.count == 2)
  }

  /// Of media that no backup contains nothing is told, whether the file or a directory is marked.
  @Test func largeMediaAreTold() throws {
    let size = StorageAdvice.largeBytes
    _ = try shell(
      Self.container + """

        cd Data/Documents; mkdir -p out/deep
        for f in film.mp4 excluded.mp4 other.mp4 out/deep/film.mov text.txt a/b/song.flac; do
          fallocate -l \(size) $f; done
        fallocate -l \(size / 2) short.mp4; truncate -s 1T holes.mp4
        setfattr -n user.com.apple.metadata:com_apple_backup_excludeItem -v x excluded.mp4 out
        setfattr -n user.xdg.robots.backup -v false other.mp4
        setfattr -n user.xdg.robots.backup -v true film.mp4
        """)
    let advice = try measure().advice
    #expect(advice.map(\.kind) == [.largeMedia])
    #expect(
      Set(advice.flatMap(\.examples)) == ["Data/Documents/film.mp4", "Data/Documents/a/b/song.flac"])
    #expect(advice.first?.count == 2 && advice.first?.bytes ?? 0 >= 2 * size)
  }

  @Test func deepTreesAreCounted() throws {
    let made = try Program.run(
      [
        "python3", "-c",
        """
        import os
        for i in range(4000):
            os.mkdir("d"); os.chdir("d")
        open("f", "wb").write(b"x" * 100000)
        """,
      ], in: temporary.path)
    try #require(made.status == 0, "\(made.errors)")
    let usage = try measure(.part(.groups))
    #expect(usage.count == 4002 && usage.isComplete && usage.sizes.total >= 100_000)
    _ = try shell("rm -rf d")
  }

  @Test func endsWhereNamesComeWithoutEnd() throws {
    _ = try shell("mkdir d; cd d; seq 200 | xargs touch")
    let directory = try TemporaryDirectory.open(temporary.appending("d"))
    var next = 0
    let usage = try measure(.part(.data), most: 5000) { () throws(Errno) in
      // For each name that is seen there are two more.
      for _ in 0..<2 {
        next += 1
        _ = try directory.fd.open("n\(next)", O_WRONLY | O_CREAT, mode: 0o600)
      }
      if next % 100 == 0 { try directory.fd.makeDirectory("d\(next)", mode: 0o700) }
    }
    #expect(usage.count <= 5000)
  }

  /// Directories for which there is no room hide nothing beside them.
  @Test func endlessDirectoriesHideNothingElse() throws {
    _ = try shell(
      Self.container
        + "\ncd Data/Library/Caches; mkdir $(seq 500); for d in $(seq 500); do fill 5000 $d/x; done")
    let directory = try TemporaryDirectory.open(temporary.path)
    let owner = StorageOwner(user: nil)
    let cut = try StorageUsage(of: directory.fd, as: .container, owner, waiting: 100)
    let whole = try StorageUsage(of: directory.fd, as: .container, owner, waiting: 1000)
    #expect(!cut.isComplete && whole.isComplete)
    #expect(cut.sizes[.documents] == whole.sizes[.documents] && cut.sizes[.tmp] == whole.sizes[.tmp])
    #expect(cut.sizes[.caches] < whole.sizes[.caches] && cut.count > 500)
  }

  @Test func whatGoesMeanwhileIsNotCounted() throws {
    _ = try shell("for d in $(seq 50); do mkdir $d; (cd $d; seq 20 | xargs touch; mkdir a); done")
    var seen = 0
    let usage = try measure(.part(.data)) { () throws(Errno) in
      seen += 1
      if seen == 100 {
        _ = try? shell(
          "for d in $(seq 2 2 50); do rm -r $d; done; for d in $(seq 1 4 50); do mv $d ./3/; done")
      }
    }
    #expect(usage.count > 50 && usage.count < 1151)
  }

  @Test func canBeEnded() throws {
    _ = try shell("seq 500 | xargs touch")
    var seen = 0
    #expect(throws: Errno.EINTR) {
      _ = try measure { () throws(Errno) in
        seen += 1
        if seen == 100 { throw .EINTR }
      }
    }
    #expect(seen == 100)
  }

  /// What others own does not go with a purge.
  @Test(.enabled(if: Program.isRoot, "only root can make what belongs to others"))
  func purgeSparesWhatOthersOwn() throws {
    _ = try shell(Self.container + "\nchown 12345 Data/tmp/c/x")
    let directory = try TemporaryDirectory.open(temporary.path)
    let usage = try StorageUsage(
      of: directory.fd, as: .container, StorageOwner(user: 0, app: AppIdentifier("com.example.editor")))
    let purged = try sizes(["Data/Library/Caches/d", "Data/tmp/c"]).reduce(0, +)
    #expect(purged - usage.purgeable.bytes == (try sizes(["Data/tmp/c/x"]))[0])
  }
}
