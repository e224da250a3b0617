// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// How much is held of what names stood for, and of how many there were.
struct HeldNamesTests {
  private static let directory = ObjectNumber(inode: 7, device: 1)

  private func budget(_ bytes: Int = 1 << 24) -> Budget {
    var limits = Budget.Limits(descriptors: 64)
    limits[.memory] = bytes
    return Budget(limits)
  }

  private func hold(
    _ names: HeldNames, _ name: String, of owner: UInt32, isTold: Bool = false
  ) throws -> Bool {
    try Array(name.utf8).withName { name in
      let identity = Identity(inode: 9, device: 1, handle: FileHandle(createdAt: nil))
      return names.hold(name, in: Self.directory, .init(identity: identity, owner: owner, isTold: isTold))
    }
  }

  /// The attack: so many names that those of others have no room.
  @Test func nobodyTakesTheRoomOfOthers() throws {
    let budget = budget()
    let names = HeldNames(budget, by: Payer(user: 0), most: 2)
    #expect(try hold(names, "a", of: 1) && hold(names, "b", of: 1) && !hold(names, "c", of: 1))
    #expect(try hold(names, "d", of: 2) && hold(names, "a", of: 1))
    try Array("a".utf8).withName { name in names.forget(name, in: Self.directory) }
    #expect(try hold(names, "c", of: 1) && !hold(names, "a", of: 1))
    names.giveBack()
    #expect(budget.total(.memory) == 0)
  }

  @Test func whatWasToldStaysSo() throws {
    let names = HeldNames(budget(), by: Payer(user: 0))
    func isTold() throws -> Bool? {
      try Array("a".utf8).withName { name in names.find(name, in: Self.directory)?.isTold }
    }
    #expect(try hold(names, "a", of: 1) && isTold() == false)
    #expect(try hold(names, "a", of: 1, isTold: true) && isTold() == true)
    #expect(try hold(names, "a", of: 1) && isTold() == true)
  }

  @Test func whatIsOverBudgetIsNotHeld() throws {
    let names = HeldNames(budget(100), by: Payer(user: 0))
    #expect(try !hold(names, "a", of: 1))
  }

  /// The attack: directories in one another, of which a program keeps all names.
  @Test func namesOfDirectoriesAboveCount() {
    let budget = budget()
    let names = HeldNames(budget, by: Payer(user: 0), mostListed: 1000)
    let other = ObjectNumber(inode: 8, device: 1)
    #expect(names.mostNames(in: [Self.directory, other]) == 1000)
    names.noteListed(600, of: Self.directory)
    #expect(names.mostNames(in: [other]) == 1000 && names.mostNames(in: [other, Self.directory]) == 400)
    names.noteListed(700, of: Self.directory)
    names.noteListed(600, of: other)
    #expect(names.mostNames(in: [Self.directory]) == 300)
    #expect(names.mostNames(in: [other, Self.directory]) == 0)
    names.giveBack()
    #expect(budget.total(.memory) == 0)
  }
}
