// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// What is left when a program is killed while it throws away what three apps can make again.
///
/// It is killed at some two hundred of its system calls, or, with `INSULA_STOPS=all` (`make stops`), at each.
@Suite struct StoppedPurgeTests {
  private let fixture: AppFixture
  private let apps = ["org.example.first", "org.example.second", "org.example.third"]
  private let places = ["Data/tmp", "Data/Library/Caches"]
  private var containers: String { "\(fixture.tree)/\(fixture.home)/Library/Containers" }

  init() throws {
    fixture = try AppFixture(isShared: true)
    for (number, app) in apps.enumerated() {
      try fixture.bundle("\(app).app") { $0.identifier = app }
      try fixture.install("\(app).app", for: fixture.users)
      fixture.store.noteRun(
        of: "\(fixture.home)/Library/Containers/\(app)", at: Int64(1_700_000_000 + number))
    }
    _ = try shell(
      """
      for app in \(apps.joined(separator: " ")); do (
        cd $app/Data; mkdir -p tmp/a Library/Caches/a/b
        echo $app | tee Documents/letter "Library/Application Support/state" >Library/Preferences/p
        for place in tmp/a Library/Caches/a Library/Caches/a/b; do
          for n in 1 2 3; do head -c 20000 /dev/zero >$place/$n; done
        done
        [ $(id -u) != 0 ] || chown -R \(fixture.account.uid):\(fixture.account.gid) .
      ); done
      cp -a . \(fixture.temporary.appending("made"))
      rm -r \(fixture.temporary.appending("made"))/*/Data/Documents
      """)
  }

  private func shell(_ script: String) throws -> String {
    let result = try Program.run(["sh", "-ec", script], in: containers)
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    return result.output
  }

  /// Everything in the containers, by its path, with what it is and what is in it.
  private func picture() throws -> [String: String] {
    let lines = try shell(
      """
      find . -mindepth 1 -printf '%P\\t%y %m %U:%G %l\\n'
      find . -type f -exec cksum {} + | sed 's/^\\([^ ]* [^ ]*\\) \\.\\/\\(.*\\)/\\2 in it\\t\\1/'
      """)
    return Dictionary(
      uniqueKeysWithValues: lines.split(separator: "\n").map { line in
        let parts = line.split(separator: "\t", maxSplits: 1)
        return (String(parts[0]), String(parts[1]))
      })
  }

  private func begin() throws {
    _ = try shell(
      """
      rm -rf */Data/tmp/* */Data/Library/Caches/*; cp -a \(fixture.temporary.appending("made"))/. .
      for n in 1 2 3; do find . -type f -name $n -exec touch -d @100000000$n {} +; done
      """)
  }

  /// What is in the directories that may be purged, but the tag.
  private func purgeable(_ picture: [String: String]) -> [String: String] {
    picture.filter { path, _ in
      apps.contains { app in
        places.contains { path.hasPrefix("\(app)/\($0)/") && !path.contains("/CACHEDIR.TAG") }
      }
    }
  }

  /// Looks at what is left: all else as it was, and each of the directories as `isRight` says.
  private func forEachStop(
    freeing bytes: Int64,
    isRight: (_ place: String, _ before: [String: String], _ now: [String: String]) -> Bool
  ) throws -> [String: String] {
    let before = try picture()
    let others = before.filter { purgeable(before)[$0.key] == nil }
    let words = ["purge", fixture.temporary.appending("store"), fixture.account.name, "\(bytes)"]
    var end: [String: String]?
    var seen: Set<Int> = []
    try StoppedWork(words: words).forEachStop(begin: begin) { at in
      let now = try picture()
      let left = purgeable(now)
      #expect(now.filter { left[$0.key] == nil } == others, "at \(at)")
      for place in apps.flatMap({ app in places.map { "\(app)/\($0)/" } }) {
        #expect(
          isRight(
            place, purgeable(before).filter { $0.key.hasPrefix(place) },
            left.filter { $0.key.hasPrefix(place) }), "\(place) at \(at)")
      }
      seen.insert(left.count)
      if end == nil { end = left }
      #expect(try fixture.damage() == [], "before, at \(at)")
      // As the next process that serves does.
      try Containers(fixture.store, fixture.registry).finishPurges()
      #expect(try picture() == now && fixture.findings() == [] && fixture.staged() == [], "at \(at)")
    }
    #expect(seen.count > 3)
    return end ?? [:]
  }

  @Test func directoriesAreAsBeforeOrEmpty() throws {
    let end = try forEachStop(freeing: 0) { _, before, now in now == before || now.isEmpty }
    #expect(end.isEmpty)
  }

  /// All temporary files, and of the first app's caches those that were used longest ago.
  @Test func onlyWhatHasToGoIsGone() throws {
    let end = try forEachStop(freeing: 9 * 20480 + 50_000) { place, before, now in
      guard place.hasSuffix("Caches/") else { return now == before || now.isEmpty }
      let gone = before.filter { now[$0.key] == nil }.keys
      return now.allSatisfy { before[$0.key] == $0.value }
        && gone.allSatisfy { place.hasPrefix("\(apps[0])/") && ($0.contains("/1") || $0.contains("/2")) }
    }
    // Of three times two directories and six files with two lines each, three files are gone.
    #expect(end.count == 36 || !Program.isRoot, "\(end.count)")
  }
}
