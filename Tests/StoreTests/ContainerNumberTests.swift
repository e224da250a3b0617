// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

struct ContainerNumberTests {
  /// Directories are named after these numbers, and a store may come from somebody else.
  @Test(arguments: ["../../decoy", "/decoy", "a/b", "..", ".", ""])
  func numbersThatLeadElsewhereAreDamage(number: String) throws {
    let made = try TestStore()
    let registry = try Registry(of: made.open())
    func container(_ number: String, user: UInt32) throws -> ContainerRecord {
      try registry.note(
        ContainerRecord(
          uuid: number, kind: .data, identifier: #require(AppIdentifier("com.example.editor")), user: user,
          path: "Users/\(user)/Library/Containers/com.example.editor", team: nil))
    }
    try registry.noteRemoval(of: container("A", user: 501), at: 1)
    _ = try container("B", user: 502)
    #expect(try registry.removedContainers().count == 1 && registry.containers().count == 1)
    for table in ["removed", "containers"] {
      let database = made.path + "/state/insula.db"
      let change = "UPDATE \(table) SET uuid = '\(number)' WHERE rowid = (SELECT min(rowid) FROM \(table))"
      #expect(try Program.run(["sqlite3", database, change]).status == 0)
      guard
        case .registryDamaged = storeError({
          if table == "removed" {
            _ = try registry.removedContainers()
          } else {
            _ = try registry.containers()
          }
        })
      else {
        Issue.record("\(table): understood, or refused for another reason")
        continue
      }
    }
    var check = try StoreCheck(made.open(), repairing: false)
    try check.run()
    #expect(check.findings.contains { $0.severity == .failure })
    guard case .registryDamaged = storeError({ try registry.forgetHome("501") }) else {
      Issue.record("the numbers of a home's removed containers are taken as they are")
      return
    }
  }
}
