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

/// Names in a store that ignores case.
@Suite struct SpellingTests {
  let tree: Tree
  var view: View { tree.view }

  init() throws { tree = try Tree { $0.ignoresCase = true } }

  private func listed(_ directory: String = "Users/Shared") throws -> [String] {
    let opened = try TemporaryDirectory.open(tree.path(directory))
    return try opened.fd.entries().map { String(decoding: $0.name, as: UTF8.self) }.sorted()
  }

  @Test func eachOperationFindsEverySpelling() throws {
    let node = try view.make("Users/Shared/Foo.txt")
    #expect(try view.node("users/SHARED/fOO.TXT") == node)
    #expect(try view.make("Users/Shared/FOO.txt") == node, "it is opened")
    #expect(throws: Errno.EEXIST) { try view.makeDirectory("Users/Shared/FOO.TXT") }
    try view.makeDirectory("Users/Shared/Caf\u{E9}")
    #expect(throws: Errno.EEXIST) { try view.makeDirectory("Users/Shared/cafe\u{301}") }
    try view.rename("Users/Shared/FOO.TXT", to: "Users/Shared/CAFE\u{301}/Bar")
    #expect(try listed() == ["Caf\u{E9}"])
    try view.remove("Users/Shared/café/bAR")
    try view.remove("Users/Shared/CAFÉ", directory: true)
    #expect(try listed() == [])
    #expect(throws: Errno.ENOENT) { try view.remove("Users/Shared/foo") }
  }

  @Test func aRenameGivesTheNewSpelling() throws {
    try view.make("Users/Shared/foo")
    for name in ["FOO", "Foo", "foo", "fOO"] {
      try view.rename("Users/Shared/foo", to: "Users/Shared/\(name)")
      #expect(try listed() == [name])
    }
    try view.makeDirectory("Users/Shared/\u{E9}")
    try view.rename("Users/Shared/e\u{301}", to: "Users/Shared/e\u{301}")
    #expect(try listed() == ["e\u{301}", "fOO"].sorted())
  }

  @Test func whatIsReplacedGivesWay() throws {
    let node = try view.make("Users/Shared/new")
    try view.make("Users/Shared/old")
    #expect(throws: Errno.EEXIST) {
      try view.rename("Users/Shared/new", to: "Users/Shared/OLD", flags: 1)
    }
    try view.rename("Users/Shared/NEW", to: "Users/Shared/OLD")
    #expect(try listed() == ["OLD"])
    #expect(try view.node("Users/Shared/old") == node)
    try view.makeDirectory("Users/Shared/Sub")
    try view.make("Users/Shared/Sub/x")
    try view.rename("Users/Shared/sub/X", to: "Users/Shared/oLd")
    #expect(try listed() == ["Sub", "oLd"])
    // Each stays what it is where two names are exchanged.
    try view.rename("Users/Shared/SUB", to: "Users/Shared/OLD", flags: 2)
    #expect(try listed() == ["Sub", "oLd"])
    #expect(try view.find("Users/Shared/OLD").attributes.status.isDirectory)
  }

  @Test(arguments: ["a\u{FF}b", "x"])
  func namesAreText(name: String) throws {
    let bytes: [UInt8] = name == "x" ? [0x61, 0xff] : Array("a\u{378}".utf8)
    let parent = try view.node("Users/Shared")
    try bytes.withName { (name) throws(Errno) in
      #expect(throws: Errno.EILSEQ) {
        _ = try view.makeDirectory(name, in: parent, mode: 0o700, by: .root)
      }
      #expect(throws: Errno.ENOENT) { _ = try view.lookup(name, in: parent, by: .root) }
      // What came past the daemon can be taken away.
      let directory = try TemporaryDirectory.open(tree.shared)
      try directory.fd.makeDirectory(name, mode: 0o700)
      _ = try view.lookup(name, in: parent, by: .root)
      try view.remove(name, in: parent, directory: true, by: .root)
    }
  }

  /// Those that rules know are what they mean in every spelling, before anything has the name and after.
  @Test(
    arguments: [
      ("Users/ada", "library", "Library", Zone.homeLibrary),
      ("Users/ada", "APPLICATIONS", "Applications", .homeApplications),
      ("Users/ada", "documents", "Documents", .user), ("Users/ada", ".TRASH", ".Trash", .user),
      ("Users/ada/Library", "caches", "Caches", .user),
      ("Users/ada/Library", "containers", "Containers", .containers),
      ("Users/ada/Library", "mobile DOCUMENTS", "Mobile Documents", .cloudContainers),
      ("Library", "\u{212A}EYCHAINS", "Keychains", .localStandard),
      ("Users/ada", "Application\u{17F}", "Applications", .homeApplications),
    ])
  func standardNamesHaveNoOtherSpelling(at place: String, name: String, standard: String, zone: Zone) throws {
    if place.hasPrefix("Users/ada") {
      try view.makeDirectory("Users/ada")
      if place != "Users/ada" { try view.makeDirectory("Users/ada/LIBRARY") }
    } else {
      rmdir(tree.path("\(place)/\(standard)"))
    }
    let made = try view.makeDirectory("\(place)/\(name)")
    #expect(try listed(place).contains(standard))
    #expect(try listed(place).contains(name) == false)
    #expect(view.nodes.with(made) { $0.zone } == zone)
    #expect(try view.find("\(place)/\(name)").validity == 0)
  }

  @Test func reservedNamesAreReservedInEverySpelling() throws {
    let home = "Users/ada"
    for directory in ["", "/Library", "/Library/Containers"] { try view.makeDirectory(home + directory) }
    for path in ["org.example.a", "org.example.a/Data", "org.example.a/Data/Documents"] {
      try tree.temporary.makeDirectory("\(home)/Library/Containers/\(path)", mode: 0o777)
    }
    let data = "users/ADA/library/CONTAINERS/ORG.example.a/data"
    for name in ["documents/inbox", "DOCUMENTS/INBOX", ".COM.APPLE.x", "documentS2"] {
      #expect(throws: Errno.EPERM, "\(name)") { try view.makeDirectory("\(data)/\(name)") }
      #expect(throws: Errno.EPERM, "\(name)") { try view.make("\(data)/\(name)") }
    }
    try view.makeDirectory("Users/ada/x")
    #expect(throws: Errno.EPERM) { try view.rename("Users/ada/x", to: "\(data)/documents/InBox") }
    #expect(throws: Errno.EPERM) { try view.makeDirectory("Users/ada/LIBRARY/containers/org.example.b") }
    #expect(throws: Errno.EPERM) { try view.rename("Users/ada/x", to: "Users/ada/library/CONTAINERS/x") }
    // What lies there in another spelling came past the daemon, and is what it means.
    try tree.temporary.makeDirectory(
      "\(home)/Library/Containers/org.example.a/Data/Documents/INBOX", mode: 0o777)
    #expect(throws: Errno.EPERM) { try view.make("\(data)/Documents/inbox/x") }
  }

  /// A scope's places are in it, or absent, whatever they are called.
  @Test func placesOfAScopeHaveEverySpelling() throws {
    for path in ["Users/ada", "Users/ada/Open", "Users/ada/Open/Secret"] {
      try tree.temporary.makeDirectory(path, mode: 0o777)
    }
    let view = try View(
      tree.volume,
      scope: Scope([
        ScopePlace("Users/ada/open", .everything), ScopePlace("Users/ada/OPEN/secret", .absent),
        ScopePlace("Users/ada/Open/later", .absent),
      ]), user: 0)
    defer { view.ended() }
    _ = try view.find("users/ADA/oPEN")
    for name in ["Secret", "SECRET", "later", "LATER"] {
      #expect(throws: Errno.ENOENT) { try view.find("Users/ada/Open/\(name)") }
    }
    try tree.view.makeDirectory("Users/ada/Open/LATER")
    #expect(throws: Errno.ENOENT) { try view.find("Users/ada/Open/LATER") }
  }

  @Test func ofThoseWhoMakeOneNameOneMakesIt() throws {
    for round in 0..<50 {
      let made = Atomic<Int>(0)
      let others = Atomic<Int>(0)
      let threads = try (0..<4).map { index in
        try JoinableThread(name: "maker") {
          let name = (index & 1 == 0 ? "n" : "N") + (index & 2 == 0 ? "a" : "A") + "\(round)"
          do throws(Errno) {
            try tree.view.makeDirectory("Users/Shared/\(name)")
            made.wrappingAdd(1, ordering: .relaxed)
          } catch {
            if error != .EEXIST { others.wrappingAdd(1, ordering: .relaxed) }
          }
        }
      }
      for thread in threads { thread.join() }
      #expect(made.load(ordering: .relaxed) == 1 && others.load(ordering: .relaxed) == 0)
    }
    #expect(try listed().count == 50)
  }
}
