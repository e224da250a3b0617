// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// What an app may do with what its user has granted it.
@Suite struct GrantRuleTests {
  @Test func useTakesAllThatIsWanted() {
    for raw in UInt16(0)..<32 {
      let reach = Reach(rawValue: raw)
      #expect(decideUse(.read, within: reach) == (raw & 1 != 0 ? .allow : .deny(.place)))
      #expect(decideUse(.write, within: reach) == (raw & 2 != 0 ? .allow : .deny(.place)))
    }
  }

  @Test(arguments: crossings)
  func grantsAreKeptApart(row: String) throws {
    let cells = try Table.cells(row, 4)
    var isAsked = false
    func isOneGrant() -> Bool {
      isAsked = true
      return cells[2] == "one"
    }
    let decision = decideCrossing(
      from: try reach(cells[0]), to: try reach(cells[1]), isOneGrant: isOneGrant())
    #expect(decision == (try Table.decision(cells[3])))
    // Where nothing was granted, or something on one side alone, it makes no difference.
    #expect(isAsked == (cells[2] != "-"))
  }

  // from | to | granted together | answer
  static let crossings = Table.rows(
    """
    own | own | - | allow
    own | granted | - | boundary
    own | beside | - | boundary
    granted | own | - | boundary
    beside | own | - | boundary
    granted | granted | one | allow
    granted | granted | two | boundary
    granted | beside | two | boundary
    beside | beside | one | allow
    beside | beside | two | boundary
    """)

  private func reach(_ cell: Substring) throws -> Reach {
    switch cell {
    case "own": .everything
    case "granted": [.read, .write, .revocable]
    case "beside": [.read, .beside]
    default: throw UnreadableRow(cell: cell)
    }
  }

  @Test func siblingsAreFilesByNamesOfGrantedOnes() {
    let first = Position(throughout: .read)
    let second = Position(throughout: .write)
    #expect(decideSiblingKind(.file) == .allow)
    for kind in [Object.Kind.directory, .symlink, .special] {
      #expect(decideSiblingKind(kind) == .deny(.place))
    }
    #expect(decideSiblingName(for: [first]) == .allow)
    #expect(decideSiblingName(for: []) == .deny(.place))
    #expect(decideSiblingOwners([first, second], of: [second]) == .allow)
    #expect(decideSiblingOwners([first], of: [second]) == .deny(.boundary))
    #expect(decideSiblingOwners([], of: [second]) == .deny(.boundary))
  }

  @Test func someRulesHaveOneQuestion() {
    #expect(decideOverwriting(mayOnlyAppend: true) == .deny(.appendOnly))
    #expect(decideOverwriting(mayOnlyAppend: false) == .allow)
    #expect(decideMapsOfOneView(isSharedMemory: true) == .deny(.place))
    #expect(decideMapsOfOneView(isSharedMemory: false) == .allow)
    #expect(decideHiddenName(exists: true) == .deny(.place))
    #expect(decideHiddenName(exists: false) == .allow)
    for zone in Zone.allCases {
      #expect(decideChoice(in: zone) == (zone.isReadOnlyRegion ? .deny(.readOnly) : .allow))
    }
  }
}
