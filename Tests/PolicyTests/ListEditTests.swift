// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// The changes that Mac's chmod makes to a list.
@Suite struct ListEditTests {
  private func edited(_ list: AccessControlList?, _ edit: ListEdit) throws -> [String]? {
    Machine.text(try edit.applied(to: list))
  }

  private func add(_ text: String, to list: AccessControlList?) throws -> [String]? {
    try edited(list, .add([Machine.entry(text)]))
  }

  /// One of each tier, in order.
  private func tiers() throws -> AccessControlList {
    try Machine.list(
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
    let list = try #require(try ListEdit.add([entry]).applied(to: try tiers()))
    #expect(list.entries.count == 5 && list.entries[index] == entry)
    #expect(list.isCanonical)
  }

  @Test func newEntryGoesWhereItsTierWouldBe() throws {
    #expect(
      try add("bert allow list", to: Machine.list("anna deny list", "anna inherited deny list"))
        == ["user:anna deny list", "user:bert allow list", "user:anna inherited deny list"])
    #expect(
      try add("bert allow list,inherited", to: Machine.list("anna deny list"))?.last?.contains("bert") == true
    )
    #expect(try add("anna allow list", to: nil) == ["user:anna allow list"])
    #expect(try add("anna allow list", to: AccessControlList([])) == ["user:anna allow list"])
  }

  @Test func sameOfTheSameIsJoined() throws {
    let list = try Machine.list("anna allow list", "bert allow search", "anna inherited allow list")
    #expect(
      try add("anna allow add_file,search", to: list)
        == [
          "user:anna allow list,add_file,search", "user:bert allow search", "user:anna inherited allow list",
        ])
    #expect(
      try add("anna allow delete,inherited", to: list)?.last == "user:anna inherited allow list,delete")
    // Another verb, other inheritance: another entry.
    #expect(try add("anna deny list", to: list)?.count == 4)
    #expect(try add("anna allow list,file_inherit", to: list)?.count == 4)
    #expect(try add("anna allow list", to: list) == Machine.text(list))
  }

  @Test func ofSeveralThatFitTheLastIsJoined() throws {
    let list = try Machine.list("anna allow list", "anna allow search")
    #expect(
      try add("anna allow chown", to: list) == ["user:anna allow list", "user:anna allow search,chown"])
    #expect(try add("anna allow list", to: list) == Machine.text(list))
  }

  @Test func severalAreAddedOneAfterTheOther() throws {
    let entries = try ["anna allow list", "bert deny list", "anna allow search"].map { try Machine.entry($0) }
    #expect(try edited(nil, .add(entries)) == ["user:bert deny list", "user:anna allow list,search"])
  }

  @Test func outOfOrderNothingIsAdded() throws {
    let list = try Machine.list("anna allow list", "anna deny search")
    #expect(throws: ListEditError.notCanonical) { try add("bert allow list", to: list) }
    #expect(throws: ListEditError.notCanonical) { try add("anna allow list", to: list) }
  }

  @Test func insertedExactlyThereAndNotJoined() throws {
    let list = try Machine.list("anna deny list", "anna allow list")
    let entry = try Machine.entry("anna allow list")
    for index in 0...2 {
      let result = try #require(try ListEdit.insert([entry], at: index).applied(to: list))
      #expect(result.entries.count == 3 && result.entries[index] == entry)
    }
    #expect(throws: ListEditError.noEntry(at: 3, count: 2)) { try edited(list, .insert([entry], at: 3)) }
    #expect(throws: ListEditError.noEntry(at: -1, count: 2)) { try edited(list, .insert([entry], at: -1)) }
    // Where there is no list, any number means the first.
    #expect(try edited(nil, .insert([entry], at: 7)) == ["user:anna allow list"])
    #expect(try edited(AccessControlList([]), .insert([entry], at: 7)) == ["user:anna allow list"])
  }

  @Test func subtractionTakesAwayWhatIsSaid() throws {
    let list = try Machine.list(
      "anna deny list", "anna allow list,search", "bert allow list", "anna inherited allow list,search",
      "anna allow list,file_inherit")
    func without(_ text: String) throws -> [String]? { try edited(list, .subtract([Machine.entry(text)])) }
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
    #expect(throws: ListEditError.nothingMatches(absent)) { try edited(list, .subtract([absent])) }
    #expect(throws: ListEditError.noList) { try edited(nil, .subtract([absent])) }
    #expect(throws: ListEditError.noList) { try edited(AccessControlList([]), .subtract([absent])) }
    // All or nothing.
    let present = try Machine.entry("bert allow list")
    #expect(throws: ListEditError.nothingMatches(absent)) {
      try edited(list, .subtract([present, absent]))
    }
  }

  @Test func rightsThatHaveNoWordAreNotLost() throws {
    let generic = AccessControlEntry(.deny, .everyone, [.read, .genericWrite])
    let noise = AccessControlEntry(.deny, .everyone, [.read, .synchronize])
    let list = AccessControlList([generic, noise])
    let left = try ListEdit.subtract([try Machine.entry("everyone deny read")]).applied(to: list)
    #expect(left?.entries == [AccessControlEntry(.deny, .everyone, .genericWrite)])
  }

  @Test func removedAndReplacedByNumber() throws {
    let list = try Machine.list("anna deny list", "anna allow list")
    let entry = try Machine.entry("bert allow chown")
    #expect(try edited(list, .remove(at: 0)) == ["user:anna allow list"])
    #expect(try edited(list, .remove(at: 1)) == ["user:anna deny list"])
    #expect(
      try edited(list, .replace(at: 0, with: [entry])) == ["user:bert allow chown", "user:anna allow list"])
    #expect(
      try edited(list, .replace(at: 1, with: [entry])) == ["user:anna deny list", "user:bert allow chown"])
    #expect(try edited(nil, .replace(at: 5, with: [entry])) == ["user:bert allow chown"])
    for edit in [ListEdit.remove(at: 2), .remove(at: -1), .replace(at: 2, with: [entry])] {
      #expect(throws: ListEditError.self) { try edit.applied(to: list) }
    }
    #expect(throws: ListEditError.noList) { try ListEdit.remove(at: 0).applied(to: nil) }
  }

  @Test func withoutItsLastEntryTheListIsEmptyAndThere() throws {
    let one = try Machine.list("anna allow list,inherited")
    let empty = AccessControlList([])
    #expect(try ListEdit.remove(at: 0).applied(to: one) == empty)
    #expect(try ListEdit.subtract(one.entries).applied(to: one) == empty)
    #expect(try ListEdit.removeInherited.applied(to: one) == empty)
    #expect(try ListEdit.removeList.applied(to: one) == nil)
    #expect(try ListEdit.removeList.applied(to: nil) == nil)
  }

  @Test func whatWasInheritedIsOwnedOrGoes() throws {
    let list = try tiers()
    #expect(
      try edited(list, .disown) == [
        "user:anna deny list", "user:anna allow list", "user:anna deny list", "user:anna allow list",
      ])
    #expect(try edited(list, .removeInherited) == ["user:anna deny list", "user:anna allow list"])
    for edit in [ListEdit.disown, .removeInherited] {
      #expect(throws: ListEditError.noList) { try edit.applied(to: nil) }
      #expect(throws: ListEditError.noList) { try edit.applied(to: AccessControlList([])) }
    }
  }

  @Test func wordsOfTheWholeListStayUnlessItIsReplaced() throws {
    let list = AccessControlList(try tiers().entries, flags: .noInherit)
    let entry = try Machine.entry("bert allow chown")
    for edit in [ListEdit.add([entry]), .disown, .removeInherited, .remove(at: 0)] {
      #expect(try edit.applied(to: list)?.flags == .noInherit)
    }
    #expect(try ListEdit.replaceAll([entry]).applied(to: list) == AccessControlList([entry]))
  }

  @Test func atMost128() throws {
    let entries = (0..<128).map { AccessControlEntry(.permit, .user($0), .read) }
    let full = AccessControlList(entries)
    let other = AccessControlEntry(.permit, .everyone, .read)
    #expect(try ListEdit.replaceAll(entries).applied(to: nil)?.entries.count == 128)
    #expect(try ListEdit.replace(at: 127, with: [other]).applied(to: full)?.entries.count == 128)
    // What is joined needs no room.
    let more = AccessControlEntry(.permit, .user(9), .write)
    #expect(try ListEdit.add([more]).applied(to: full)?.entries[9].rights == [.read, .write])
    for edit in [
      ListEdit.add([other]), .insert([other], at: 0), .replaceAll(entries + [other]),
      .replace(at: 0, with: [other, other]),
    ] {
      #expect(throws: ListEditError.tooManyEntries(129)) { try edit.applied(to: full) }
    }
  }
}
