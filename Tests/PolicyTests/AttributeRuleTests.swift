// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// The rules of chmod(2), chown(2), utimensat(2) and setxattr(2) beyond rights to the object.
@Suite struct AttributeRuleTests {
  @Test(arguments: modes)
  func modesAreTheOwners(row: String) throws {
    let cells = try Table.cells(row, 7)
    let object = try Table.object(try Table.kind(cells[1]), zone: cells[0], mode: cells[2], acl: cells[3])
    let (isApps, person) = try caller(cells[4])
    let decision = decideModeChange(
      to: try Table.mode(cells[5]), on: object, throughApp: isApps, by: person.credentials,
      isMember: person.membership)
    #expect(decision == (try Table.decision(cells[6])))
  }

  // zone | kind | mode | ACL | who (app: through an app's view) | new mode | answer
  static let modes = Table.rows(
    """
    user | file | 0644 | none | owner | 0600 | allow
    user | file | 0644 | none | owner | 6755 | allow
    user | file | 0644 | none | root | 6755 | allow
    user | file | 0644 | none | other | 0644 | ownership
    user | file | 0644 | none | member | 0600 | ownership
    user | file | 0644 | everyone -writesecurity | owner | 0600 | allow
    user | file | 0644 | everyone -writesecurity | member | 0600 | ownership
    user | file | 0644 | damaged | other | 0600 | ownership
    user | file | 0644 | everyone +writesecurity | other | 0600 | allow
    user | file | 0644 | everyone +writesecurity | other | 4644 | ownership
    user | file | 0644 | everyone +writesecurity | other | 2644 | ownership
    user | file | 0644 | everyone +writesecurity | other | 1644 | allow
    user | file | 0644 | everyone +writesecurity | member | 2644 | allow
    user | file | 0644 | everyone +writesecurity | extra | 2644 | allow
    user | file | 0644 | everyone +writesecurity | lost | 2644 | ownership
    user | file | 0644 | everyone +writesecurity | member | 4644 | ownership
    user | file | 6644 | everyone +writesecurity | other | 6600 | allow
    user | dir | 0755 | everyone +writesecurity | other | 2755 | ownership
    user | file | 0644 | none | app owner | 0600 | allow
    user | file | 0644 | none | app owner | 4755 | place
    user | file | 0644 | none | app owner | 2755 | place
    user | file | 4755 | none | app owner | 4700 | allow
    user | file | 0644 | none | app root | 4755 | place
    user | file | 0644 | none | app other | 4755 | ownership
    user | dir | 0755 | none | app owner | 2755 | allow
    system | file | 0644 | none | root | 0600 | sealed
    localApp | file | 0644 | none | owner | 0600 | sealed
    containerFixture | file | 0644 | none | owner | 0600 | place
    delivered | file | 0644 | none | root | 0600 | place
    """)

  @Test(arguments: givenModes)
  func modeIsWhatTheMakerCanGive(row: String) throws {
    let cells = try Table.cells(row, 4)
    let (isApps, person) = try caller(cells[1])
    let mode = allowedMode(
      try Table.mode(cells[2]), gid: 10, isDirectory: try Table.kind(cells[0]) == .directory,
      throughApp: isApps, by: person.credentials, isMember: person.membership)
    #expect(mode == (try Table.mode(cells[3])))
  }

  // kind | who | asks for | gets
  static let givenModes = Table.rows(
    """
    file | other | 0755 | 0755
    file | other | 4755 | 4755
    file | other | 6755 | 4755
    file | other | 2644 | 0644
    file | lost | 2755 | 0755
    file | member | 2755 | 2755
    file | extra | 6755 | 6755
    file | root | 6755 | 6755
    file | owner | 2755 | 0755
    dir | other | 2755 | 0755
    dir | lost | 3777 | 1777
    dir | member | 2755 | 2755
    dir | extra | 6755 | 6755
    dir | root | 2755 | 2755
    file | app member | 6755 | 0755
    file | app root | 6755 | 0755
    file | app other | 1755 | 1755
    dir | app other | 2755 | 0755
    dir | app member | 2755 | 2755
    """)

  @Test(arguments: owners)
  func ownersAreChangedByRoot(row: String) throws {
    let cells = try Table.cells(row, 6)
    let object = try Table.object(zone: cells[0], acl: cells[1])
    let person = try Person(cells[2])
    let decision = decideOwnerChange(
      uid: try id(cells[3]), gid: try id(cells[4]), on: object, by: person.credentials,
      isMember: person.membership)
    #expect(decision == (try Table.decision(cells[5])))
  }

  // zone | ACL | who | new owner | new group | answer
  static let owners = Table.rows(
    """
    user | none | root | 4 | 99 | allow
    user | damaged | root | 4 | - | allow
    user | none | owner | 4 | - | ownership
    user | none | owner | 1 | - | allow
    user | none | owner | - | 99 | allow
    user | none | owner | - | 10 | allow
    user | none | owner | - | 50 | ownership
    user | none | owner | 1 | 50 | ownership
    user | none | owner | - | - | allow
    user | none | other | - | - | ownership
    user | none | other | 1 | - | ownership
    user | none | other | 4 | - | ownership
    user | none | member | - | 10 | ownership
    user | everyone +chown | other | 4 | - | allow
    user | everyone +chown | other | 3 | - | ownership
    user | everyone +chown | other | 4 | 99 | allow
    user | everyone +chown | other | 4 | 50 | ownership
    user | everyone +chown | extra | 3 | 50 | allow
    user | everyone +chown | lost | 5 | 50 | ownership
    user | everyone +writesecurity | other | - | 99 | allow
    user | everyone +writesecurity | other | - | 50 | ownership
    user | everyone +writesecurity | other | 4 | - | ownership
    user | everyone -chown | other | 4 | - | ownership
    system | none | root | 4 | - | sealed
    system | none | other | 3 | - | sealed
    delivered | none | root | 4 | - | place
    containerFixture | none | owner | - | 99 | place
    """)

  @Test(arguments: times)
  func timesOtherThanNowAreTheOwners(row: String) throws {
    let cells = try Table.cells(row, 6)
    let object = try Table.object(zone: cells[0], mode: cells[1], acl: cells[2])
    let person = try Person(cells[3])
    let decision = decideTimeChange(
      toNow: cells[4] == "now", on: object, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[5])))
  }

  // zone | mode | ACL | who | time | answer
  static let times = Table.rows(
    """
    user | 0000 | none | owner | now | allow
    user | 0000 | none | owner | given | allow
    user | 0000 | damaged | root | given | allow
    user | 0666 | none | other | now | allow
    user | 0666 | none | other | given | ownership
    user | 0644 | none | other | now | mode
    user | 0644 | everyone +writeattr | other | now | allow
    user | 0644 | everyone +writeattr | other | given | ownership
    user | 0666 | everyone -writeattr | other | now | list
    user | 0666 | everyone -writeattr | owner | given | list
    system | 0666 | none | root | now | sealed
    system | 0666 | none | other | given | sealed
    delivered | 0666 | none | owner | given | place
    delivered | 0666 | none | other | given | ownership
    """)

  @Test(arguments: extended)
  func extendedAttributesHaveOwners(row: String) throws {
    let cells = try Table.cells(row, 8)
    let object = Object(
      uid: 1, gid: 10, mode: try Table.mode(cells[2]), kind: try Table.kind(cells[1]),
      zone: try Table.zone(cells[0]), flags: try Table.flags(cells[3]), acl: try Table.acl(cells[4]))
    let person = try Person(cells[5])
    let namespace: AttributeNamespace =
      switch cells[6] {
      case "user": .user
      case "roots": .privileged(isRoots: true)
      case "privileged": .privileged(isRoots: false)
      case "reserved": .reserved
      case "other": .other
      default: throw UnreadableRow(cell: cells[6])
      }
    let decision = decideExtendedAttributeChange(
      in: namespace, on: object, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[7])))
  }

  // zone | kind | mode | flags | ACL | who | names | answer
  static let extended = Table.rows(
    """
    user | file | 0644 | - | none | owner | user | allow
    user | file | 0444 | - | none | owner | user | mode
    user | file | 0644 | - | none | other | user | mode
    user | file | 0644 | - | everyone +writeextattr | other | user | allow
    user | file | 0666 | - | everyone -writeextattr | other | user | list
    user | file | 0666 | uchg | none | root | user | flags
    user | file | 0666 | uappnd | none | owner | user | allow
    user | dir | 1777 | - | none | other | user | sticky
    user | dir | 1777 | - | everyone +writeextattr | other | user | sticky
    user | dir | 1777 | - | none | owner | user | allow
    user | dir | 1777 | - | none | root | user | allow
    user | dir | 0777 | - | none | other | user | allow
    user | file | 1777 | - | none | other | user | allow
    user | file | 0666 | - | none | owner | roots | ownership
    user | file | 0000 | - | none | root | roots | allow
    user | file | 0000 | uchg | none | root | roots | flags
    user | file | 0000 | uappnd | none | root | roots | allow
    user | file | 0000 | - | damaged | owner | privileged | allow
    user | file | 0600 | uappnd | none | owner | privileged | allow
    user | file | 0400 | uappnd | none | owner | privileged | mode
    user | file | 0600 | uchg | none | owner | privileged | flags
    user | file | 0666 | - | none | root | reserved | place
    user | file | 0666 | - | none | owner | reserved | place
    user | file | 0000 | uchg | damaged | other | other | allow
    system | file | 0666 | - | none | root | user | sealed
    system | file | 0666 | - | none | root | roots | sealed
    system | file | 0666 | - | none | root | reserved | sealed
    system | file | 0666 | - | none | root | other | sealed
    delivered | file | 0666 | - | none | root | roots | place
    delivered | file | 0666 | - | none | owner | other | place
    containerFixture | file | 0666 | - | none | owner | user | place
    """)

  @Test(arguments: names)
  func onlyACLsHideNamesOfAttributes(row: String) throws {
    let cells = try Table.cells(row, 4)
    let object = try Table.object(mode: cells[0], acl: cells[1])
    let person = try Person(cells[2])
    let decision = decideAttributeNames(on: object, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[3])))
  }

  // mode | ACL | who | answer
  static let names = Table.rows(
    """
    0000 | none | other | allow
    0000 | empty | other | allow
    0000 | everyone +read | other | allow
    0777 | everyone -readextattr | other | list
    0777 | everyone -readextattr | owner | list
    0777 | everyone -readextattr | root | allow
    0777 | damaged | other | list
    """)

  @Test(arguments: capabilities)
  func whoeverWritesTakesCapabilitiesAway(row: String) throws {
    let cells = try Table.cells(row, 4)
    let object = try Table.object(zone: cells[0], mode: "0700", acl: cells[1])
    let person = try Person(cells[2])
    let decision = decideCapabilityRemoval(on: object, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[3])))
  }

  // zone | ACL | who | answer
  static let capabilities = Table.rows(
    """
    user | none | owner | allow
    user | none | other | mode
    user | everyone +append | other | allow
    user | everyone +write | other | allow
    user | everyone -write;everyone +append | other | allow
    user | everyone -append | other | list
    user | none | root | allow
    system | none | root | sealed
    """)

  @Test func onlySealsHoldEveryAttribute() {
    for zone in Zone.allCases {
      let object = Object(uid: 1, gid: 10, mode: 0, kind: .file, zone: zone, flags: .immutable, acl: .damaged)
      #expect(decideAttributeChange(on: object) == (zone.isReadOnly ? .deny(.readOnly) : .allow))
    }
  }

  @Test func someThingsAreTheOwnersAndRoots() throws {
    let object = Object(
      uid: 1, gid: 10, mode: 0o777, kind: .file, zone: .user,
      acl: .acl(AccessControlList([.init(.permit, .everyone, .genericAll)])))
    for (who, isAllowed) in [
      ("owner", true), ("root", true), ("member", false), ("extra", false), ("other", false),
    ] {
      let decision = decideAsOwner(on: object, by: try Person(Substring(who)).credentials)
      #expect(decision == (isAllowed ? .allow : .deny(.ownership)))
    }
  }

  private func caller(_ cell: Substring) throws -> (isApps: Bool, Person) {
    let isApps = cell.hasPrefix("app ")
    return (isApps, try Person(isApps ? cell.dropFirst(4) : cell))
  }

  private func id(_ cell: Substring) throws -> UInt32? {
    if cell == "-" { return nil }
    guard let id = UInt32(cell) else { throw UnreadableRow(cell: cell) }
    return id
  }
}
