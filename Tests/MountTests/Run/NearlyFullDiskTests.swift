// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What happens by itself when a store's disk is nearly full.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct NearlyFullDiskTests {
  /// Three apps fill a disk with temporary files and caches, in files of 256 KiB.
  private func fill(_ fixture: RunFixture) throws {
    for name in ["Second", "Third"] { try fixture.install(name) }
    let script = """
      for place in tmp Library/Caches; do
        for i in $(seq 40); do head -c 262144 /dev/zero >$HOME/$place/$i; done
      done
      echo kept >$HOME/Documents/kept
      """
    // The one that ran longest ago comes first; the times are told apart by seconds.
    for app in ["org.example.third", "org.example.notes", "org.example.second"] {
      let ran = try fixture.shell(
        "SCRIPT=$(cat <<'END'\n\(script)\nEND\n); insula run \(app) -- sh -c \"$SCRIPT\" && sleep 1.1")
      try #require(ran.status == 0, "\(ran.errors)")
    }
  }

  /// The share of the disk that users may fill.
  private func free(_ path: String) throws -> Double {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { throw Errno.last }
    return Double(status.f_bavail) / Double(status.f_blocks)
  }

  private func purged(_ fixture: RunFixture) throws -> [String] {
    try fixture.shell("insula log --json", as: RunFixture.root).output.split(separator: "\n").compactMap {
      line in
      guard let entry = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
        entry["event"] as? String == "purged", let app = entry["app"] as? String,
        let detail = entry["detail"] as? String
      else { return nil }
      return "\(app.split(separator: ".").last ?? "") \(detail.prefix { $0 != "," })"
    }
  }

  @Test func goalIsMetInTheOrderOfUse() throws {
    let disk = try Ext4(megabytes: 128)
    let fixture = try RunFixture(store: disk.path + "/store")
    try fill(fixture)
    let before = try free(disk.path)
    // Two whole directories of 10 MiB are 17 percent; the rest is a part of the third.
    let goal = Int((before + 0.21) * 100)
    let result = try fixture.shell("insula purge --to \(goal)% --json", as: RunFixture.root)
    #expect(result.status == 0, "\(result.errors)")
    let after = try free(disk.path)
    #expect(after >= Double(goal) / 100 && after < Double(goal) / 100 + 0.02, "\(before) \(after) \(goal)")
    let purged = try purged(fixture)
    #expect(purged == ["third tmp", "notes tmp", "second tmp"], "\(before) \(after) \(goal)")
    // What is there already takes nothing.
    #expect(
      try fixture.shell("insula purge --to \(goal)%", as: RunFixture.root).output.contains(
        "nothing to delete"))
  }

  /// The process that serves looks every fifteen seconds.
  @Test func daemonPurgesByItself() throws {
    let disk = try Ext4(megabytes: 128)
    let fixture = try RunFixture(store: disk.path + "/store")
    try fill(fixture)
    try fixture.succeed("unmount", fixture.mounted.point)
    let share = Int(try free(disk.path) * 100)
    try fixture.mounted.mount(options: "purge=\(share + 5)%:\(share + 20)%")
    let end = ContinuousClock.now + .seconds(60)
    while try free(disk.path) < Double(share + 20) / 100, ContinuousClock.now < end { usleep(200_000) }
    #expect(try free(disk.path) >= Double(share + 20) / 100)
    #expect(try purged(fixture).first == "third tmp")
    let kept = try fixture.shell("cat $DATA/../../*/Data/Documents/kept | wc -l")
    #expect(kept.output.trimmingCharacters(in: .whitespacesAndNewlines) == "3")
  }
}
