// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What a kernel is told of names in a store that ignores case, and what it is told to forget.
@Suite struct KernelSpellingTests {
  let tree: Tree
  var view: View { tree.view }

  init() throws {
    tree = try Tree { $0.ignoresCase = true }
    tree.connection.canDrop.store(true, ordering: .relaxed)
  }

  @Test func otherSpellingsAreNotKept() throws {
    try view.make("Users/Shared/foo")
    #expect(try view.find("Users/Shared/foo").validity > 0)
    #expect(try view.find("Users/Shared/FOO").validity == 0)
    // Nor is the stored one from then on, or a removal by another one would leave it.
    #expect(try view.find("Users/Shared/foo").validity == 0)
    let parent = try view.node("Users/Shared")
    let linked = try "bar".withName { (name) throws(Errno) in
      try view.link(try view.node("Users/Shared/foo"), as: name, in: parent, by: .root)
    }
    #expect(linked.validity == 0)
    // A directory has one name in a kernel.
    try view.makeDirectory("Users/Shared/Sub")
    #expect(try view.find("Users/Shared/SUB").validity == 0)
    #expect(try view.find("Users/Shared/Sub").validity > 0)
  }

  /// For how long the kernel may keep that a name is missing.
  private func absence(of path: String, in view: View? = nil) throws -> Double? {
    let view = view ?? self.view
    let names = path.split(separator: "/").map(String.init)
    let parent = try view.node(names.dropLast().joined(separator: "/"))
    return try (names.last ?? "").withName { (name) throws(Errno) -> Double? in
      do throws(Errno) {
        let entry = try view.lookup(name, in: parent, by: .root)
        return entry.node == nil ? entry.validity : nil
      } catch .ENOENT {
        return 0
      }
    }
  }

  /// A kernel would not see that another spelling is made of what it knows as missing.
  @Test(arguments: ["make", "directory", "link", "rename"])
  func anotherSpellingOfWhatWasMissingIsFound(how: String) throws {
    try view.make("Users/Shared/other")
    #expect(try absence(of: "Users/Shared/FOO") == Absences.validity)
    _ = tree.connection.take()
    func add(_ name: String) throws {
      switch how {
      case "make": try view.make("Users/Shared/" + name)
      case "directory": try view.makeDirectory("Users/Shared/" + name)
      case "rename": try view.rename("Users/Shared/other", to: "Users/Shared/" + name)
      default:
        let parent = try view.node("Users/Shared")
        _ = try name.withName { (name) throws(Errno) in
          try view.link(try view.node("Users/Shared/other"), as: name, in: parent, by: .root)
        }
      }
    }
    try add("foo")
    #expect(tree.connection.take().contains(.entries))
    #expect(try absence(of: "Users/Shared/FOO") == nil, "it is there")
  }

  /// The usual case costs nothing: what is looked for is made as it was looked for.
  @Test func theSameSpellingWithdrawsNothing() throws {
    #expect(try absence(of: "Users/Shared/foo") == Absences.validity)
    #expect(try absence(of: "Users/Shared/bar") == Absences.validity)
    _ = tree.connection.take()
    try view.make("Users/Shared/foo")
    try view.make("Users/Shared/BARS")
    #expect(!tree.connection.take().contains(.entries))
    try view.remove("Users/Shared/foo")
    _ = tree.connection.take()
    // The kernel knows nothing of it any more.
    try view.make("Users/Shared/FOO")
    #expect(!tree.connection.take().contains(.entries))
  }

  /// What is added under a name that a rule knows gets the rule's spelling.
  @Test func namesOfRulesAreNotKeptAsMissing() throws {
    try view.makeDirectory("Users/ada")
    #expect(try absence(of: "Users/ada/Desktop") == 0)
    #expect(try absence(of: "Users/ada/desktop") == 0)
    #expect(try absence(of: "Users/ada/other") == Absences.validity)
  }

  @Test func absencesOfOtherStoresAreKeptAsEver() throws {
    let tree = try Tree()
    #expect(try absence(of: "Users/Shared/foo", in: tree.view).map { $0 > 0 } == true)
    _ = tree.connection.take()
    try tree.view.make("Users/Shared/FOO")
    #expect(!tree.connection.take().contains(.entries))
  }

  /// What was told before another spelling was asked for is dropped; where it is in use, a removal by that
  /// other spelling withdraws the names.
  @Test(arguments: [false, true]) func theStoredOneIsForgotten(isInUse: Bool) throws {
    let node = try view.make("Users/Shared/foo")
    _ = try view.find("Users/Shared/foo")
    if isInUse { tree.connection.used.withLock { _ = $0.insert(node) } }
    _ = tree.connection.take()
    _ = try view.find("Users/Shared/FOO")
    #expect(tree.connection.take().contains(.drop([node])))
    try view.remove("Users/Shared/FOO")
    #expect(tree.connection.take().contains(.entries) == isInUse)
  }

  @Test(arguments: ["remove", "rename", "replace"]) func soItIsWhereNothingCanBeDropped(how: String) throws {
    tree.connection.canDrop.store(false, ordering: .relaxed)
    try view.make("Users/Shared/foo")
    try view.make("Users/Shared/other")
    _ = try view.find("Users/Shared/foo")
    _ = try view.find("Users/Shared/FOO")
    _ = tree.connection.take()
    switch how {
    case "remove": try view.remove("Users/Shared/FOO")
    case "rename": try view.rename("Users/Shared/FOO", to: "Users/Shared/bar")
    default: try view.rename("Users/Shared/other", to: "Users/Shared/FOO")
    }
    #expect(tree.connection.take().contains(.entries))
  }

  /// The kernel moves what it knows to the name that was asked for, and the directory has another one.
  @Test func standardNamesAreWithdrawnFromWhereTheyAreNot() throws {
    try view.makeDirectory("Users/ada")
    try view.makeDirectory("Users/ada/x")
    _ = try view.find("Users/ada/x")
    _ = tree.connection.take()
    try view.rename("Users/ada/x", to: "Users/ada/DESKTOP")
    #expect(tree.connection.take().contains(.entries))
    let opened = try TemporaryDirectory.open(tree.path("Users/ada"))
    #expect(try opened.fd.entries().map { String(decoding: $0.name, as: UTF8.self) } == ["Desktop"])
  }
}

@Suite struct AbsencesTests {
  private func with(_ name: String, _ body: (NameKey) -> Void) {
    Array(name.utf8).withUnsafeBufferPointer { if let key = NameKey($0) { body(key) } }
  }

  private func note(_ absences: inout Absences, _ name: String, _ inode: UInt64 = 1, at now: UInt32) -> Bool {
    var isNoted = false
    with(name) { isNoted = absences.note($0, in: ObjectNumber(inode: inode, device: 1), at: now) }
    return isNoted
  }

  private func end(_ absences: inout Absences, _ name: String, _ inode: UInt64 = 1, at now: UInt32) -> Bool {
    var isOther = false
    with(name) { isOther = absences.end($0, in: ObjectNumber(inode: inode, device: 1), at: now) }
    return isOther
  }

  @Test func aNoteIsForgottenInTime() {
    var absences = Absences()
    #expect(!end(&absences, "foo", at: 99))
    #expect(note(&absences, "FOO", at: 100) && note(&absences, "BAR", at: 100))
    #expect(!end(&absences, "foo", 2, at: 101), "another directory")
    #expect(end(&absences, "foo", at: 112), "a kernel may have been told a moment ago")
    #expect(!end(&absences, "foo", at: 112), "and knows that it is there now")
    #expect(!end(&absences, "bar", at: 113))
  }

  @Test func severalSpellingsAreMissing() {
    var absences = Absences()
    #expect(note(&absences, "FOO", at: 1) && note(&absences, "Foo", at: 1) && note(&absences, "Foo", at: 1))
    #expect(end(&absences, "Foo", at: 1))
    #expect(note(&absences, "STRASSE", at: 1))
    #expect(end(&absences, "stra\u{DF}e", at: 1))
    #expect(note(&absences, "stra\u{DF}e", at: 1))
    #expect(end(&absences, "STRASSE", at: 1))
  }

  @Test func thereIsRoomForSoMany() {
    var absences = Absences()
    var noted: [String] = []
    for number in 0..<200_000 where note(&absences, "name\(number)", at: 50) { noted.append("name\(number)") }
    #expect(noted.count <= 32_768 && noted.count > 32_000)
    // Of a spelling 23 bits are noted: in one of 256 runs one of so many has the same as its other spelling.
    #expect(noted.count { !end(&absences, $0.uppercased(), at: 51) } <= 3)
    for number in 0..<200_000 { _ = note(&absences, "name\(number)", at: 60) }
    #expect(note(&absences, "other", at: 80))
  }
}

/// The index of spellings.
@Suite struct SpellingIndexTests {
  private func names(_ names: [String], changed: Int64 = 1, user: UInt32 = 1) -> DirectoryNames {
    let found = DirectoryNames(changed: changed, user: user)
    for name in names { insert(name, in: found) }
    return found
  }

  private func insert(_ name: String, in names: DirectoryNames) {
    Array(name.utf8).withUnsafeBufferPointer { names.insert($0) }
  }

  private func remove(_ name: String, from names: DirectoryNames) {
    Array(name.utf8).withUnsafeBufferPointer { if let key = NameKey($0) { names.remove(key) } }
  }

  private func find(_ name: String, in names: DirectoryNames) -> String? {
    let bytes = Array(name.utf8)
    return bytes.withUnsafeBufferPointer { buffer in
      guard let key = NameKey(buffer) else { return nil }
      return switch names.find(key) {
      case .same: name
      case .other(let spelling): String(decoding: spelling, as: UTF8.self)
      case nil: nil
      }
    }
  }

  private func number(_ inode: UInt64) -> ObjectNumber { ObjectNumber(inode: inode, device: 1) }

  @Test func namesAreFoundAmongMany() {
    let many = names((0..<20_000).map { "Name\($0)" })
    #expect(find("nAME777", in: many) == "Name777")
    #expect(find("nAME20000", in: many) == nil)
    for index in 0..<20_000 where index % 3 != 0 {
      remove("Name\(index)", from: many)
    }
    for round in 0..<20_000 {
      insert("x\(round % 7)", in: many)
      remove("x\(round % 7)", from: many)
    }
    #expect(many.count == 6667 && many.weight < 6667 * 40)
    #expect(find("NAME3", in: many) == "Name3")
    #expect(find("NAME4", in: many) == nil)
    // Of several that came past the daemon, the one that was asked for, or else the first.
    insert("NAME3", in: many)
    #expect(find("NAME3", in: many) == "NAME3" && find("Name3", in: many) == "Name3")
    #expect(find("name3", in: many) == "NAME3")
  }

  @Test func whatIsChangedWhileItIsReadCountsMore() throws {
    let index = SpellingIndex(bytes: 1 << 20)
    let directory = number(1)
    let reading = try #require(index.begin(directory, changed: 1))
    #expect(index.begin(directory, changed: 1) == nil, "somebody reads it")
    try "gone".withName { (gone) throws(Errno) in
      try "New".withName { (new) throws(Errno) in
        index.note(removed: gone, added: nil, in: directory, changed: 2)
        index.note(removed: nil, added: new, in: directory, changed: 3)
      }
    }
    index.end(reading, of: directory, names(["gone", "stays"]))
    #expect(answer(index, "GONE", directory, 3) == "free")
    #expect(answer(index, "new", directory, 3) == "New")
    #expect(answer(index, "STAYS", directory, 3) == "stays")
    #expect(answer(index, "STAYS", directory, 4) == "unknown", "it was changed in some other way")
    let other = try #require(index.begin(directory, changed: 4))
    index.forget(directory)
    index.end(other, of: directory, names([]))
    #expect(answer(index, "STAYS", directory, 1) == "unknown", "nobody knows what it read")
  }

  @Test func whoTakesMostGivesUp() throws {
    let index = SpellingIndex(bytes: 64 << 10)
    let long = String(repeating: "x", count: 200)
    func learn(_ inode: UInt64, _ user: UInt32, _ count: Int) throws {
      let reading = try #require(index.begin(number(inode), changed: 1))
      index.end(reading, of: number(inode), names((0..<count).map { long + "\($0)" }, user: user))
    }
    try learn(1, 1, 3)
    for inode in 2..<500 { try learn(UInt64(inode), 2, 20) }
    #expect(index.size.weight <= 64 << 10)
    #expect(answer(index, "y", number(1), 1) == "free", "another user's is known still")
    #expect(answer(index, "y", number(499), 1) == "free" && answer(index, "y", number(2), 1) == "unknown")
    // What would take more than half of all is not kept.
    try learn(1000, 3, 400)
    #expect(answer(index, "y", number(1000), 1) == "unknown")
    for inode in 1..<1001 { index.forget(number(UInt64(inode))) }
    #expect(index.size.weight == 0 && index.size.directories == 0)
  }

  /// No name more than can be told apart in time, whether its maker has looked before or not.
  @Test(arguments: [false, true])
  func aDirectoryIsFullAtSomeTime(looksFirst: Bool) throws {
    let tree = try Tree {
      $0.ignoresCase = true
      $0.spellingBytes = 8 << 10
    }
    var count = 0
    var error: Errno?
    while error == nil, count < 1000 {
      do throws(Errno) {
        if looksFirst { _ = try? tree.view.find("Users/Shared/d\(count)") }
        try tree.view.makeDirectory("Users/Shared/d\(count)")
        count += 1
      } catch let caught {
        error = caught
      }
    }
    #expect(error == .ENOSPC && count > 50 && count < 200)
    #expect(try tree.view.find("Users/Shared/D7").validity == 0)
    // It is full for the one whose names those are.
    #expect(throws: Errno.ENOSPC) { try tree.view.makeDirectory("Users/Shared/more") }
    for number in 0..<(ProcessID.user == 0 ? 20 : 0) {
      if looksFirst { _ = try? tree.view.find("Users/Shared/own\(number)", by: .alice) }
      try tree.view.makeDirectory("Users/Shared/own\(number)", by: .alice)
    }
    if ProcessID.user == 0 {
      #expect(try tree.view.node("Users/Shared/own3") == tree.view.node("Users/Shared/OWN3"))
    }
    #expect(throws: Errno.ENOSPC) { try tree.view.makeDirectory("Users/Shared/more") }
    try tree.view.remove("Users/Shared/D7", directory: true)
    #expect(try tree.view.node("Users/Shared/d8") == tree.view.node("Users/Shared/D8"))
  }

  /// A directory that holds more names than can be known is searched in its user's turn, each time.
  @Test func whoSearchesAFullDirectoryWaits() throws {
    let tree = try Tree {
      $0.ignoresCase = true
      $0.spellingBytes = 8 << 10
    }
    // They came past the daemon.
    let directory = try TemporaryDirectory.open(tree.shared)
    let long = String(repeating: "n", count: 240)
    for number in 0..<4000 {
      try "\(long)\(number)".withName { (name) throws(Errno) in
        _ = try directory.fd.open(name, O_CREAT | O_WRONLY, mode: 0o600)
      }
    }
    let status = try directory.fd.status()
    try #require(status.st_size >= 256 << 10)
    let index = try #require(tree.volume.spellings)
    let caller = Caller(uid: 0, gid: 0, pid: 0, request: RequestID(7))
    for _ in 0..<2 {
      #expect(throws: Errno.awaitsConsent) { try tree.view.find("Users/Shared/missing", by: caller) }
      #expect(index.wants(caller.request))
      tree.volume.readSpellings(in: directory.fd, ObjectNumber(status), for: 0)
      index.giveTurn(to: caller.request)
      #expect(throws: Errno.ENOENT) { try tree.view.find("Users/Shared/missing", by: caller) }
      index.giveTurn(to: caller.request)
      let found = long.uppercased() + "7"
      #expect(try tree.view.find("Users/Shared/\(found)", by: caller).node != nil)
    }
  }

  /// Nobody has a directory read again and again by giving it other times.
  @Test func timesThatAreSetAreNoChange() throws {
    let tree = try Tree { $0.ignoresCase = true }
    try tree.view.makeDirectory("Users/Shared/d")
    #expect(throws: Errno.ENOENT) { try tree.view.find("Users/Shared/x") }
    let index = try #require(tree.volume.spellings)
    let node = try tree.view.node("Users/Shared")
    let number = try #require(tree.view.nodes.number(of: node))
    var change = AttributeChange()
    change.modification = .now
    let changed = try tree.view.setAttributes(of: node, handle: nil, to: change, by: .root)
    #expect(index.knows(number, changed: changed.status.st_mtim.nanoseconds))
    #expect(answer(index, "D", number, changed.status.st_mtim.nanoseconds) == "d")
  }

  /// A daemon that changes names in any other way than through a view.
  @Test func changesPastTheViewsAreSeen() throws {
    let tree = try Tree { $0.ignoresCase = true }
    #expect(throws: Errno.ENOENT) { try tree.view.find("Users/Shared/x") }
    let directory = try TemporaryDirectory.open(tree.shared)
    try directory.fd.makeDirectory("Past", mode: 0o700)
    #expect(try tree.view.find("Users/Shared/PAST").node != nil)
    try tree.volume.changeNames(in: directory.fd) { () throws(Errno) in
      try directory.fd.makeDirectory("Own", mode: 0o700)
    }
    #expect(try tree.view.find("Users/Shared/OWN").node != nil)
    #expect(throws: Errno.EEXIST) { try tree.view.makeDirectory("Users/Shared/oWN") }
  }

  private func answer(_ index: SpellingIndex, _ name: String, _ directory: ObjectNumber, _ changed: Int64)
    -> String
  {
    let bytes = Array(name.utf8)
    return bytes.withUnsafeBufferPointer { buffer in
      guard let key = NameKey(buffer) else { return "no name" }
      return switch index.spelling(of: key, in: directory, changed: changed) {
      case .unknown: "unknown"
      case .free: "free"
      case .same: name
      case .other(let stored): String(decoding: stored, as: UTF8.self)
      }
    }
  }
}
