// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Sections 3.1 and 3.4 of the rules: one ACL against a question, and what is left to the mode bits.
@Suite struct ACLTableTests {
  @Test(arguments: principals)
  func entriesAreAboutTheirPrincipals(row: String) throws { try check(row) }

  @Test(arguments: order)
  func entriesCountInTheirOrder(row: String) throws { try check(row) }

  @Test(arguments: genericRights)
  func genericRightsStandForOthers(row: String) throws { try check(row) }

  @Test(arguments: remainders)
  func whatTheACLLeavesOpenIsForTheMode(row: String) throws { try check(row) }

  @Test(arguments: owners)
  func ownersHaveWhatIsTheirs(row: String) throws { try check(row) }

  @Test(arguments: states)
  func noACLEmptyACLAndDamagedACLDiffer(row: String) throws { try check(row) }

  @Test(arguments: questionsAboutGroups)
  func groupsAreAskedForOnlyByEntriesThatMatter(row: String) throws {
    let cells = try Table.cells(row, 5)
    let object = try Table.object(mode: cells[1], acl: cells[0])
    var asked: [UInt32] = []
    _ = decide(try Table.rights(cells[3]), on: object, by: try Person(cells[2]).credentials) { gid in
      asked.append(gid)
      return .notMember
    }
    #expect(asked.map { "\($0)" }.joined(separator: ",") == cells[4])
  }

  private func check(_ row: String) throws {
    let cells = try Table.cells(row, 5)
    let object = try Table.object(mode: cells[1], acl: cells[0])
    let person = try Person(cells[2])
    let decision = decide(
      try Table.rights(cells[3]), on: object, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[4])))
  }

  // ACL | mode | who | asks | answer
  static let principals = Table.rows(
    """
    everyone +read | 000 | other | read | allow
    everyone +read | 000 | owner | read | allow
    everyone +read | 000 | lost | read | allow
    everyone -read | 777 | other | read | list
    everyone -read | 777 | owner | read | list
    everyone -read | 777 | lost | read | list
    everyone -read | 000 | root | read | allow
    owner +read | 000 | owner | read | allow
    owner +read | 000 | member | read | mode
    owner +read | 000 | other | read | mode
    owner -read | 777 | owner | read | list
    owner -read | 777 | member | read | allow
    owner -read | 777 | other | read | allow
    group +read | 000 | member | read | allow
    group +read | 000 | extra | read | allow
    group +read | 000 | other | read | mode
    group +read | 000 | owner | read | mode
    group +read | 000 | lost | read | mode
    group -read | 777 | member | read | list
    group -read | 777 | extra | read | list
    group -read | 777 | other | read | allow
    group -read | 777 | owner | read | allow
    group -read | 777 | lost | read | list
    nobody +read | 000 | other | read | mode
    nobody +read | 000 | owner | read | mode
    nobody -read | 777 | other | read | allow
    nobody -read | 777 | lost | read | allow
    u4 +read | 000 | other | read | allow
    u4 +read | 000 | member | read | mode
    u4 -read | 777 | other | read | list
    u4 -read | 777 | member | read | allow
    u1 +read | 000 | owner | read | allow
    u1 -read | 777 | owner | read | list
    g10 +read | 000 | member | read | allow
    g10 +read | 000 | extra | read | allow
    g10 +read | 000 | other | read | mode
    g50 +read | 000 | extra | read | allow
    g50 +read | 000 | member | read | mode
    g50 +read | 000 | lost | read | mode
    g50 -read | 777 | extra | read | list
    g50 -read | 777 | member | read | allow
    g50 -read | 777 | lost | read | list
    g99 +read | 000 | other | read | allow
    g99 +read | 000 | lost | read | allow
    g99 -read | 777 | lost | read | list
    g12 +read | 000 | other | read | mode
    g12 -read | 777 | other | read | allow
    g16 -read | 777 | member | read | allow
    g10 -read | 777 | owner | read | allow
    foreign +read | 000 | other | read | mode
    foreign +read | 000 | owner | read | mode
    foreign -read | 777 | other | read | list
    foreign -read | 777 | owner | read | list
    foreign -write | 777 | other | read | allow
    """)

  static let order = Table.rows(
    """
    everyone +read;everyone -read | 000 | other | read | allow
    everyone -read;everyone +read | 777 | other | read | list
    u4 +read;everyone -read | 000 | other | read | allow
    u4 +read;everyone -read | 777 | member | read | list
    u4 -read;everyone +read | 777 | other | read | list
    u4 -read;everyone +read | 000 | member | read | allow
    everyone +read;everyone -write | 777 | other | read | allow
    everyone +read;everyone -write | 777 | other | write | list
    everyone +read;everyone -read | 777 | other | read,write | list
    everyone +read;everyone +write;everyone -read | 000 | other | read,write | allow
    everyone +read;everyone -read;everyone +write | 777 | other | read,write | list
    everyone +read,write;everyone -read | 000 | other | read,write | allow
    everyone +write;everyone -execute;everyone +read | 000 | other | read,write | allow
    everyone -read,write | 777 | other | read | list
    everyone -read,write | 777 | other | execute | allow
    u2 +read;u3 +read;u4 +read | 000 | other | read | allow
    u2 -read;u3 -read;u4 -read | 777 | other | read | list
    u2 -read;u3 -read | 777 | other | read | allow
    everyone -read [only] | 777 | other | read | allow
    everyone +read [only] | 000 | other | read | mode
    everyone -read [only];everyone +read | 000 | other | read | allow
    everyone -read [file,dir] | 777 | other | read | list
    everyone +read [file,dir,limit] | 000 | other | read | allow
    everyone -read [inherited] | 777 | other | read | list
    everyone +read [inherited];everyone -read | 000 | other | read | allow
    everyone -read [inherited,file,dir,limit,only] | 777 | other | read | allow
    everyone ?read | 000 | other | read | mode
    everyone !read | 777 | other | read | allow
    everyone ?read;everyone !read;everyone -read | 777 | other | read | list
    everyone +nothing | 000 | other | read | mode
    everyone -nothing | 777 | other | read | allow
    g50 -read;everyone +read | 777 | lost | read | list
    g50 +read;everyone -read | 777 | lost | read | list
    g50 +read;everyone +read | 000 | lost | read | allow
    everyone +read;g50 -read | 000 | lost | read | allow
    everyone +read;foreign -read | 000 | other | read | allow
    foreign -read;everyone +read | 777 | other | read | list
    """)

  static let genericRights = Table.rows(
    """
    everyone +READ | 000 | other | read,readattr,readextattr,readsecurity | allow
    everyone +READ | 000 | other | execute | mode
    everyone +READ | 000 | other | write | mode
    everyone -READ | 777 | other | readattr | list
    everyone -READ | 777 | other | readsecurity | list
    everyone -READ | 777 | other | execute | allow
    everyone +WRITE | 000 | other | write,append,delete_child,writeattr,writeextattr | allow
    everyone +WRITE | 000 | other | writesecurity | allow
    everyone +WRITE | 000 | other | delete | allow
    everyone +WRITE | 000 | other | chown | ownership
    everyone +WRITE | 000 | other | read | mode
    everyone -WRITE | 777 | other | append | list
    everyone -WRITE | 777 | other | writesecurity | ownership
    everyone -WRITE | 777 | other | read | allow
    everyone +EXECUTE | 000 | other | execute | allow
    everyone +EXECUTE | 000 | other | read | mode
    everyone -EXECUTE | 777 | other | execute | list
    everyone -EXECUTE | 777 | other | write | allow
    everyone +ALL | 000 | other | read,write,execute,append | allow
    everyone +ALL | 000 | other | writesecurity | allow
    everyone +ALL | 000 | other | chown | ownership
    everyone -ALL | 777 | other | readattr | list
    everyone -ALL | 777 | other | execute | list
    everyone -ALL | 777 | other | synchronize | allow
    everyone +READ,write | 000 | other | read,write | allow
    everyone +read | 000 | other | READ | mode
    everyone +READ | 000 | other | READ | allow
    """)

  static let remainders = Table.rows(
    """
    everyone +read | 002 | other | read,write | allow
    everyone +read | 004 | other | read,write | mode
    everyone +write | 004 | other | read,write | allow
    everyone +read | 200 | owner | read,write | allow
    everyone +read | 072 | owner | read,write | mode
    u4 +read;u4 +execute | 002 | other | read,write,execute | allow
    everyone +readattr | 773 | other | read | mode
    everyone +readextattr | 000 | other | read | mode
    everyone +read | 000 | other | readextattr | mode
    everyone -readextattr | 004 | other | read | allow
    everyone +append | 000 | other | write | mode
    everyone +append | 000 | other | append | allow
    everyone +write | 000 | other | append | mode
    everyone -append | 002 | other | write | allow
    everyone -write | 002 | other | append | allow
    everyone -delete | 002 | other | write | allow
    everyone +chown | 000 | other | chown | allow
    everyone +chown | 000 | owner | chown | allow
    u4 +chown | 777 | member | chown | ownership
    everyone -chown | 777 | other | chown | ownership
    everyone +chown | 000 | other | chown,writesecurity | allow
    everyone +chown;everyone -writesecurity | 000 | other | chown,writesecurity | allow
    everyone +writesecurity | 000 | other | writesecurity | allow
    everyone +writesecurity | 000 | other | chown | ownership
    u4 +writesecurity | 777 | member | writesecurity | ownership
    everyone -writesecurity | 777 | other | writesecurity | ownership
    everyone -read | 777 | other | read,writesecurity | list
    everyone +writesecurity | 004 | other | read,writesecurity | allow
    everyone +writesecurity | 000 | other | read,writesecurity | mode
    everyone +read | 000 | other | read,writesecurity | ownership
    everyone -readattr | 777 | other | readattr,readsecurity | list
    everyone -readsecurity | 777 | other | readattr,readsecurity | list
    everyone +writeattr | 000 | other | writeattr | allow
    everyone -writeattr | 777 | other | writeattr | list
    g10 +read;g50 +write | 000 | extra | read,write | allow
    g10 +read;g50 +write | 000 | member | read,write | mode
    g50 +read | 020 | extra | read,write | allow
    g50 +read | 002 | extra | read,write | mode
    everyone +read | 022 | lost | read,write | allow
    everyone +read | 020 | lost | read,write | mode
    everyone -ALL | 000 | root | read,write,chown,writesecurity | allow
    everyone +execute | 666 | root | execute | mode
    everyone +execute | 000 | other | execute | allow
    """)

  static let owners = Table.rows(
    """
    everyone -writesecurity | 000 | owner | writesecurity | allow
    owner -ALL | 000 | owner | writesecurity | allow
    u1 -ALL | 777 | owner | read | list
    u1 -ALL | 777 | owner | read,writesecurity | list
    u1 -writesecurity | 400 | owner | read,writesecurity | allow
    everyone -writeattr | 777 | owner | writeattr | list
    everyone +read | 000 | owner | writeattr | allow
    empty | 000 | owner | writeattr | allow
    everyone -chown | 777 | owner | chown | ownership
    empty | 777 | owner | chown | ownership
    everyone -writeextattr | 777 | owner | writeextattr | list
    empty | 077 | owner | read | mode
    group -writesecurity | 000 | owner | writesecurity | allow
    owner +read;everyone -ALL | 000 | owner | read | allow
    owner +read;everyone -ALL | 777 | owner | write | list
    owner +read;everyone -ALL | 777 | other | read | list
    """)

  static let states = Table.rows(
    """
    none | 004 | other | read | allow
    none | 000 | other | read | mode
    empty | 004 | other | read | allow
    empty | 000 | other | read | mode
    empty | 000 | other | readattr | allow
    empty | 777 | other | writesecurity | ownership
    damaged | 777 | other | read | list
    damaged | 777 | owner | read | list
    damaged | 777 | member | write | list
    damaged | 777 | other | execute | list
    damaged | 777 | other | readattr | list
    damaged | 777 | owner | readattr | list
    damaged | 777 | other | readsecurity | list
    damaged | 777 | owner | writeattr | list
    damaged | 777 | other | delete | list
    damaged | 000 | owner | writesecurity | allow
    damaged | 777 | owner | writesecurity,read | list
    damaged | 777 | other | writesecurity | ownership
    damaged | 777 | owner | chown | ownership
    damaged | 777 | other | nothing | allow
    damaged | 000 | root | read,write,writesecurity | allow
    damaged | 000 | root | delete | allow
    damaged | 777 | other | link | allow
    """)

  // ACL | mode | who | asks | groups asked for
  static let questionsAboutGroups = Table.rows(
    """
    none | 044 | other | read |
    none | 040 | other | read | 10
    none | 004 | other | read | 10
    none | 040 | other | read,write |
    none | 040 | member | read |
    none | 040 | owner | read |
    none | 040 | root | read |
    none | 000 | other | writesecurity |
    empty | 040 | other | read | 10
    g50 +read | 044 | other | read | 50
    g50 +read | 040 | other | read | 50,10
    g50 +read;g51 +read | 000 | other | read | 50,51
    g50 +write;g51 -write | 004 | other | execute |
    g50 +write;g51 -write | 044 | other | read |
    g99 +read;g50 +read | 000 | other | read |
    u4 +read;g50 -read | 000 | other | read |
    everyone -read;g50 +read | 777 | other | read |
    everyone +read;g50 +read;g51 +write | 000 | other | read,write | 51
    everyone +read;g50 -read;g51 +write | 000 | other | read,write | 50,51
    g50 -read [only];g51 ?read;g52 !read | 044 | other | read |
    group -read | 044 | other | read | 10
    group -read | 044 | member | read |
    group -read | 044 | root | read |
    g50 -writesecurity | 000 | owner | writesecurity |
    g50 -read | 000 | owner | read | 50
    damaged | 040 | other | read |
    u2 -read;everyone -read;foreign -read | 040 | lost | read |
    """)
}
