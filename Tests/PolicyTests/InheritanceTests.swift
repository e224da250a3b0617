// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Section 4.1 of the rules: what a new object gets from the ACL of its directory.
@Suite struct InheritanceTests {
  @Test(arguments: rows)
  func newObjectsInheritEntries(row: String) throws {
    let cells = try Table.cells(row, 3)
    let acl = try Table.accessControlList(cells[0])
    let inherited = acl.inherited(byDirectory: cells[1] == "dir")
    #expect(inherited == (cells[2] == "none" ? nil : try Table.accessControlList(cells[2])))
  }

  // ACL of the directory | what is made in it | its ACL
  static let rows = Table.rows(
    """
    empty | file | none
    empty | dir | none
    everyone +read | file | none
    everyone +read | dir | none
    everyone +read [file] | file | everyone +read [inherited]
    everyone +read [file] | dir | none
    everyone +read [dir] | file | none
    everyone +read [dir] | dir | everyone +read [inherited,dir]
    everyone +read [file,dir] | file | everyone +read [inherited]
    everyone +read [file,dir] | dir | everyone +read [inherited,file,dir]
    everyone +read [file,limit] | file | everyone +read [inherited]
    everyone +read [file,limit] | dir | none
    everyone +read [dir,limit] | dir | everyone +read [inherited]
    everyone +read [dir,limit] | file | none
    everyone +read [file,dir,limit] | dir | everyone +read [inherited]
    everyone +read [file,dir,limit] | file | everyone +read [inherited]
    everyone +read [file,only] | file | everyone +read [inherited]
    everyone +read [dir,only] | dir | everyone +read [inherited,dir]
    everyone +read [file,dir,only] | dir | everyone +read [inherited,file,dir]
    everyone +read [file,dir,only] | file | everyone +read [inherited]
    everyone +read [file,dir,limit,only] | dir | everyone +read [inherited]
    everyone +read [limit] | dir | none
    everyone +read [only] | dir | none
    everyone +read [limit,only] | file | none
    everyone +read [inherited] | file | none
    everyone +read [inherited] | dir | none
    everyone +read [inherited,file] | file | everyone +read [inherited]
    everyone +read [inherited,file,dir] | dir | everyone +read [inherited,file,dir]
    everyone -delete [file,dir] | dir | everyone -delete [inherited,file,dir]
    everyone ?read [file] | file | everyone ?read [inherited]
    everyone +ALL [file] | file | everyone +ALL [inherited]
    owner +read [file] | file | owner +read [inherited]
    foreign +read [dir] | dir | foreign +read [inherited,dir]
    u1 +read [file];u2 -write [file];u3 +read | file | u1 +read [inherited];u2 -write [inherited]
    u1 +read [file];u2 -write [dir];u3 +read [file,dir] | file | u1 +read [inherited];u3 +read [inherited]
    u1 +read [file];u2 -write [dir];u3 +read [file,dir] | dir | \
    u2 -write [inherited,dir];u3 +read [inherited,file,dir]
    u2 +read [dir];u1 -read [dir] | dir | u2 +read [inherited,dir];u1 -read [inherited,dir]
    """)

  @Test func threeLevelsDownAnUnlimitedEntryStillArrives() throws {
    let top = try Table.accessControlList("g50 +read [file,dir,only]")
    let second = try #require(top.inherited(byDirectory: true))
    let third = try #require(second.inherited(byDirectory: true))
    #expect(third == (try Table.accessControlList("g50 +read [inherited,file,dir]")))
    #expect(third.inherited(byDirectory: false) == (try Table.accessControlList("g50 +read [inherited]")))
  }

  @Test func aLimitedEntryGoesOneLevelDown() throws {
    let top = try Table.accessControlList("g50 +read [file,dir,limit]")
    let second = try #require(top.inherited(byDirectory: true))
    #expect(second.inherited(byDirectory: true) == nil)
    #expect(second.inherited(byDirectory: false) == nil)
  }

  /// What is said about the directory's ACL as a whole is not said about the new one.
  @Test func flagsOfTheACLAreNotInherited() {
    let acl = AccessControlList(
      [.init(.permit, .everyone, .read, .fileInherit)], flags: [.noInherit, .deferInherit])
    #expect(acl.inherited(byDirectory: false)?.flags == [])
  }
}
