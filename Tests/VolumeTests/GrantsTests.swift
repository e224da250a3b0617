// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

@testable internal import Volume

@Suite struct GrantsTests {
  private static let directory = ObjectNumber(inode: 7, device: 1)

  private static func step(_ name: UInt8) -> ResolvedPath.Step { ResolvedPath.Step([name], in: directory) }

  private static func entry(_ id: Int64 = 1, in directory: ObjectNumber = directory) throws -> Grants.Entry {
    let record = GrantRecord(
      id: id, identifier: try #require(AppIdentifier("org.example.writer")), user: 1000,
      team: Team("T", root: nil), path: [[97]], isWritable: true, isDirectory: false,
      identity: ObjectIdentity(inode: 9, handle: [8, 0, 1], created: 0), granted: 0)
    return Grants.Entry(record: record, steps: [ResolvedPath.Step([97], in: directory)], previousName: nil)
  }

  private static func relocation(from old: UInt8, to new: UInt8) -> Grants.Relocation {
    Grants.Relocation(
      source: step(old), path: [[new]], steps: [step(new)], isWithinOneDirectory: true, mover: nil)
  }

  /// Others read without a lock whether anything is granted in a directory, and must never find it gone for
  /// a moment: a rename that happens then would leave a grant at the old path.
  @Test(arguments: [true, false])
  func directoryOfWhatIsGrantedIsNeverFoundEmpty(moving: Bool) throws {
    let grants = Grants(Budget(Budget.Limits(descriptors: 64)))
    let entry = try Self.entry()
    grants.put(entry)
    let isOver = Atomic(false)
    let missed = Atomic(0)
    let reader = try JoinableThread(name: "reader") {
      while !isOver.load(ordering: .relaxed) {
        if !grants.mayTouch(Self.directory) { missed.add(1, ordering: .relaxed) }
      }
    }
    for number in 0..<50_000 {
      if moving {
        let names = number & 1 == 0 ? (UInt8(97), UInt8(98)) : (98, 97)
        _ = grants.relocate([Self.relocation(from: names.0, to: names.1)])
      } else {
        grants.put(entry)
      }
    }
    isOver.store(true, ordering: .relaxed)
    reader.join()
    #expect(missed.load(ordering: .relaxed) == 0)
    grants.remove(1)
    #expect(!grants.mayTouch(Self.directory))
  }

  /// A rename that takes many grants along must not keep a worker from quick requests.
  @Test(.enabled(if: Program.isRoot, "a tree of several users needs root"))
  func renameAboveManyGrantsIsLong() throws {
    let tree = try Tree()
    let shared = try tree.view.node("Users/Shared")
    let users = try tree.view.node("Users")
    let directory = try #require(tree.view.nodes.number(of: shared))
    for id in 1...512 { tree.volume.grants.put(try Self.entry(Int64(id), in: directory)) }
    #expect(!tree.view.isLongRename(from: shared, to: shared))
    tree.volume.grants.put(try Self.entry(513, in: directory))
    #expect(tree.view.isLongRename(from: shared, to: shared))
    #expect(tree.view.isLongRename(from: users, to: shared))
    #expect(tree.view.isLongRename(from: shared, to: users))
    #expect(!tree.view.isLongRename(from: users, to: users))
  }

  /// Who works in other directories does not wait for those who move what is granted.
  @Test func otherDirectoriesAreNotTouched() throws {
    let grants = Grants(Budget(Budget.Limits(descriptors: 64)))
    grants.put(try Self.entry())
    #expect(grants.mayTouch(Self.directory))
    #expect(grants.touches(Self.step(97)) && !grants.touches(Self.step(98)))
    let others = (0..<1000).count { grants.mayTouch(ObjectNumber(inode: 100 + UInt64($0), device: 1)) }
    #expect(others < 10)
  }

  private static func entry(
    _ id: Int64, user: UInt32, path: String, isWritable: Bool = false, app: String = "org.example.writer"
  ) throws -> Grants.Entry {
    let record = GrantRecord(
      id: id, identifier: try #require(AppIdentifier(app)), user: user, team: Team("T", root: nil),
      path: GrantPath.names(Array(path.utf8)), isWritable: isWritable, isDirectory: false,
      identity: ObjectIdentity(inode: UInt64(id), handle: [8, 0, 1], created: 0), granted: 0)
    return Grants.Entry(record: record, steps: [], previousName: nil)
  }

  /// An app learns of each change of what it was granted, and of nobody else's; asking reads no records.
  @Test func eachChangeMakesAnotherVersion() throws {
    let grants = Grants(Budget(Budget.Limits(descriptors: 64)))
    let (own, other) = (
      GrantHolder(try #require(AppIdentifier("org.example.writer")), 1000, Team("T", root: nil)),
      GrantHolder(try #require(AppIdentifier("org.example.writer")), 1001, Team("T", root: nil))
    )
    #expect(grants.version(of: own) == 0)
    grants.put(try Self.entry(7, user: 1001, path: "x"))
    let others = grants.version(of: other)
    var seen: [UInt64] = [0]
    func change(_ what: String, _ body: () throws -> Void) throws {
      try body()
      let version = grants.version(of: own)
      #expect(!seen.contains(version), "\(what)")
      seen.append(version)
    }
    try change("granted") { grants.put(try Self.entry(1, user: 1000, path: "a")) }
    let alone = grants.version(of: own)
    try change("another one") { grants.put(try Self.entry(2, user: 1000, path: "b")) }
    try change("for writing") { grants.put(try Self.entry(2, user: 1000, path: "b", isWritable: true)) }
    try change("moved") {
      var entry = try Self.entry(3, user: 1000, path: "c")
      entry.steps = [Self.step(99)]
      grants.put(entry)
      seen.append(grants.version(of: own))
      _ = grants.relocate([Self.relocation(from: 99, to: 100)])
    }
    // What the app does not see of it makes no difference.
    let last = grants.version(of: own)
    grants.put(try #require(grants.entry(3)))
    var replaced = try #require(grants.entry(2))
    replaced.record.identity = ObjectIdentity(inode: 99, handle: [8, 0, 1], created: 0)
    grants.put(replaced)
    #expect(grants.version(of: own) == last)
    grants.remove(3)
    grants.remove(2)
    #expect(grants.version(of: own) == alone)
    grants.remove(1)
    #expect(grants.version(of: own) == 0 && grants.version(of: other) == others)
    #expect(grants.recordsRead.load(ordering: .relaxed) == 0)
    // The next process that serves has the same.
    let next = Grants(Budget(Budget.Limits(descriptors: 64)))
    next.put(try Self.entry(7, user: 1001, path: "x"))
    #expect(next.version(of: other) == others)
  }

  /// A page costs as much as it is long, whoever else has been granted something.
  @Test func pagesReadWhatIsInThem() throws {
    let grants = Grants(Budget(Budget.Limits(descriptors: 64)))
    // In any order.
    for id in (1...1000).shuffled() {
      grants.put(try Self.entry(Int64(id), user: UInt32(id % 2), path: "\(id)"))
    }
    let holder = GrantHolder(try #require(AppIdentifier("org.example.writer")), 1, Team("T", root: nil))
    var (found, last): ([Int64], Int64) = ([], 0)
    for page in 1...5 {
      let numbers = grants.numbers(of: holder, after: last, limit: 100)
      #expect(grants.numbers(after: last, limit: 100) { $0.name.user == 1 } == numbers)
      #expect(grants.records(numbers).map(\.id) == numbers)
      #expect(grants.recordsRead.load(ordering: .relaxed) == 100 * page)
      found += numbers
      last = numbers.last ?? .max
    }
    #expect(found == (1...1000).filter { $0 % 2 == 1 }.map(Int64.init))
    #expect(grants.numbers(of: holder, after: last, limit: 100).isEmpty)
    for id in stride(from: Int64(1), to: 1000, by: 4) { grants.remove(id) }
    #expect(grants.numbers(of: holder) == found.filter { $0 % 4 != 1 })
    #expect(grants.numbers(after: 0, limit: 4) { _ in true } == [2, 3, 4, 6])
  }
}
