// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// ACLs as text: the grammar of Mac's chmod, and the lines of `ls -le`.
@Suite struct EntryTextTests {
  private typealias Inheritance = AccessControlEntry.Inheritance
  private let names = Machine.names

  private static let rights: [(word: String, right: Rights)] = [
    ("read", .read), ("list", .read), ("write", .write), ("add_file", .write), ("execute", .execute),
    ("search", .execute), ("delete", .delete), ("append", .append), ("add_subdirectory", .append),
    ("delete_child", .deleteChild), ("readattr", .readAttributes), ("writeattr", .writeAttributes),
    ("readextattr", .readExtended), ("writeextattr", .writeExtended), ("readsecurity", .readSecurity),
    ("writesecurity", .writeSecurity), ("chown", .takeOwnership),
  ]

  private static let flags: [(word: String, flag: AccessControlEntry.Inheritance)] = [
    ("inherited", .inherited), ("file_inherit", .fileInherit), ("directory_inherit", .directoryInherit),
    ("limit_inherit", .limitInherit), ("only_inherit", .onlyInherit),
  ]

  @Test(arguments: rights) func rightsAreReadByEitherName(word: String, right: Rights) throws {
    #expect(try Machine.entry("user:anna allow \(word)") == AccessControlEntry(.permit, .user(501), right))
    #expect(try Machine.entry("user:anna:deny:\(word)") == AccessControlEntry(.deny, .user(501), right))
    #expect(EntryWords.all.contains(word))
  }

  @Test(arguments: flags)
  func inheritanceStandsAmongTheRights(word: String, flag: AccessControlEntry.Inheritance) throws {
    #expect(
      try Machine.entry("group:staff allow \(word),read")
        == AccessControlEntry(.permit, .group(20), .read, flag))
    #expect(
      try Machine.entry("group:staff allow read,\(word),write")
        == AccessControlEntry(.permit, .group(20), [.read, .write], flag))
    #expect(
      try Machine.entry("group:staff allow \(word)") == AccessControlEntry(.permit, .group(20), [], flag))
    #expect(EntryWords.all.contains(word))
  }

  @Test func messagesNameEveryWordOnce() {
    #expect(EntryWords.all.count == Self.rights.count + Self.flags.count)
    #expect(Set(EntryWords.all).count == EntryWords.all.count)
  }

  @Test(
    arguments: [
      ("user:anna allow read", .user(501), .permit), ("group:staff deny read", .group(20), .deny),
      // A user of that name, or else a group.
      ("anna allow read", .user(501), .permit), ("staff allow read", .group(20), .permit),
      ("anna:allow:read", .user(501), .permit), ("anna:allow read", .user(501), .permit),
      // Empty words are passed over.
      ("anna allow ,read,,read,", .user(501), .permit),
      // A blank in the name, where a ':' ends it.
      ("User 1:allow:read", .user(503), .permit), ("user:User 1:deny:read", .user(503), .deny),
      ("user:User 1:deny read", .user(503), .deny),
      // Groups that are no groups.
      ("group:everyone deny read", .everyone, .deny), ("everyone deny read", .everyone, .deny),
      ("group:owner allow read", .owner, .permit), ("owner allow read", .owner, .permit),
      ("group:group allow read", .owningGroup, .permit), ("group allow read", .owningGroup, .permit),
      ("group:nobody allow read", .nobody, .permit),
      // Every machine has a user of that name.
      ("nobody allow read", .user(65534), .permit), ("user:nobody allow read", .user(65534), .permit),
      // Ids, where no account has the number for a name.
      ("user:1001 allow read", .user(1001), .permit), ("group:12 allow read", .group(12), .permit),
      ("user:100 allow read", .user(7), .permit), ("group:900 allow read", .group(900), .permit),
      ("group:man allow read", .group(12), .permit), ("user:4294967294 deny read", .user(0xffff_fffe), .deny),
      // The numbers that ACLs hold.
      ("user:FFFFEEEE-DDDD-CCCC-BBBB-AAAA000001F5 allow read", .user(501), .permit),
      ("group:abcdefab-cdef-abcd-efab-cdef0000000c deny read", .everyone, .deny),
      (
        "00112233-4455-6677-8899-AABBCCDDEEFF allow read",
        Principal(high: 0x0011_2233_4455_6677, low: 0x8899_aabb_ccdd_eeff), .permit
      ),
      // As it is printed.
      (" 0: user:anna allow read", .user(501), .permit), ("12: anna:allow:read", .user(501), .permit),
    ] as [(String, Principal, AccessControlEntry.Kind)])
  func principalsAndSeparators(text: String, principal: Principal, kind: AccessControlEntry.Kind) throws {
    #expect(try Machine.entry(text) == AccessControlEntry(kind, principal, .read))
  }

  @Test(
    arguments: [
      ("", .noName), (" anna allow read", .noName), ("user: allow read", .noName), (":allow:read", .noName),
      ("otto allow read", .unknownName("otto", .either)),
      ("group:anna allow read", .unknownName("anna", .group)),
      ("user:staff allow read", .unknownName("staff", .user)),
      ("user:everyone deny read", .unknownName("everyone", .user)),
      ("1001 allow read", .unknownName("1001", .either)),
      ("user:4294967295 allow read", .unknownName("4294967295", .user)),
      ("user:4294967296 allow read", .unknownName("4294967296", .user)),
      ("user:-1 allow read", .unknownName("-1", .user)), ("user:0x1 allow read", .unknownName("0x1", .user)),
      // Not enough of a UUID, too much, and what only looks like a digit.
      (
        "user:FFFFEEEE-DDDD-CCCC-BBBB-AAAA000001F allow read",
        .unknownName("FFFFEEEE-DDDD-CCCC-BBBB-AAAA000001F", .user)
      ),
      (
        "FFFFEEEE-DDDD-CCCC-BBBB-AAAA000001F50 allow read",
        .unknownName("FFFFEEEE-DDDD-CCCC-BBBB-AAAA000001F50", .either)
      ),
      (
        "FFFFEEEE-DDDD-CCCC-BBBB-AAAA0000+1F5 allow read",
        .unknownName("FFFFEEEE-DDDD-CCCC-BBBB-AAAA0000+1F5", .either)
      ),
      // The blank belongs to the name as soon as there is a ':' anywhere.
      ("anna allow read:write", .unknownName("anna allow read", .either)),
      ("anna", .unknownVerb("")), ("anna  allow read", .unknownVerb("")),
      ("anna permit read", .unknownVerb("permit")), ("anna Allow read", .unknownVerb("Allow")),
      ("anna audit read", .unknownVerb("audit")), ("anna inherited read", .unknownVerb("read")),
      ("anna allow", .noWords), ("anna allow ", .noWords), ("anna allow ,,", .noWords),
      ("anna allow read,fly", .unknownWord("fly")), ("anna allow read, write", .unknownWord(" write")),
      ("anna allow READ", .unknownWord("READ")), ("anna allow full_control", .unknownWord("full_control")),
      ("anna allow rwx", .unknownWord("rwx")), ("anna allow synchronize", .unknownWord("synchronize")),
    ] as [(String, EntryTextError.Reason)])
  func whatIsNoEntry(text: String, reason: EntryTextError.Reason) {
    #expect(throws: EntryTextError(text, reason)) { try Machine.entry(text) }
  }

  @Test func severalEntriesStandInLines() throws {
    let text = "\nuser:anna allow read\n\n 1: group:everyone inherited deny delete\r\n"
    #expect(
      try AccessControlList.entries(text: text, names: names) == [
        AccessControlEntry(.permit, .user(501), .read),
        AccessControlEntry(.deny, .everyone, .delete, .inherited),
      ])
    let line = "anna allow read\n"
    let most = String(repeating: line, count: 128)
    #expect(try AccessControlList.entries(text: most, names: names).count == 128)
    for (text, reason) in [
      ("", .noEntries), ("\n\n", .noEntries), (most + line, .tooManyEntries),
      (String(repeating: "\n", count: 65536), .noEntries), (String(repeating: "\n", count: 65537), .tooLong),
    ] as [(String, EntryTextError.Reason)] {
      #expect(throws: EntryTextError("", reason)) { try AccessControlList.entries(text: text, names: names) }
    }
    // The message names the line that is wrong.
    #expect(throws: EntryTextError("anna allow fly", .unknownWord("fly"))) {
      try AccessControlList.entries(text: "anna allow read\nanna allow fly\n", names: names)
    }
  }

  @Test func everythingIsPrintedInItsOrder() {
    let all = AccessControlEntry(
      .permit, .user(501), .known, [.inherited, .fileInherit, .directoryInherit, .limitInherit, .onlyInherit])
    let acl = AccessControlList([all, AccessControlEntry(.deny, .everyone, .delete)])
    #expect(
      acl.lines(isDirectory: true, names: names) == [
        " 0: user:anna inherited allow list,add_file,search,delete,add_subdirectory,delete_child,readattr,"
          + "writeattr,readextattr,writeextattr,readsecurity,writesecurity,chown,file_inherit,"
          + "directory_inherit,limit_inherit,only_inherit",
        " 1: group:everyone deny delete",
      ])
    #expect(
      acl.lines(isDirectory: false, names: names).first
        == " 0: user:anna inherited allow read,write,execute,delete,append,readattr,writeattr,readextattr,"
        + "writeextattr,readsecurity,writesecurity,chown,limit_inherit")
    #expect(
      acl.lines(isDirectory: false, names: names, numeric: true).last
        == " 1: ABCDEFAB-CDEF-ABCD-EFAB-CDEF0000000C deny delete")
  }

  @Test(
    arguments: [
      (.user(501), "user:anna"), (.user(0), "user:root"), (.user(503), "user:User 1"),
      (.group(20), "group:staff"),
      (.everyone, "group:everyone"), (.owner, "group:owner"), (.owningGroup, "group:group"),
      (.nobody, "group:nobody"), (.group(12), "group:man"),
      // Nobody has the number.
      (.user(77), "FFFFEEEE-DDDD-CCCC-BBBB-AAAA0000004D"),
      (.group(77), "ABCDEFAB-CDEF-ABCD-EFAB-CDEF0000004D"),
      // The machine's own groups of such names must not look like everyone and nobody.
      (.group(900), "ABCDEFAB-CDEF-ABCD-EFAB-CDEF00000384"),
      (.group(901), "ABCDEFAB-CDEF-ABCD-EFAB-CDEF00000385"),
      (Principal(high: 1, low: 0xabcdef), "00000000-0000-0001-0000-000000ABCDEF"),
    ] as [(Principal, String)])
  func principalsArePrinted(principal: Principal, text: String) {
    #expect(principal.text(names: names) == text)
    #expect(Principal(uuid: principal.uuid) == principal)
    #expect(Principal(uuid: principal.uuid.lowercased()) == principal)
    #expect(principal.text(names: names, numeric: true) == principal.uuid)
  }

  /// What is printed is read as the same again, save what `ls` does not print and the blank in a name.
  @Test func whatIsPrintedIsReadAgain() throws {
    let principals: [Principal] = [
      .user(501), .user(77), .group(20), .group(77), .group(12), .group(900), .everyone, .owner, .owningGroup,
      .nobody, Principal(high: 3, low: 4),
    ]
    for principal in principals {
      for (word, right) in Self.rights {
        for (_, flag) in Self.flags {
          for kind in [AccessControlEntry.Kind.permit, .deny] {
            let entry = AccessControlEntry(kind, principal, right, flag)
            let line = AccessControlList([entry]).lines(isDirectory: true, names: names)[0]
            #expect(try Machine.entry(line) == entry, "\(word): \(line)")
          }
        }
      }
    }
  }
}
