// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Section 5.1 of the rules: what flags stand against.
@Suite struct FlagTableTests {
  @Test(arguments: immutable)
  func immutableRefusesEveryChange(row: String) throws { try check(row) }

  @Test(arguments: appendOnly)
  func appendOnlyLetsGrow(row: String) throws { try check(row) }

  @Test(arguments: others)
  func otherFlagsRefuseNothingOrOnlyRemoval(row: String) throws { try check(row) }

  @Test(arguments: parents)
  func flagsOfTheDirectoryHoldWhatIsInIt(row: String) throws {
    let cells = try Table.cells(row, 5)
    let object = Object(
      uid: 1, gid: 10, mode: 0o777, kind: .file, zone: .user, flags: try Table.flags(cells[0]),
      acl: .acl(AccessControlList([.init(.permit, .everyone, .delete)])))
    let parent = Object(
      uid: 1, gid: 10, mode: 0o777, kind: .directory, zone: .user, flags: try Table.flags(cells[1]))
    let person = try Person(cells[2])
    let decision = decide(
      try Table.rights(cells[3]), on: object, in: parent, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[4])))
  }

  @Test(arguments: changes)
  func flagsAreChangedByOwnerAndRoot(row: String) throws {
    let cells = try Table.cells(row, 5)
    let object = Object(
      uid: 1, gid: 10, mode: 0, kind: .file, zone: .user, flags: try Table.flags(cells[0]),
      acl: try Table.acl(cells[2]))
    let person = try Person(cells[3])
    let decision = decideFlagChange(
      to: try Table.flags(cells[1]), on: object, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[4])))
  }

  /// What is known to Apple and has no meaning here can't be set, even by root, and need not be cleared.
  @Test(arguments: [UInt32(0x10), 0x20, 0x40, 0x80, 0x100, 0x8_0000, 0x20_0000, 0x80_0000, 0x4000_0000])
  func unsupportedFlagsAreNotChanged(number: UInt32) {
    let strange = FileFlags(rawValue: number)
    for uid in [UInt32(0), 1] {
      let credentials = Credentials(uid: uid, gid: 10)
      let plain = Object(uid: 1, gid: 10, mode: 0, kind: .file, zone: .user)
      #expect(decideFlagChange(to: strange, on: plain, by: credentials) { _ in .member } == .deny(.ownership))
      let flagged = Object(uid: 1, gid: 10, mode: 0, kind: .file, zone: .user, flags: strange)
      #expect(decideFlagChange(to: [], on: flagged, by: credentials) { _ in .member } == .deny(.ownership))
      #expect(
        decideFlagChange(to: [strange, .hidden], on: flagged, by: credentials) { _ in .member } == .allow)
    }
  }

  @Test(arguments: [Zone.top, .system])
  func flagsOfReadOnlyRegionsStay(zone: Zone) {
    let sealed = Object(uid: 0, gid: 0, mode: 0, kind: .file, zone: zone)
    #expect(
      decideFlagChange(to: .hidden, on: sealed, by: Credentials(uid: 0, gid: 0)) { _ in .member }
        == .deny(.readOnly))
  }

  private func check(_ row: String) throws {
    let cells = try Table.cells(row, 5)
    let kind = try Table.kind(cells[1])
    let object = Object(
      uid: 1, gid: 10, mode: 0o777, kind: kind, zone: .user, flags: try Table.flags(cells[0]))
    let parent = Object(uid: 1, gid: 10, mode: 0o777, kind: .directory, zone: .user)
    let person = try Person(cells[2])
    let decision = decide(
      try Table.rights(cells[3]), on: object, in: parent, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[4])))
  }

  // flags | kind | who | asks | answer
  static let immutable = Table.rows(
    """
    uchg | file | owner | write | flags
    uchg | file | owner | append | flags
    uchg | file | owner | delete | flags
    uchg | file | owner | writeattr | flags
    uchg | file | owner | writeextattr | flags
    uchg | file | owner | writesecurity | flags
    uchg | file | owner | chown | flags
    uchg | file | owner | link | flags
    uchg | file | root | write | flags
    uchg | file | root | delete | flags
    uchg | file | root | writesecurity | flags
    uchg | file | root | chown | flags
    uchg | file | other | write | flags
    uchg | file | owner | read | allow
    uchg | file | owner | execute | allow
    uchg | file | owner | readattr,readextattr,readsecurity | allow
    uchg | file | root | read | allow
    uchg | file | owner | read,write | flags
    uchg | dir | owner | add_file | flags
    uchg | dir | owner | add_subdirectory | flags
    uchg | dir | owner | delete_child | flags
    uchg | dir | owner | delete | flags
    uchg | dir | root | add_file | flags
    uchg | dir | root | delete_child | flags
    uchg | dir | owner | writesecurity | flags
    uchg | dir | owner | list,search | allow
    schg | file | owner | write | flags
    schg | file | root | write | flags
    schg | file | root | append | flags
    schg | file | root | delete | flags
    schg | file | root | link | flags
    schg | file | root | writeattr | flags
    schg | file | root | writeextattr | flags
    schg | dir | root | add_subdirectory | flags
    schg | file | other | read | allow
    uchg,uappnd | file | owner | append | flags
    uchg | special | owner | write | allow
    uchg | special | owner | append | allow
    uchg | special | owner | read,write | allow
    uchg | special | owner | delete | flags
    uchg | special | owner | writesecurity | flags
    uchg | special | root | writeattr | flags
    uchg | special | owner | write,writeextattr | flags
    schg | special | root | write | allow
    uchg | symlink | owner | delete | flags
    uchg | symlink | owner | writesecurity | flags
    uchg | symlink | owner | read | allow
    """)

  static let appendOnly = Table.rows(
    """
    uappnd | file | owner | append | allow
    uappnd | file | owner | writeextattr | allow
    uappnd | file | owner | append,writeextattr | allow
    uappnd | file | owner | read,append | allow
    uappnd | file | owner | write | flags
    uappnd | file | owner | write,append | flags
    uappnd | file | owner | delete | flags
    uappnd | file | owner | writeattr | flags
    uappnd | file | owner | writesecurity | flags
    uappnd | file | owner | chown | flags
    uappnd | file | owner | link | flags
    uappnd | file | root | append | allow
    uappnd | file | root | write | flags
    uappnd | file | root | delete | flags
    uappnd | file | other | append | allow
    uappnd | file | owner | read | allow
    sappnd | file | owner | append | allow
    sappnd | file | root | write | flags
    sappnd | file | root | delete | flags
    sappnd | file | root | writesecurity | flags
    sappnd | file | owner | writeextattr | allow
    uappnd | dir | owner | add_file | allow
    uappnd | dir | owner | add_subdirectory | allow
    uappnd | dir | owner | writeextattr | allow
    uappnd | dir | owner | add_file,search | allow
    uappnd | dir | owner | delete_child | flags
    uappnd | dir | owner | add_file,delete_child | flags
    uappnd | dir | owner | delete | flags
    uappnd | dir | owner | writesecurity | flags
    uappnd | dir | owner | writeattr | flags
    uappnd | dir | owner | list,search | allow
    sappnd | dir | root | add_file | allow
    sappnd | dir | root | delete_child | flags
    uappnd | special | owner | write | allow
    uappnd | special | owner | delete | flags
    uappnd | symlink | owner | delete | flags
    uappnd | symlink | owner | writeextattr | allow
    """)

  static let others = Table.rows(
    """
    sunlnk | file | owner | delete | flags
    sunlnk | file | root | delete | flags
    sunlnk | file | owner | write | allow
    sunlnk | file | owner | writesecurity | allow
    sunlnk | file | owner | link | allow
    sunlnk | dir | root | delete | flags
    sunlnk | dir | owner | delete_child | allow
    sunlnk | dir | owner | add_file | allow
    sunlnk,uappnd | file | owner | append | allow
    nodump | file | owner | write,delete | allow
    hidden | file | owner | write,delete | allow
    opaque | dir | owner | add_file,delete_child | allow
    arch | file | owner | write,delete | allow
    - | file | owner | write,delete | allow
    """)

  // flags | flags of the directory | who | asks | answer; the object's ACL lets everyone delete it
  static let parents = Table.rows(
    """
    - | - | other | delete | allow
    - | uchg | other | delete | flags
    - | uchg | owner | delete | flags
    - | uchg | root | delete | flags
    - | schg | root | delete | flags
    - | uappnd | owner | delete | flags
    - | sappnd | root | delete | flags
    - | sunlnk | other | delete | allow
    - | hidden,nodump,arch | other | delete | allow
    - | uchg | owner | write | allow
    - | uchg | owner | link | allow
    - | uchg | owner | writesecurity | allow
    uappnd | - | owner | delete | flags
    uchg | - | owner | delete | flags
    """)

  // flags | changed to | ACL | who | answer
  static let changes = Table.rows(
    """
    - | uchg | none | owner | allow
    - | uappnd | none | owner | allow
    - | nodump,opaque,hidden | none | owner | allow
    - | uchg | none | root | allow
    - | uchg | none | other | ownership
    - | hidden | none | member | ownership
    - | schg | none | owner | ownership
    - | sappnd | none | owner | ownership
    - | arch | none | owner | ownership
    - | sunlnk | none | owner | ownership
    - | schg,sappnd,arch,sunlnk | none | root | allow
    - | uchg,schg | none | owner | ownership
    uchg | - | none | owner | allow
    uappnd | - | none | owner | allow
    uchg | - | none | root | allow
    schg | - | none | root | allow
    sappnd | - | none | root | allow
    schg | - | none | owner | ownership
    schg | schg | none | owner | allow
    schg | schg,hidden | none | owner | allow
    schg,uchg | schg | none | owner | allow
    schg | hidden | none | owner | ownership
    schg | schg | none | other | allow
    uchg | - | none | other | ownership
    - | - | damaged | other | allow
    - | uchg | everyone +writesecurity | other | allow
    - | schg | everyone +writesecurity | other | ownership
    - | uchg | u2 +writesecurity | other | ownership
    - | uchg | everyone -writesecurity | owner | allow
    - | uchg | everyone -writesecurity | root | allow
    - | uchg | everyone +write,writeattr | other | ownership
    - | uchg | damaged | owner | allow
    - | uchg | damaged | other | ownership
    - | uchg | damaged | root | allow
    - | uchg | g50 +writesecurity | extra | allow
    - | uchg | g50 +writesecurity | lost | ownership
    """)
}
