// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// What may get a name, lose it, or be moved, beyond the rights to it and to its directory.
@Suite struct NameRuleTests {
  @Test(arguments: newNames)
  func newNamesTakeTwoRights(row: String) throws {
    let cells = try Table.cells(row, 6)
    let directory = try Table.object(.directory, zone: cells[0], mode: cells[1], acl: cells[2])
    let person = try Person(cells[3])
    let decision = decideNewName(
      try Table.rights(cells[4]), in: directory, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[5])))
  }

  // zone | mode | ACL | who | asks | answer
  static let newNames = Table.rows(
    """
    user | 0700 | none | owner | add_file | allow
    user | 0200 | none | owner | add_file | mode
    user | 0100 | none | owner | add_file | mode
    user | 0733 | none | other | add_subdirectory | allow
    user | 0732 | none | other | add_file | mode
    user | 0700 | everyone +add_file | other | add_file | mode
    user | 0700 | everyone +add_file,search | other | add_file | allow
    user | 0777 | everyone -search | other | add_file | list
    user | 0000 | damaged | root | add_file | allow
    system | 0777 | none | root | add_file | sealed
    inbox | 0777 | none | root | add_file | place
    """)

  /// The name is reserved, and a directory of it would be one that only the daemon makes.
  @Test func someNamesAreTheDaemons() {
    for zone in Zone.allCases {
      let reserved: Decision =
        zone.isReadOnlyRegion ? .deny(.readOnly) : zone == .inbox ? .deny(.place) : .allow
      #expect(decideReservedName(zone, in: .user) == reserved)
      for data in [Zone.containerData, .macContainerData] {
        let atTop: Decision = reserved == .allow && zone != .containerOwn ? .deny(.place) : reserved
        #expect(decideReservedName(zone, in: data) == atTop)
      }
      let isContainer = [.container, .groupContainer, .cloudContainer].contains(zone)
      #expect(decideNewDirectory(zone) == (isContainer ? .deny(.place) : .allow))
    }
  }

  @Test func everyoneHasOneTrash() {
    for (uid, name, isDirectory, isAllowed) in [
      (501, "501", true, true), (501, "501", false, false), (501, "0501", true, false),
      (501, "502", true, false), (501, "", true, false), (501, ".501", true, false), (0, "0", true, true),
      (0, "501", true, false), (UInt32.max, "4294967295", true, true),
    ] as [(UInt32, String, Bool, Bool)] {
      let caller = Credentials(uid: uid, gid: 20)
      for zone in Zone.allCases {
        let expected: Decision = zone != .trashes || isAllowed ? .allow : .deny(.place)
        let decision = decideTrashName(name.utf8, ofDirectory: isDirectory, in: zone, by: caller)
        #expect(decision == expected, "\(uid) \(name) \(zone)")
      }
    }
  }

  @Test(arguments: moves)
  func containersStayWhereTheyAre(row: String) throws {
    let cells = try Table.cells(row, 4)
    let object = Object(
      uid: 1, gid: 10, mode: 0o777, kind: try Table.kind(cells[1]), zone: try Table.zone(cells[0]))
    #expect(decideMove(of: object, to: try Table.zone(cells[2])) == (try Table.decision(cells[3])))
  }

  // zone | kind | new zone | answer
  static let moves = Table.rows(
    """
    user | dir | user | allow
    user | file | user | allow
    user | dir | container | place
    user | file | container | allow
    user | dir | groupContainer | place
    user | dir | cloudContainer | place
    user | dir | containers | allow
    user | dir | homeLibrary | allow
    container | dir | user | place
    container | dir | container | place
    container | file | user | allow
    groupContainer | dir | user | place
    cloudContainer | dir | user | place
    containers | dir | user | place
    groupContainers | dir | user | place
    cloudContainers | dir | user | place
    homeLibrary | dir | user | place
    homeLibrary | symlink | user | allow
    home | dir | home | allow
    """)

  @Test(arguments: parents)
  func directoriesAreChangedByANewParent(row: String) throws {
    let cells = try Table.cells(row, 6)
    let object = Object(
      uid: 1, gid: 10, mode: try Table.mode(cells[2]), kind: try Table.kind(cells[1]),
      zone: try Table.zone(cells[0]))
    let person = try Person(cells[4])
    let decision = decideNewParent(
      of: object, in: try Table.zone(cells[3]), by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[5])))
  }

  // zone | kind | mode | new zone | who | answer
  static let parents = Table.rows(
    """
    user | dir | 0700 | user | owner | allow
    user | dir | 0500 | user | owner | mode
    user | dir | 0700 | user | other | mode
    user | dir | 0000 | user | root | allow
    user | file | 0000 | user | other | allow
    delivered | dir | 0700 | user | owner | allow
    delivered | dir | 0700 | delivered | owner | place
    delivered | dir | 0500 | user | owner | mode
    """)

  @Test func installedAppsHoldWhatTheyAreIn() {
    for zone in Zone.allCases {
      var isAsked = false
      func holdsApp() -> Bool {
        isAsked = true
        return true
      }
      let mayHold = [.home, .applications, .utilities, .networkApplications, .homeApplications].contains(zone)
      #expect(decideRemoval(ofDirectoryIn: zone, holdsApp: holdsApp()) == (mayHold ? .deny(.place) : .allow))
      #expect(isAsked == mayHold)
      #expect(decideRemoval(ofDirectoryIn: zone, holdsApp: false) == .allow)
    }
  }

  @Test(arguments: links)
  func hardLinksAreProtected(row: String) throws {
    let cells = try Table.cells(row, 7)
    let object = Object(
      uid: 1, gid: 10, mode: try Table.mode(cells[2]), kind: try Table.kind(cells[1]),
      zone: try Table.zone(cells[0]), flags: try Table.flags(cells[3]), acl: try Table.acl(cells[4]))
    let person = try Person(cells[5])
    let decision = decideLink(to: object, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[6])))
  }

  // zone | kind | mode | flags | ACL | who | answer
  static let links = Table.rows(
    """
    user | file | 0000 | - | none | owner | allow
    user | file | 6777 | - | none | owner | allow
    user | special | 0000 | - | damaged | root | allow
    user | file | 0666 | - | none | other | allow
    user | file | 0644 | - | none | other | ownership
    user | file | 0622 | - | none | other | ownership
    user | file | 0660 | - | none | member | allow
    user | file | 0660 | - | none | extra | allow
    user | file | 0660 | - | none | lost | ownership
    user | file | 0600 | - | everyone +read,write | other | allow
    user | file | 0666 | - | everyone -write | other | ownership
    user | file | 4666 | - | none | other | ownership
    user | file | 2676 | - | none | other | ownership
    user | file | 2666 | - | none | other | allow
    user | special | 0666 | - | none | other | ownership
    user | symlink | 0777 | - | none | other | ownership
    user | file | 0666 | uchg | none | root | flags
    system | file | 0666 | - | none | root | sealed
    delivered | file | 0666 | - | none | owner | place
    containerFixture | file | 0666 | - | none | root | place
    """)

  @Test func devicesAreRootsInTheWholeTree() {
    for isSystem in [true, false] {
      for isWhole in [true, false] {
        for uid in [UInt32(0), 1] {
          let decision = decideDevice(
            isSystem: isSystem, inWholeTree: isWhole, by: Credentials(uid: uid, gid: uid))
          let mayMake = isSystem && uid == 0
          #expect(decision == (mayMake ? isWhole ? .allow : .deny(.place) : .deny(.ownership)))
        }
      }
    }
  }

  @Test(arguments: meetingPoints)
  func meetingPointsAreFoundByThoseWhoMayUseThem(row: String) throws {
    let cells = try Table.cells(row, 5)
    let object = try Table.object(.special, mode: cells[1], acl: cells[2])
    let person = try Person(cells[3])
    let decision = decideMeetingPoint(
      object, isFifo: cells[0] == "fifo", by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[4])))
  }

  /// Its mode makes no difference: its owner could change that.
  @Test func ownersOfDirectoriesSeeWhatIsThere() throws {
    for mode in ["0755", "0777", "0000"] as [Substring] {
      let directory = try Table.object(.directory, mode: mode, acl: "none")
      for (who, decision) in [
        ("owner", .allow), ("member", .deny(.mode)), ("other", .deny(.mode)),
      ] as [(Substring, Decision)] {
        #expect(decideStandIn(in: directory, by: try Person(who).credentials) == decision, "\(who) \(mode)")
      }
    }
  }

  // what | mode | ACL | who | answer
  static let meetingPoints = Table.rows(
    """
    fifo | 0666 | none | other | allow
    fifo | 0622 | none | other | mode
    fifo | 0660 | none | member | allow
    fifo | 0660 | none | lost | mode
    fifo | 0000 | none | owner | allow
    fifo | 0000 | none | root | allow
    fifo | 0600 | everyone +read,write | other | allow
    fifo | 0600 | everyone +read | other | mode
    fifo | 0666 | everyone -read | other | list
    fifo | 0666 | everyone -read | owner | list
    socket | 0222 | none | other | allow
    socket | 0220 | none | other | mode
    socket | 0666 | everyone -read | other | allow
    socket | 0666 | damaged | other | list
    """)

  /// What is cached in a view of one user's is cached for that user: whoever else gets there gets nothing.
  @Test func viewOfOneUserIsTheirs() {
    let file = Object(uid: 1, gid: 10, mode: 0o777, kind: .file, zone: .user)
    let stranger = Credentials(uid: 1, gid: 10, mayUseView: false)
    for rights in [Rights.read, .write, .execute, .link, .delete, .readAttributes, .nothing] {
      #expect(decide(rights, on: file, by: stranger) { _ in .member } == .deny(.mode))
    }
    #expect(decideLink(to: file, by: stranger) { _ in .member } == .deny(.mode))
    let change = decideModeChange(to: 0, on: file, throughApp: false, by: stranger) { _ in .member }
    #expect(change == .deny(.mode))
  }
}
