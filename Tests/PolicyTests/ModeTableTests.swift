// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Section 2 of the rules: what each right falls back to where there is no ACL.
@Suite struct ModeTableTests {
  @Test(arguments: rows)
  func modeBitsStandForRights(row: String) throws {
    let cells = try Table.cells(row, 5)
    let object = Object(
      uid: 1, gid: 10, mode: try Table.mode(cells[2]), kind: try Table.kind(cells[0]), zone: .user)
    let person = try Person(cells[3])
    let decision = decide(
      try Table.rights(cells[1]), on: object, by: person.credentials, isMember: person.membership)
    #expect(decision == (try Table.decision(cells[4])))
  }

  // kind | right | mode | who | answer
  static let rows = Table.rows(
    """
    file | read | 400 | owner | allow
    file | read | 377 | owner | mode
    file | read | 040 | member | allow
    file | read | 737 | member | mode
    file | read | 040 | extra | allow
    file | read | 737 | extra | mode
    file | read | 004 | other | allow
    file | read | 773 | other | mode
    file | read | 044 | lost | allow
    file | read | 040 | lost | mode
    file | read | 004 | lost | mode
    file | read | 000 | root | allow
    dir | list | 400 | owner | allow
    dir | list | 377 | owner | mode
    dir | list | 040 | member | allow
    dir | list | 737 | extra | mode
    dir | list | 004 | other | allow
    dir | list | 773 | other | mode
    file | write | 200 | owner | allow
    file | write | 577 | owner | mode
    file | write | 020 | member | allow
    file | write | 757 | member | mode
    file | write | 020 | extra | allow
    file | write | 757 | extra | mode
    file | write | 002 | other | allow
    file | write | 775 | other | mode
    file | write | 000 | root | allow
    dir | add_file | 200 | owner | allow
    dir | add_file | 577 | owner | mode
    dir | add_file | 020 | extra | allow
    dir | add_file | 757 | extra | mode
    dir | add_file | 002 | other | allow
    dir | add_file | 775 | other | mode
    file | execute | 100 | owner | allow
    file | execute | 677 | owner | mode
    file | execute | 010 | member | allow
    file | execute | 767 | member | mode
    file | execute | 001 | other | allow
    file | execute | 776 | other | mode
    file | execute | 666 | root | mode
    file | execute | 100 | root | allow
    file | execute | 010 | root | allow
    file | execute | 001 | root | allow
    dir | search | 100 | owner | allow
    dir | search | 677 | owner | mode
    dir | search | 010 | extra | allow
    dir | search | 767 | extra | mode
    dir | search | 001 | other | allow
    dir | search | 776 | other | mode
    dir | search | 000 | root | allow
    file | append | 200 | owner | allow
    file | append | 577 | owner | mode
    file | append | 020 | member | allow
    file | append | 775 | other | mode
    dir | add_subdirectory | 200 | owner | allow
    dir | add_subdirectory | 577 | owner | mode
    dir | add_subdirectory | 020 | member | allow
    dir | add_subdirectory | 757 | member | mode
    dir | add_subdirectory | 002 | other | allow
    dir | add_subdirectory | 775 | other | mode
    dir | delete_child | 200 | owner | allow
    dir | delete_child | 577 | owner | mode
    dir | delete_child | 020 | extra | allow
    dir | delete_child | 757 | extra | mode
    dir | delete_child | 002 | other | allow
    dir | delete_child | 775 | other | mode
    file | readattr | 000 | owner | allow
    file | readattr | 000 | member | allow
    file | readattr | 000 | other | allow
    file | readattr | 000 | lost | allow
    file | readsecurity | 000 | owner | allow
    file | readsecurity | 000 | member | allow
    file | readsecurity | 000 | other | allow
    file | synchronize | 000 | other | allow
    file | writeattr | 000 | owner | allow
    file | writeattr | 020 | member | allow
    file | writeattr | 757 | member | mode
    file | writeattr | 002 | other | allow
    file | writeattr | 775 | other | mode
    file | readextattr | 400 | owner | allow
    file | readextattr | 377 | owner | mode
    file | readextattr | 040 | member | allow
    file | readextattr | 737 | member | mode
    file | readextattr | 004 | other | allow
    file | readextattr | 773 | other | mode
    file | writeextattr | 200 | owner | allow
    file | writeextattr | 577 | owner | mode
    file | writeextattr | 020 | extra | allow
    file | writeextattr | 757 | extra | mode
    file | writeextattr | 002 | other | allow
    file | writeextattr | 775 | other | mode
    file | writesecurity | 000 | owner | allow
    file | writesecurity | 777 | member | ownership
    file | writesecurity | 777 | other | ownership
    file | writesecurity | 000 | root | allow
    file | chown | 777 | owner | ownership
    file | chown | 777 | member | ownership
    file | chown | 777 | other | ownership
    file | chown | 000 | root | allow
    file | chown,writesecurity | 777 | owner | ownership
    file | delete | 777 | owner | mode
    file | delete | 777 | other | mode
    file | delete | 000 | root | allow
    file | link | 000 | other | allow
    file | link | 000 | owner | allow
    file | nothing | 000 | other | allow
    file | read,write | 600 | owner | allow
    file | read,write | 466 | owner | mode
    file | read,write | 060 | member | allow
    file | read,write | 646 | member | mode
    file | read,write | 006 | other | allow
    file | read,write | 664 | other | mode
    file | read,execute | 005 | other | allow
    file | read,execute | 774 | other | mode
    file | read,readattr,readsecurity | 773 | other | mode
    dir | list,search | 500 | owner | allow
    dir | add_file,search | 676 | other | mode
    dir | add_file,search | 003 | other | allow
    special | read,write | 006 | other | allow
    special | write | 664 | other | mode
    special | execute | 666 | root | mode
    symlink | read | 777 | other | allow
    symlink | read | 700 | other | mode
    """)
}
