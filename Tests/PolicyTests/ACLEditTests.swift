// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// The changes that Mac's chmod makes to an ACL.
@Suite struct ACLEditTests {
  private func edited(_ acl: AccessControlList?, _ edit: ACLEdit) throws -> [String]? {
    Machine.text(try edit.applied(to: acl))
  }

  private func add(_ text: String, to acl: AccessControlList?) throws -> [String]? {
    try edited(acl, .add([Machine.entry(text)]))
  }

  /// One of each tier, in order.
  private func tiers() throws -> AccessControlList {
    try Machine.acl(
      "anna deny list", "anna allow list", "anna inherited deny list", "anna inherited allow list")
  }

  @Test func scoresMakeTheOrder() throws {
    #expect(try tiers().entries.map(\.score) == [1, 0, -4, -5])
    #expect(try tiers().isCanonical)
    let tiers = try tiers().entries
    for first in tiers.indices {
      for second in tiers.indices {
        #expect(AccessControlList([tiers[first], tiers[second]]).isCanonical == (first <= second))
      }
    }
    #expect(AccessControlList([]).isCanonical)
  }

  @Test(
    arguments: [
      ("bert deny list", 0), ("bert allow list", 1), ("bert deny list,inherited", 2),
      ("bert allow list,inherited", 3),
    ])
  func newEntryGoesToTheTopOfItsTier(text: String, index: Int) throws {
    let entry = try Machine.entry(text)
    let acl = try #require(try ACLEdit.add([entry]).applied(to: try tiers()))
    #expect(acl.entries.count == 5 && acl.entries[index] == entry)
    #expect(acl.isCanonical)
  }

  @Test func newEntryGoesWhereItsTierWouldBe() throws {
    #expect(
      try add("bert allow list", to: Machine.acl("anna deny list", "anna inherited deny list"))
        == ["user:anna deny list", "user:bert allow list", "user:anna inherited deny list"])
    #expect(
      try add("bert allow list,inherited", to: Machine.acl("anna deny list"))?.last?.contains("bert") == true
    )
    #expect(try add("anna allow list", to: nil) == ["user:anna allow list"])
    #expect(try add("anna allow list", to: AccessControlList([])) == ["user:anna allow list"])
  }

  @Test func sameOfTheSameIsJoined() throws {
    let acl = try Machine.acl("anna allow list", "bert allow search", "anna inherited allow list")
    #expect(
      try add("anna allow add_file,search", to: acl)
        == [
          "user:anna allow list,add_file,search", "user:bert allow search", "user:anna inherited allow list",
        ])
    #expect(
      try add("anna allow delete,inherited", to: acl)?.last == "user:anna inherited allow list,delete")
    // Another verb, other inheritance: another entry.
    #expect(try add("anna deny list", to: acl)?.count == 4)
    #expect(try add("anna allow list,file_inherit", to: acl)?.count == 4)
    #expect(try add("anna allow list", to: acl) == Machine.text(acl))
  }

  @Test func ofSeveralThatFitTheLastIsJoined() throws {
    let acl = try Machine.acl("anna allow list", "anna allow search")
    #expect(
      try add("anna allow chown", to: acl) == ["user:anna allow list", "user:anna allow search,chown"])
    #expect(try add("anna allow list", to: acl) == Machine.text(acl))
  }

  @Test func severalAreAddedOneAfterTheOther() throws {
    let entries = try ["anna allow list", "bert deny list", "anna allow search"].map { try Machine.entry($0) }
    #expect(try edited(nil, .add(entries)) == ["user:bert deny list", "user:anna allow list,search"])
  }

  @Test func outOfOrderNothingIsAdded() throws {
    let acl = try Machine.acl("anna allow list", "anna deny search")
    #expect(throws: ACLEditError.notCanonical) { try add("bert allow list", to: acl) }
    #expect(throws: ACLEditError.notCanonical) { try add("anna allow list", to: acl) }
  }

  @Test func insertedExactlyThereAndNotJoined() throws {
    let acl = try Machine.acl("anna deny list", "anna allow list")
    let entry = try Machine.entry("anna allow list")
    for index in 0...2 {
      let result = try #require(try ACLEdit.insert([entry], at: index).applied(to: acl))
      #expect(result.entries.count == 3 && result.entries[index] == entry)
    }
    #expect(throws: ACLEditError.noEntry(at: 3, count: 2)) { try edited(acl, .insert([entry], at: 3)) }
    #expect(throws: ACLEditError.noEntry(at: -1, count: 2)) { try edited(acl, .insert([entry], at: -1)) }
    // Where there is no ACL, any number means the first.
    #expect(try edited(nil, .insert([entry], at: 7)) == ["user:anna allow list"])
    #expect(try edited(AccessControlList([]), .insert([entry], at: 7)) == ["user:anna allow list"])
  }

  @Test func subtractionTakesAwayWhatIsSaid() throws {
    let acl = try Machine.acl(
      "anna deny list", "anna allow list,search", "bert allow list", "anna inherited allow list,search",
      "anna allow list,file_inherit")
    func without(_ text: String) throws -> [String]? { try edited(acl, .subtract([Machine.entry(text)])) }
    // Every entry of the same principal and verb, inherited or not.
    #expect(
      try without("anna allow list") == [
        "user:anna deny list", "user:anna allow search", "user:bert allow list",
        "user:anna inherited allow search",
      ])
    // Exactly the same goes; what is not said is no matter.
    #expect(
      try without("anna allow list,search") == ["user:anna deny list", "user:bert allow list"])
    #expect(try without("anna deny list,chown,delete")?.count == 4)
    // Inheritance is taken away too.
    #expect(
      try without("anna allow search,inherited,file_inherit") == [
        "user:anna deny list", "user:anna allow list", "user:bert allow list", "user:anna allow list",
        "user:anna allow list",
      ])
    let absent = try Machine.entry("bert deny list")
    #expect(throws: ACLEditError.nothingMatches(absent)) { try edited(acl, .subtract([absent])) }
    #expect(throws: ACLEditError.noACL) { try edited(nil, .subtract([absent])) }
    #expect(throws: ACLEditError.noACL) { try edited(AccessControlList([]), .subtract([absent])) }
    // All or nothing.
    let present = try Machine.entry("bert allow list")
    #expect(throws: ACLEditError.nothingMatches(absent)) {
      try edited(acl, .subtract([present, absent]))
    }
  }

  @Test func rightsThatHaveNoWordAreNotLost() throws {
    let generic = AccessControlEntry(.deny, .everyone, [.read, .genericWrite])
    let noise = AccessControlEntry(.deny, .everyone, [.read, .synchronize])
    let acl = AccessControlList([generic, noise])
    let left = try ACLEdit.subtract([try Machine.entry("everyone deny read")]).applied(to: acl)
    #expect(left?.entries == [AccessControlEntry(.deny, .everyone, .genericWrite)])
  }

  @Test func removedAndReplacedByNumber() throws {
    let acl = try Machine.acl("anna deny list", "anna allow list")
    let entry = try Machine.entry("bert allow chown")
    #expect(try edited(acl, .remove(at: 0)) == ["user:anna allow list"])
    #expect(try edited(acl, .remove(at: 1)) == ["user:anna deny list"])
    #expect(
      try edited(acl, .replace(at: 0, with: [entry])) == ["user:bert allow chown", "user:anna allow list"])
    #expect(
      try edited(acl, .replace(at: 1, with: [entry])) == ["user:anna deny list", "user:bert allow chown"])
    #expect(try edited(nil, .replace(at: 5, with: [entry])) == ["user:bert allow chown"])
    for edit in [ACLEdit.remove(at: 2), .remove(at: -1), .replace(at: 2, with: [entry])] {
      #expect(throws: ACLEditError.self) { try edit.applied(to: acl) }
    }
    #expect(throws: ACLEditError.noACL) { try ACLEdit.remove(at: 0).applied(to: nil) }
  }

  @Test func withoutItsLastEntryTheACLIsEmptyAndThere() throws {
    let one = try Machine.acl("anna allow list,inherited")
    let empty = AccessControlList([])
    #expect(try ACLEdit.remove(at: 0).applied(to: one) == empty)
    #expect(try ACLEdit.subtract(one.entries).applied(to: one) == empty)
    #expect(try ACLEdit.removeInherited.applied(to: one) == empty)
    #expect(try ACLEdit.removeACL.applied(to: one) == nil)
    #expect(try ACLEdit.removeACL.applied(to: nil) == nil)
  }

  @Test func whatWasInheritedIsOwnedOrGoes() throws {
    let acl = try tiers()
    #expect(
      try edited(acl, .disown) == [
        "user:anna deny list", "user:anna allow list", "user:anna deny list", "user:anna allow list",
      ])
    #expect(try edited(acl, .removeInherited) == ["user:anna deny list", "user:anna allow list"])
    for edit in [ACLEdit.disown, .removeInherited] {
      #expect(throws: ACLEditError.noACL) { try edit.applied(to: nil) }
      #expect(throws: ACLEditError.noACL) { try edit.applied(to: AccessControlList([])) }
    }
  }

  @Test func wordsOfTheWholeACLStayUnlessItIsReplaced() throws {
    let acl = AccessControlList(try tiers().entries, flags: .noInherit)
    let entry = try Machine.entry("bert allow chown")
    for edit in [ACLEdit.add([entry]), .disown, .removeInherited, .remove(at: 0)] {
      #expect(try edit.applied(to: acl)?.flags == .noInherit)
    }
    #expect(try ACLEdit.replaceAll([entry]).applied(to: acl) == AccessControlList([entry]))
  }

  @Test func atMost128() throws {
    let entries = (0..<128).map { AccessControlEntry(.permit, .user($0), .read) }
    let full = AccessControlList(entries)
    let other = AccessControlEntry(.permit, .everyone, .read)
    #expect(try ACLEdit.replaceAll(entries).applied(to: nil)?.entries.count == 128)
    #expect(try ACLEdit.replace(at: 127, with: [other]).applied(to: full)?.entries.count == 128)
    // What is joined needs no room.
    let more = AccessControlEntry(.permit, .user(9), .write)
    #expect(try ACLEdit.add([more]).applied(to: full)?.entries[9].rights == [.read, .write])
    for edit in [
      ACLEdit.add([other]), .insert([other], at: 0), .replaceAll(entries + [other]),
      .replace(at: 0, with: [other, other]),
    ] {
      #expect(throws: ACLEditError.tooManyEntries(129)) { try edit.applied(to: full) }
    }
  }
}
