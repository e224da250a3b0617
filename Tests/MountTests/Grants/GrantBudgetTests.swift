// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Many grants, deep in the tree, and those who wait for them.
@Suite(.serialized, .enabled(if: Program.isRoot, "mounting takes root"))
struct GrantBudgetTests {
  /// A deep directory with many files, each of which is granted.
  private final class DeepGrants {
    let fixture: GrantedMounts
    let directory: String

    init(depth: Int, count: Int) throws {
      fixture = try GrantedMounts()
      directory = (["top"] + (1..<depth).map { "n\($0)" }).joined(separator: "/")
      // Beside the daemon, which is not what is measured.
      try FileManager.default.createDirectory(
        atPath: fixture.mounts.backing(directory), withIntermediateDirectories: true)
      for number in 0..<count {
        _ = FileManager.default.createFile(
          atPath: fixture.mounts.backing("\(directory)/f\(number)"), contents: nil)
        try fixture.grant("\(directory)/f\(number)")
      }
    }
  }

  private func milliseconds(_ body: () throws -> Void) rethrows -> Double {
    let start = monotonicNanoseconds()
    try body()
    return Double(monotonicNanoseconds() - start) / 1e6
  }

  /// A rename above them all walks along none of their paths.
  @Test func renameAboveManyGrantsCostsLittle() throws {
    let count = 400
    let deep = try DeepGrants(depth: 60, count: count)
    let fixture = deep.fixture
    let path = GrantedMounts.names("\(deep.directory)/f0")
    func walk() { _ = fixture.volume.resolvedPath(along: path, for: 0) }
    var renames: [Double] = []
    var walks: [Double] = []
    for _ in 0..<10 {
      renames.append(try milliseconds { try fixture.rename(fixture.all("top"), fixture.all("other")) })
      renames.append(try milliseconds { try fixture.rename(fixture.all("other"), fixture.all("top")) })
      walks.append(milliseconds { for _ in 0..<count { walk() } })
    }
    #expect(fixture.exists(fixture.own("\(deep.directory)/f\(count - 1)")))
    let (rename, walked) = (renames.sorted()[10], walks.sorted()[5])
    print("rename above \(count) grants: \(rename) ms; walking along their paths: \(walked) ms")
    #expect(rename < walked / 2)
  }

  /// Views begin while someone renames without end.
  @Test func launchesDoNotWaitForRenames() throws {
    let count = ProcessInfo.processInfo.environment["INSULA_GRANTS"].flatMap { Int($0) } ?? 400
    let deep = try DeepGrants(depth: 60, count: count)
    let fixture = deep.fixture
    let mover = try Client()
    try mover.send("rename to and fro", fixture.all("top"), fixture.all("other"))
    let app = try #require(AppIdentifier("com.example.other"))
    let team = Team("T", root: nil)
    var launches: [Double] = []
    var lookups: [Double] = []
    try fixture.write("x", to: fixture.all("beside"))
    for _ in 0..<50 {
      launches.append(try milliseconds { _ = try fixture.volume.view(of: app, team, user: 0, []) })
      lookups.append(milliseconds { _ = fixture.exists(fixture.all("missing\(lookups.count)")) })
    }
    withExtendedLifetime(mover) {}
    func worst(_ times: [Double]) -> Double { times.max() ?? 0 }
    print("\(count) grants and a rename: launch \(worst(launches)) ms at worst, lookup \(worst(lookups)) ms")
    #expect(worst(launches) < 1000 && worst(lookups) < 1000)
  }

  /// Who has too many names on the way to what they have granted is refused alone.
  @Test func namesOnTheWayAreCounted() throws {
    let fixture = try GrantedMounts()
    try fixture.makeDirectories("a", "a/b")
    try fixture.write("x", to: fixture.all("a/b/file"))
    let grants = fixture.volume.grants
    let budget = fixture.volume.budget
    func names(of user: UInt32) -> Int { budget.count(.grantedNames, of: Payer(user: user)) }
    let most = Budget.Limits(descriptors: 0)[.grantedNames]
    let first = try fixture.grant("a/b/file")
    #expect(names(of: 0) == 5)
    try fixture.grant("a/b")
    try fixture.grant("a")
    #expect(names(of: 0) == 5)
    try fixture.rename(fixture.all("a"), fixture.all("c"))
    #expect(names(of: 0) == 5)
    try fixture.rename(fixture.all("c/b/file"), fixture.all("file"))
    #expect(names(of: 0) == 5 && fixture.place(first) == "file")
    let record = try #require(fixture.volume.granted([first]).first)
    var full = record
    full.id = 1000
    full.path = (0..<most - 5).map { Array("\($0)".utf8) }
    grants.put(Grants.Entry(record: full))
    #expect(names(of: 0) == most)
    // What is moved gets no more names either, and may have another one instead of its own.
    full.path.removeLast()
    grants.put(Grants.Entry(record: full))
    try fixture.rename(fixture.all("file"), fixture.all("other"))
    #expect(names(of: 0) == most - 1 && fixture.text(fixture.own("other")) == "x")
    try fixture.rename(fixture.all("other"), fixture.all("file"))
    full.path.append([1])
    grants.put(Grants.Entry(record: full))
    try fixture.makeDirectories("deep")
    try fixture.rename(fixture.all("file"), fixture.all("deep/file"))
    #expect(
      names(of: 0) == most && fixture.place(first) == "file" && !fixture.exists(fixture.own("deep/file")))
    try fixture.rename(fixture.all("deep/file"), fixture.all("file"))
    #expect(fixture.text(fixture.own("file")) == "x")
    try fixture.write("x", to: fixture.all("more"))
    #expect(throws: Errno.EDQUOT) { try fixture.grant("more") }
    // In the log and in `insula status`, as with whatever else one user may not have more of.
    #expect(budget.refusals.map(\.user) == [0] && budget.refusals.map(\.kind) == ["grants"])
    let another = GrantRecord(
      identifier: record.identifier, user: 501, team: Team("T", root: nil), path: record.path,
      isWritable: true,
      isDirectory: false, identity: record.identity, granted: 0)
    try fixture.volume.grant(another)
    #expect(names(of: 501) == 3 && budget.refusals.count == 1)
    for record in fixture.volume.granted { fixture.volume.revokeGrants([record.id]) }
    #expect(names(of: 0) == 0 && names(of: 501) == 0)
  }
}
