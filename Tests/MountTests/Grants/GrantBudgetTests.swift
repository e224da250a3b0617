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
    let house: GrantedMounts
    let directory: String

    init(depth: Int, count: Int) throws {
      house = try GrantedMounts()
      directory = (["top"] + (1..<depth).map { "n\($0)" }).joined(separator: "/")
      // Beside the daemon, which is not what is measured.
      try FileManager.default.createDirectory(
        atPath: house.mounts.backing(directory), withIntermediateDirectories: true)
      for number in 0..<count {
        _ = FileManager.default.createFile(
          atPath: house.mounts.backing("\(directory)/f\(number)"), contents: nil)
        try house.grant("\(directory)/f\(number)")
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
    let house = deep.house
    func walk() { _ = house.volume.way(along: GrantedMounts.names("\(deep.directory)/f0")) }
    var renames: [Double] = []
    var walks: [Double] = []
    for _ in 0..<10 {
      renames.append(try milliseconds { try house.rename(house.all("top"), house.all("other")) })
      renames.append(try milliseconds { try house.rename(house.all("other"), house.all("top")) })
      walks.append(milliseconds { for _ in 0..<count { walk() } })
    }
    #expect(house.exists(house.own("\(deep.directory)/f\(count - 1)")))
    let (rename, walked) = (renames.sorted()[10], walks.sorted()[5])
    print("rename above \(count) grants: \(rename) ms; walking along their paths: \(walked) ms")
    #expect(rename < walked / 2)
  }

  /// Views begin while someone renames without end.
  @Test func launchesDoNotWaitForRenames() throws {
    let count = ProcessInfo.processInfo.environment["INSULA_GRANTS"].flatMap { Int($0) } ?? 400
    let deep = try DeepGrants(depth: 60, count: count)
    let house = deep.house
    let mover = try Client()
    try mover.send("rename to and fro", house.all("top"), house.all("other"))
    let app = try #require(AppIdentifier("com.example.other"))
    var launches: [Double] = []
    var lookups: [Double] = []
    try house.write("x", to: house.all("beside"))
    for _ in 0..<50 {
      launches.append(try milliseconds { _ = try house.volume.view(of: app, user: 0, []) })
      lookups.append(milliseconds { _ = house.exists(house.all("missing\(lookups.count)")) })
    }
    withExtendedLifetime(mover) {}
    func worst(_ times: [Double]) -> Double { times.max() ?? 0 }
    print("\(count) grants and a rename: launch \(worst(launches)) ms at worst, lookup \(worst(lookups)) ms")
    #expect(worst(launches) < 1000 && worst(lookups) < 1000)
  }

  /// Who has too many names on the way to what they have granted is refused alone.
  @Test func namesOnTheWayAreCounted() throws {
    let house = try GrantedMounts()
    try house.makeDirectories("a", "a/b")
    try house.write("x", to: house.all("a/b/file"))
    let grants = house.volume.grants
    let budget = house.volume.budget
    func names(of user: UInt32) -> Int { budget.count(.grantedNames, of: Payer(user: user)) }
    let most = Budget.Limits(descriptors: 0)[.grantedNames]
    let first = try house.grant("a/b/file")
    #expect(names(of: 0) == 5)
    try house.grant("a/b")
    try house.grant("a")
    #expect(names(of: 0) == 5)
    try house.rename(house.all("a"), house.all("c"))
    #expect(names(of: 0) == 5)
    try house.rename(house.all("c/b/file"), house.all("file"))
    #expect(names(of: 0) == 5 && house.place(first) == "file")
    let record = try #require(house.volume.granted([first]).first)
    let steps = (0..<most).map { number in
      TreeWay.Step(Array("\(number)".utf8), in: ObjectNumber(inode: 1, device: 1))
    }
    var full = record
    full.id = 1000
    grants.put(Grants.Entry(record: full, steps: Array(steps.dropLast(5))))
    #expect(names(of: 0) == most)
    try house.write("x", to: house.all("more"))
    #expect(throws: Errno.EDQUOT) { try house.grant("more") }
    // In the log and in `insula status`, as with whatever else one user may not have more of.
    #expect(budget.refusals.map(\.user) == [0] && budget.refusals.map(\.kind) == ["grants"])
    let another = GrantRecord(
      identifier: record.identifier, user: 501, team: Team("T", root: nil), path: record.path,
      isWritable: true,
      isDirectory: false, identity: record.identity, granted: 0)
    try house.volume.grant(another)
    #expect(names(of: 501) == 3 && budget.refusals.count == 1)
    for record in house.volume.granted { house.volume.revokeGrants([record.id]) }
    #expect(names(of: 0) == 0 && names(of: 501) == 0)
  }
}
