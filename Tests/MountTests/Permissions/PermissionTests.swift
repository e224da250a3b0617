// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport
internal import Testing

/// Who may do what, as people find it who sit at a shell, on a real mount and with accounts of the machine.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct PermissionTests {
  /// Plays tables one after the other, with the same people.
  private func play(_ tables: [ShellTable]) throws {
    let cast = try Cast()
    for table in tables { try table.play(cast) }
  }

  @Test func eachRightToAFile() throws { try play(ShellTable.rightsToFiles) }
  @Test func eachRightToADirectory() throws { try play(ShellTable.rightsToDirectories) }
  @Test func entriesAndModesJudgeTogether() throws { try play(ShellTable.judgement) }
  @Test func accessSaysWhatThenHappens() throws { try play(ShellTable.access) }
  @Test func whatIsMadeInherits() throws { try play(ShellTable.inheritance) }
  @Test func whoRemovesAndMoves() throws { try play(ShellTable.deletion) }
  @Test func flagsHoldForAll() throws { try play(ShellTable.flags) }
  @Test func whoChangesModesOwnersAndGroups() throws { try play(ShellTable.ownership) }
  @Test func whatCarriesACLsAndWhatIsRefused() throws { try play(ShellTable.copies) }

  @Test func programsOfEveryDayWorkForSeveral() throws { try play(ShellTable.everyday) }
  @Test func ownersLiveInTheirHomes() throws { try play([ShellTable.home]) }

  @Test func thereAreEnoughOfThem() {
    let counts = ShellTable.all.map(\.count)
    #expect(counts.reduce(0, +) >= 1100)
    #expect(counts.allSatisfy { $0 > 0 })
    #expect(Set(ShellTable.all.map(\.title)).count == counts.count)
  }
}
