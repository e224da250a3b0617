// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Section 3.3 of the rules: who may remove or rename, by the object and by the directory it is in.
@Suite struct DeletionTableTests {
  @Test(arguments: byMode)
  func withoutACLsTheDirectoryDecides(row: String) throws { try check(row) }

  @Test(arguments: byList)
  func theObjectsACLComesFirstThenTheDirectorys(row: String) throws { try check(row) }

  @Test(arguments: sticky)
  func stickyDirectoriesLeaveRemovalToOwners(row: String) throws { try check(row) }

  @Test(arguments: further)
  func furtherRightsAreAskedOfTheObject(row: String) throws { try check(row) }

  /// An administrator can protect something in a user's directory.
  @Test func rootsACLCountsInEverybodysDirectory() throws {
    let person = try Person("other")
    let object = { (uid: UInt32) throws in
      Object(uid: uid, gid: 0, mode: 0, kind: .file, zone: .user, acl: try Table.acl("everyone -delete"))
    }
    let parent = Object(uid: person.credentials.uid, gid: 10, mode: 0o700, kind: .directory, zone: .user)
    let answer = { (object: Object) in
      decide(.delete, on: object, in: parent, by: person.credentials, isMember: person.membership)
    }
    #expect(answer(try object(0)) == .deny(.acl))
    #expect(answer(try object(1)) == .allow)
  }

  /// The object belongs to user 1, the directory to the user named, both to group 10.
  private func check(_ row: String) throws {
    let cells = try Table.cells(row, 7)
    let object = Object(
      uid: 1, gid: 10, mode: 0, kind: .directory, zone: .user, acl: try Table.acl(cells[0]))
    let parent = Object(
      uid: try Person(cells[3]).credentials.uid, gid: 10, mode: try Table.mode(cells[2]), kind: .directory,
      zone: .user, acl: try Table.acl(cells[1]))
    let person = try Person(cells[4])
    let decision = decide(
      try Table.rights(cells[5]), on: object, in: parent, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[6])))
  }

  // ACL of the object | ACL of the directory | its mode | its owner | who | asks | answer
  static let byMode = Table.rows(
    """
    none | none | 200 | owner | owner | delete | allow
    none | none | 577 | owner | owner | delete | mode
    none | none | 020 | owner | member | delete | allow
    none | none | 757 | owner | member | delete | mode
    none | none | 020 | owner | extra | delete | allow
    none | none | 757 | owner | extra | delete | mode
    none | none | 002 | owner | other | delete | allow
    none | none | 775 | owner | other | delete | mode
    none | none | 200 | other | other | delete | allow
    none | none | 577 | other | other | delete | mode
    none | none | 755 | other | owner | delete | mode
    none | none | 022 | owner | lost | delete | allow
    none | none | 020 | owner | lost | delete | mode
    none | none | 002 | owner | lost | delete | mode
    none | none | 000 | owner | root | delete | allow
    empty | empty | 002 | owner | other | delete | allow
    empty | empty | 775 | owner | other | delete | mode
    """)

  static let byList = Table.rows(
    """
    everyone +delete | none | 000 | root | other | delete | allow
    everyone -delete | none | 777 | owner | other | delete | list
    everyone -delete | none | 777 | owner | owner | delete | list
    everyone -delete | none | 777 | owner | root | delete | allow
    u4 +delete | none | 000 | root | other | delete | allow
    u4 +delete | none | 000 | root | member | delete | mode
    u4 -delete | none | 777 | owner | other | delete | list
    u4 -delete | none | 777 | owner | member | delete | allow
    everyone +delete_child | none | 000 | root | other | delete | mode
    everyone -delete_child | none | 777 | owner | other | delete | allow
    none | everyone +delete_child | 000 | root | other | delete | allow
    none | everyone -delete_child | 777 | owner | other | delete | list
    none | everyone -delete_child | 777 | owner | owner | delete | list
    none | everyone -delete_child | 777 | owner | root | delete | allow
    none | u4 +delete_child | 000 | root | other | delete | allow
    none | u4 +delete_child | 000 | root | member | delete | mode
    none | u4 -delete_child | 777 | owner | other | delete | list
    none | u4 -delete_child | 777 | owner | member | delete | allow
    none | everyone +delete | 000 | root | other | delete | mode
    none | everyone -delete | 777 | owner | other | delete | allow
    everyone +delete | everyone -delete_child | 000 | root | other | delete | allow
    everyone -delete | everyone +delete_child | 777 | root | other | delete | list
    empty | everyone +delete_child | 000 | root | other | delete | allow
    empty | everyone -delete_child | 777 | root | other | delete | list
    u2 +delete | everyone +delete_child | 000 | root | other | delete | allow
    u2 +delete | everyone -delete_child | 777 | root | other | delete | list
    everyone +read | everyone +read | 000 | root | other | delete | mode
    everyone +delete [only] | none | 000 | root | other | delete | mode
    everyone -delete [only] | none | 002 | root | other | delete | allow
    everyone -delete [inherited] | none | 777 | root | other | delete | list
    none | everyone -delete_child [only] | 002 | root | other | delete | allow
    everyone +WRITE | none | 000 | root | other | delete | allow
    none | everyone +WRITE | 000 | root | other | delete | allow
    none | everyone -ALL | 777 | root | other | delete | list
    none | everyone +write | 000 | root | other | delete | mode
    none | everyone -write | 002 | root | other | delete | allow
    g50 +delete | none | 000 | root | extra | delete | allow
    g50 +delete | none | 000 | root | lost | delete | mode
    g50 -delete | none | 777 | root | lost | delete | list
    none | g50 +delete_child | 000 | root | lost | delete | mode
    none | g50 -delete_child | 777 | root | lost | delete | list
    none | owner +delete_child | 000 | other | other | delete | allow
    none | owner +delete_child | 000 | other | owner | delete | mode
    owner +delete | none | 000 | root | owner | delete | allow
    none | group +delete_child | 000 | root | extra | delete | allow
    damaged | none | 777 | root | other | delete | list
    damaged | everyone +delete_child | 777 | root | other | delete | list
    damaged | none | 777 | other | other | delete | allow
    everyone -delete | none | 733 | other | other | delete | allow
    everyone -delete | none | 533 | other | other | delete | mode
    everyone -delete | none | 733 | other | member | delete | list
    u4 -delete | none | 733 | other | other | delete | allow
    everyone -delete | everyone -delete_child | 733 | other | other | delete | list
    everyone -ALL | none | 1733 | other | other | delete | allow
    damaged | none | 777 | owner | owner | delete | list
    damaged | none | 000 | owner | root | delete | allow
    none | damaged | 777 | other | other | delete | list
    empty | damaged | 777 | other | other | delete | list
    none | damaged | 000 | owner | root | delete | allow
    everyone +delete | damaged | 000 | root | other | delete | allow
    """)

  static let sticky = Table.rows(
    """
    none | none | 1777 | root | other | delete | sticky
    everyone -delete | none | 1777 | root | other | delete | list
    everyone -delete | none | 1777 | other | other | delete | allow
    none | none | 1777 | root | member | delete | sticky
    none | none | 1777 | root | owner | delete | allow
    none | none | 1777 | other | other | delete | allow
    none | none | 1777 | root | root | delete | allow
    none | none | 1775 | root | other | delete | mode
    none | none | 1775 | root | owner | delete | mode
    none | none | 1775 | root | member | delete | sticky
    none | none | 1755 | root | owner | delete | mode
    none | none | 1777 | root | lost | delete | sticky
    everyone +delete | none | 1777 | root | other | delete | allow
    none | everyone +delete_child | 1777 | root | other | delete | allow
    none | everyone +write | 1777 | root | other | delete | sticky
    empty | empty | 1777 | root | other | delete | sticky
    everyone -delete | none | 1777 | root | owner | delete | list
    none | everyone -delete_child | 1777 | root | owner | delete | list
    """)

  // Renaming a directory asks of it delete and add_subdirectory at once. The object's mode is 000.
  static let further = Table.rows(
    """
    none | none | 002 | root | other | delete,add_subdirectory | mode
    everyone +add_subdirectory | none | 002 | root | other | delete,add_subdirectory | allow
    everyone -add_subdirectory | none | 002 | root | other | delete,add_subdirectory | list
    everyone +delete,add_subdirectory | none | 000 | root | other | delete,add_subdirectory | allow
    everyone +delete | none | 000 | root | other | delete,add_subdirectory | mode
    everyone +add_subdirectory | none | 000 | root | other | delete,add_subdirectory | mode
    everyone +add_subdirectory | everyone +delete_child | 000 | root | other | delete,add_subdirectory | allow
    everyone +add_subdirectory;everyone -add_subdirectory | \
    none | 002 | root | other | delete,add_subdirectory | list
    everyone +add_subdirectory;everyone -add_subdirectory | \
    none | 000 | root | other | add_subdirectory | allow
    none | none | 777 | root | owner | delete,writesecurity | allow
    none | none | 777 | root | other | delete,writesecurity | ownership
    none | none | 777 | root | other | delete,readattr | allow
    everyone -readattr | none | 777 | root | other | delete,readattr | list
    none | none | 777 | root | other | delete,link | allow
    none | none | 755 | root | other | delete,link | mode
    """)

  /// Nothing but the object's own ACL can allow removal where the directory is not known.
  @Test(arguments: [
    ("none", "mode"), ("empty", "mode"), ("everyone +delete", "allow"), ("everyone -delete", "list"),
  ])
  func withoutADirectoryTheObjectsACLDecides(acl: String, answer: String) throws {
    let object = Object(
      uid: 1, gid: 10, mode: 0o777, kind: .file, zone: .user, acl: try Table.acl(acl[...]))
    let owner = Credentials(uid: 1, gid: 10)
    let decision = decide(.delete, on: object, by: owner) { _ in .member }
    #expect(decision == (try Table.decision(answer[...])))
  }
}
