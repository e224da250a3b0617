// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Store
internal import TestSupport
internal import Testing

/// Among the rows of all users, what each change of an app runs finds its own by an index.
@Suite struct IndexTests {
  @Test(
    arguments: [
      (Registry.keepGrantsStatement, "INDEX grants_in_any_case"),
      (Registry.dropGrantsStatement, "INDEX grants_in_any_case"),
      (Registry.usersAppStatement, "INDEX apps_of_users"),
      (Registry.everyonesAppStatement, "INDEX apps_of_the_machine"),
    ].map { ("\($0.0)", $0.1) })
  func changesSearchByIndexes(statement: String, index: String) throws {
    let made = try TestStore()
    _ = try Registry(of: made.open())
    let words = ["sqlite3", made.path + "/state/insula.db", "EXPLAIN QUERY PLAN \(statement)"]
    let plan = try Program.run(words)
    #expect(plan.ending == .ok && plan.output.contains(index) && !plan.output.contains("SCAN"), "\(plan)")
  }
}
