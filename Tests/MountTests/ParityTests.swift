// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// The conformance list has the same results on a plain ext4 directory and on the mount.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct ParityTests {
  private static let program = URL(fileURLWithPath: Program.insula).deletingLastPathComponent()
    .appendingPathComponent("insula-conformance").path
  private static let lists = Checkout.path("Tests/Conformance")

  /// The verdict on each check, and what there is to say about it.
  private struct Run: Sendable {
    var verdicts: [String: String] = [:]
    var details: [String: String] = [:]

    /// Checks by whatever user the list is run as; `before` may make it another.
    init(_ arguments: [String], before: [String] = []) throws {
      let result = try Program.run(before + [ParityTests.program, "--json", "--full"] + arguments)
      for line in result.output.split(separator: "\n") {
        guard let fields = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
          let name = fields["name"] as? String, let verdict = fields["verdict"] as? String
        else { continue }
        verdicts[name] = verdict
        details[name] = fields["detail"] as? String
      }
      guard !verdicts.isEmpty else { throw MountedStore.Failure(words: result.output + result.errors) }
    }
  }

  /// Runs the list on both at once, as the same user.
  private func compare(
    plain: String, mount: String, _ arguments: [String], known: [String: String], before: [String] = []
  ) throws -> Int {
    let box = Mutex<Run?>(nil)
    let thread = try JoinableThread(name: "plain") {
      let run = try? Run(arguments + [plain], before: before)
      box.withLock { $0 = run }
    }
    let there = Result { try Run(arguments + ["--grpid", mount], before: before) }
    thread.join()
    let here = try #require(box.withLock { $0 })
    let judged = try there.get()
    #expect(Set(here.verdicts.keys) == Set(judged.verdicts.keys))
    for (name, expected) in here.verdicts.sorted(by: { $0.key < $1.key }) {
      #expect(expected != "not ok", "on ext4: \(name): \(here.details[name] ?? "")")
      let verdict = judged.verdicts[name] ?? "nothing"
      if known[name] != nil, expected == "ok" {
        #expect(verdict == "not ok", "\(name) is on the list of differences, but is the same")
      } else {
        #expect(verdict == expected, "\(name): \(judged.details[name] ?? "")")
      }
    }
    return judged.verdicts.values.count { $0 == "ok" }
  }

  /// The differences that a mount may have.
  private static func known(_ mounted: MountedStore) throws -> [String: String] {
    var known = try known("known-insula.txt")
    if mounted.owner != nil { known.merge(try Self.known("known-rootless.txt")) { $1 } }
    // Where data goes through the daemon, the kernel tells it of every close.
    if try !mounted.flag("passthrough") { known["lock.any-close-releases-all"] = nil }
    return known
  }

  private static func known(_ file: String) throws -> [String: String] {
    let text = try #require(FD.text(of: lists + "/" + file, limit: 1 << 20))
    let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
    return Dictionary(
      uniqueKeysWithValues: lines.compactMap { line in
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        return words.count == 2 ? (words[0], words[1]) : nil
      })
  }

  /// Checks as several users at once run as root; what is left for ordinary users is what they do on their
  /// own.
  @Test(arguments: [nil, 54321, 54322] as [Int?])
  func systemModeIsLikeExt4(uid: Int?) throws {
    let disk = try Ext4()
    let mounted = try MountedStore.mounted(store: disk.path + "/store")
    var user = uid.map { ["--uid", "\($0)", "--gid", "\($0)"] } ?? []
    if uid == 54321 { user += Self.all(but: ["shell", "race", "exec", "lock-wait"]) }
    if uid == 54322 { user += Self.families.flatMap { ["--only", $0 + "."] } }
    let passed = try compare(
      plain: try disk.makeOpenDirectory("plain"), mount: mounted.path("Users/Shared"), user,
      known: try Self.known(mounted))
    #expect(passed > (uid == nil ? 500 : uid == 54321 ? 300 : 100))
  }

  /// Without passthrough and without file handles everything goes another way.
  private static let families = [
    "access", "chmod", "chown", "create", "exec", "group", "link", "mkdir", "mknod", "open", "permission",
    "rename",
    "setid", "sticky", "symlink", "truncate", "unlink", "utimens", "xattr",
  ]

  /// The families of the list without some.
  private static func all(but left: [String]) -> [String] {
    let names = (try? Program.run([program, "--list", "/"]))?.output.split(separator: "\n") ?? []
    let families = Set(names.compactMap { $0.split(separator: ".").first.map(String.init) }).subtracting(left)
    return families.sorted().flatMap { ["--only", $0 + "."] }
  }

  /// A directory of another disk than the store's, as a volume; all but programs, which are the same.
  @Test func volumesAreLikeExt4() throws {
    let disk = try Ext4()
    let mounted = try MountedStore.mounted()
    let directory = try disk.makeOpenDirectory("volume")
    let added = try mounted.run("volume", "add", directory, "--store", mounted.store)
    try #require(added.status == 0, "\(added.errors)")
    defer { _ = try? mounted.run("volume", "eject", "volume", "--store", mounted.store) }
    let known = try Self.known(mounted).merging(try Self.known("known-volume.txt")) { $1 }
    let passed = try compare(
      plain: try disk.makeOpenDirectory("plain"), mount: mounted.path("Volumes/volume"),
      Self.all(but: ["shell", "race", "lock-wait"]), known: known)
    #expect(passed > 400)
  }

  @Test func slowerWaysAreLikeExt4() throws {
    let disk = try Ext4()
    let mounted = try MountedStore.mounted(options: "nohandles,nopassthrough", store: disk.path + "/store")
    let families = [
      "open", "create", "rename", "orphan", "readdir", "cache", "mmap", "lock", "ofd", "flock", "truncate",
    ]
    let passed = try compare(
      plain: try disk.makeOpenDirectory("plain"), mount: mounted.path("Users/Shared"),
      families.flatMap { ["--only", $0 + "."] }, known: try Self.known(mounted))
    #expect(passed > 100)
  }

  /// With `local_locks` there is no difference left.
  @Test func localLocksAreLikeExt4() throws {
    let disk = try Ext4()
    let mounted = try MountedStore.mounted(options: "local_locks", store: disk.path + "/store")
    let passed = try compare(
      plain: try disk.makeOpenDirectory("plain"), mount: mounted.path("Users/Shared"),
      ["lock", "ofd", "flock"].flatMap { ["--only", $0 + "."] }, known: [:])
    #expect(passed > 30)
  }

  /// All but what names may be, and which are one.
  @Test func ignoringCaseIsLikeExt4ButForNames() throws {
    let disk = try Ext4()
    let mounted = try MountedStore(
      owner: nil, store: disk.path + "/store", initOptions: ["--case-insensitive"])
    try mounted.mount()
    let known = try Self.known(mounted).merging(try Self.known("known-case.txt")) { $1 }
    let passed = try compare(
      plain: try disk.makeOpenDirectory("plain"), mount: mounted.path("Users/Shared"),
      Self.all(but: ["race", "exec", "lock-wait"]), known: known)
    #expect(passed > 400)
  }

  @Test func rootlessModeIsLikeExt4() throws {
    let disk = try Ext4()
    let account = try TemporaryAccount()
    let mounted = try MountedStore.mounted(
      owner: account.account, store: try disk.makeOpenDirectory("stores") + "/store")
    let known = try Self.known(mounted)
    let become = [
      "setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)", "--clear-groups",
    ]
    let passed = try compare(
      plain: try disk.makeOpenDirectory("plain"), mount: mounted.path("Users/Shared"),
      Self.all(but: ["shell"]),
      known: known, before: become)
    #expect(passed > 300)
  }
}
