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
}
