// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Testing

@Suite struct TableCountTests {
  @Test func tablesHaveMoreThanFourHundredRows() {
    let lists = [
      ACLTableTests.principals, ACLTableTests.order, ACLTableTests.genericRights,
      ACLTableTests.remainders,
      ACLTableTests.owners, ACLTableTests.states, ACLTableTests.questionsAboutGroups,
    ]
    let deletion = [
      DeletionTableTests.byMode, DeletionTableTests.byList, DeletionTableTests.sticky,
      DeletionTableTests.further,
    ]
    let flags = [
      FlagTableTests.immutable, FlagTableTests.appendOnly, FlagTableTests.others, FlagTableTests.parents,
      FlagTableTests.changes, FlagWordTests.words, FlagWordTests.printed, FlagWordTests.linux,
    ]
    let others = [
      ModeTableTests.rows, OrderTableTests.rows, InheritanceTests.rows, OpennessTests.searchable,
      OpennessTests.attributes,
    ]
    let rows = (lists + deletion + flags + others).flatMap { $0 }
    #expect(rows.count >= 400, "\(rows.count)")
  }
}
