// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing
internal import Volume

/// Attempts to get at files beside a granted one, and to keep what is taken back; on real mounts, with and
/// without root's ways.
@Suite(.serialized, .enabled(if: Program.isRoot, "mounting takes root"))
struct GrantedSiblingTests {
  /// An app that has a letter for writing, and what its user has beside it.
  private struct Desk {
    let fixture: GrantedMounts
    let letter: Int64

    init(_ rootless: Bool, views: Int = 1) throws {
      fixture = try GrantedMounts(views: views, rootless: rootless)
      try fixture.makeDirectories("d", "e", "f")
      try fixture.write("dear", to: fixture.all("d/letter"))
      for name in ["secret", "letter.bak"] { try fixture.write("secret", to: fixture.all("d/\(name)")) }
      letter = try fixture.grant("d/letter")
    }

    func own(_ name: String) -> String { fixture.own("d/\(name)") }
    func all(_ name: String) -> String { fixture.all("d/\(name)") }

    /// Whether the app finds, lists or opens anything there.
    func isSeen(_ name: String) -> Bool {
      let isListed = (try? fixture.names(fixture.own("d")))?.contains(name) == true
      return isListed || fixture.exists(own(name)) || fixture.text(own(name)) != nil
    }
  }

  private func errno(_ body: () -> Int32) -> Errno? { body() == 0 ? nil : Errno.last }

  // MARK: The user's files under a sibling's name

  /// How a file of the user's comes to a name at which the app had something of its own.
  private static let arrivals: [(name: String, body: @Sendable (String, String) -> Bool)] = [
    ("renamed over it", { secret, name in rename(secret, name) == 0 }),
    ("renamed when it was gone", { secret, name in unlink(name) == 0 && rename(secret, name) == 0 }),
    ("linked when it was gone", { secret, name in unlink(name) == 0 && link(secret, name) == 0 }),
    (
      "exchanged",
      { secret, name in
        clx_renameat2(AT_FDCWD, secret, AT_FDCWD, name, UInt32(CLX_RENAME_EXCHANGE)) == 0
      }
    ),
    (
      "made anew",
      { _, name in unlink(name) == 0 && Self.write("secret", to: name, O_CREAT | O_EXCL) }
    ),
    ("written in place", { _, name in Self.write("secret", to: name, O_CREAT | O_TRUNC) }),
    (
      "written to its other name",
      { _, name in
        link(name, name + "2") == 0 && Self.write("secret", to: name + "2", O_TRUNC)
      }
    ),
    ("cut and written", { _, name in truncate(name, 0) == 0 && Self.write("secret", to: name, 0) }),
  ]

  private static func write(_ text: String, to path: String, _ flags: Int32) -> Bool {
    let file = open(path, O_WRONLY | O_CLOEXEC | flags, 0o666)
    guard file >= 0 else { return false }
    defer { close(file) }
    return Glibc.write(file, text, text.utf8.count) == text.utf8.count
  }

  @Test(arguments: [false, true], arrivals.indices)
  func whatTheUserPutsThereIsNotTheApps(rootless: Bool, index: Int) throws {
    let (name, arrive) = Self.arrivals[index]
    let desk = try Desk(rootless)
    try desk.fixture.write("mine", to: desk.own("letter~"))
    let file = open(desk.own("letter~"), O_RDWR | O_CLOEXEC)
    try #require(file >= 0 && desk.isSeen("letter~"))
    defer { close(file) }
    try #require(arrive(desk.all("secret"), desk.all("letter~")), "\(name): \(Errno.last)")
    #expect(desk.fixture.text(desk.all("letter~")) == "secret", "\(name)")
    #expect(!desk.fixture.exists(desk.own("letter~")), "\(name)")
    #expect(desk.fixture.text(desk.own("letter~")) == nil, "\(name)")
    #expect(try desk.fixture.names(desk.fixture.own("d")) == ["letter"], "\(name)")
    // Nor through what is open.
    var bytes: [UInt8] = Array(repeating: 0, count: 16)
    let count = pread(file, &bytes, 16, 0)
    #expect(count <= 0 || !bytes.starts(with: "secret".utf8), "\(name)")
    // The app can neither take it away, nor put something in its place, nor have it as its letter.
    for attempt in [
      { unlink(desk.own("letter~")) }, { rename(desk.own("letter~"), desk.own("letter")) },
      { link(desk.own("letter~"), desk.own("letter.tmp")) }, { truncate(desk.own("letter~"), 0) },
    ] as [() -> Int32] {
      #expect(errno(attempt) == .ENOENT, "\(name)")
    }
    #expect(
      desk.fixture.text(desk.own("letter")) == "dear" && desk.fixture.text(desk.all("letter~")) == "secret")
  }

  /// A filesystem gives the number of what is gone to what comes next.
  @Test(arguments: [false, true]) func anotherObjectOfTheSameNumberIsNone(rootless: Bool) throws {
    let desk = try Desk(rootless)
    for _ in 0..<20 {
      try desk.fixture.write("mine", to: desk.own("letter.tmp"))
      try #require(unlink(desk.all("letter.tmp")) == 0)
      try #require(Self.write("secret", to: desk.all("letter.tmp"), O_CREAT | O_EXCL))
      try #require(desk.fixture.text(desk.own("letter.tmp")) == nil && !desk.isSeen("letter.tmp"))
      try #require(unlink(desk.all("letter.tmp")) == 0)
    }
  }

  // MARK: New names

  private static let ways: [@Sendable (String, String) -> Int32] = [
    { _, new in
      let file = open(new, O_CREAT | O_RDWR | O_CLOEXEC, 0o644)
      return file < 0 ? -1 : close(file)
    },
    { _, new in
      let file = open(new, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o644)
      return file < 0 ? -1 : close(file)
    },
    { _, new in mknod(new, S_IFREG | 0o644, 0) },
    { old, new in rename(old, new) },
    { old, new in link(old, new) },
    { _, new in mkfifo(new, 0o644) },
    { _, new in mkdir(new, 0o755) },
    { _, new in symlink("letter", new) },
    { old, new in clx_renameat2(AT_FDCWD, old, AT_FDCWD, new, UInt32(CLX_RENAME_NOREPLACE)) },
  ]

  @Test(arguments: [false, true]) func appLeavesNoOtherNameBesideItsFile(rootless: Bool) throws {
    let desk = try Desk(rootless)
    try desk.fixture.write("mine", to: desk.own("letter.tmp"))
    for name in [".bash_profile", "Makefile", "secret", "letter.html", ".letter", "other~"] {
      for old in ["letter", "letter.tmp"] {
        for (number, way) in Self.ways.enumerated() {
          #expect(errno { way(desk.own(old), desk.own(name)) } == .EPERM, "\(old) as \(name), way \(number)")
        }
      }
    }
    #expect(
      try desk.fixture.names(desk.fixture.all("d")) == ["letter", "letter.bak", "letter.tmp", "secret"])
    // A name that editors use is for plain files.
    for way in [5, 6, 7] {
      #expect(errno { Self.ways[way](desk.own("letter"), desk.own("letter~")) } == .EPERM, "\(way)")
    }
    // One that is taken is not to be had.
    for way in [1, 2, 8] {
      #expect(errno { Self.ways[way](desk.own("letter.tmp"), desk.own("letter.bak")) } == .EEXIST, "\(way)")
    }
    #expect(desk.fixture.text(desk.all("letter.bak")) == "secret")
  }

  // MARK: What is taken back

  @Test(arguments: [false, true]) func nothingIsCarriedFromOneGrantToAnother(rootless: Bool) throws {
    let desk = try Desk(rootless)
    let fixture = desk.fixture
    try fixture.write("second", to: fixture.all("d/other"))
    try fixture.write("third", to: fixture.all("e/file"))
    let other = try fixture.grant("d/other")
    try fixture.grant("e")
    try fixture.grant("f")
    try #require(mkdir(fixture.own("f/deep"), 0o777) == 0)
    try fixture.grant("f/deep")
    try fixture.write("mine", to: desk.own("letter.tmp"))
    for (old, new) in [
      ("d/letter", "e/kept"), ("d/letter", "f/deep/kept"), ("e/file", "f/kept"), ("e/file", "d/letter"),
      ("e/file", "d/letter~"), ("d/letter.tmp", "e/kept"), ("d/letter", "d/other"), ("d/letter", "d/other~"),
      ("d/other", "d/letter~"), ("d/letter.tmp", "d/other"), ("d/letter.tmp", "d/other~"),
      ("e/file", "f/deep/kept"),
    ] {
      let isThere = ["d/letter", "d/other"].contains(new)
      #expect(
        errno { link(fixture.own(old), fixture.own(new)) } == (isThere ? .EEXIST : .EXDEV), "\(old) \(new)")
      #expect(throws: Errno.EXDEV, "\(old) \(new)") { try fixture.rename(fixture.own(old), fixture.own(new)) }
    }
    for (one, two) in [("d/letter", "e/file"), ("d/letter", "d/other"), ("e/file", "f/deep")] {
      #expect(throws: Errno.EXDEV, "\(one) \(two)") {
        try fixture.rename(fixture.own(one), fixture.own(two), exchanging: true)
      }
    }
    // What is of no file alone may become either.
    try fixture.write("new", to: desk.own("tmpabcdefgh"))
    try fixture.rename(desk.own("tmpabcdefgh"), desk.own("other"))
    #expect(fixture.text(desk.all("other")) == "new")
    fixture.volume.revokeGrants([other])
    #expect(fixture.text(desk.own("other")) == nil && fixture.text(desk.own("letter")) == "dear")
  }

  /// By all the names that an app can give it, and by what it has open and mapped.
  @Test(arguments: [false, true]) func whatIsTakenBackIsTakenBackUnderEveryName(rootless: Bool) throws {
    let desk = try Desk(rootless)
    let fixture = desk.fixture
    try fixture.write("second", to: fixture.all("d/other"))
    try fixture.grant("d/other")
    try #require(link(desk.own("letter"), desk.own("letter~")) == 0)
    try #require(link(desk.own("letter"), desk.own("letter.tmp")) == 0)
    try fixture.write("mine", to: desk.own("letter.new"))
    let names = ["letter", "letter~", "letter.tmp", "letter.new"]
    let files = names.map { open(desk.own($0), O_RDWR | O_CLOEXEC) }
    defer { for file in files { close(file) } }
    try #require(files.allSatisfy { $0 >= 0 })
    try fixture.rename(desk.own("letter"), desk.own("letter.old"))
    fixture.volume.revokeGrants([desk.letter])
    for name in names + ["letter.old"] { #expect(!desk.isSeen(name), "\(name)") }
    for (name, file) in zip(names, files) {
      var byte: UInt8 = 0
      #expect(pread(file, &byte, 1, 0) == -1 && Errno.last == .EPERM, "\(name)")
      #expect(pwrite(file, &byte, 1, 0) == -1 && Errno.last == .EPERM, "\(name)")
      #expect(errno { fchmod(file, 0o777) } == .ENOENT, "\(name)")
      for new in ["other~", "other.tmp", "letter~2"] {
        let link = linkat(AT_FDCWD, "/proc/self/fd/\(file)", AT_FDCWD, desk.own(new), AT_SYMLINK_FOLLOW)
        #expect(link == -1, "\(name) as \(new)")
      }
    }
    #expect(try fixture.names(fixture.own("d")) == ["other"])
    // Another grant of the same file does not bring back what was beside it.
    try fixture.rename(desk.all("letter.old"), desk.all("letter"))
    try fixture.grant("d/letter")
    #expect(try fixture.names(fixture.own("d")) == ["letter", "other"])
  }

  @Test(arguments: [false, true]) func theUsersOwnLinkInAGrantedFolderIsThatFolders(rootless: Bool) throws {
    let desk = try Desk(rootless)
    let fixture = desk.fixture
    try #require(link(fixture.all("d/letter"), fixture.all("e/same")) == 0)
    let folder = try fixture.grant("e")
    #expect(fixture.text(fixture.own("e/same")) == "dear" && fixture.text(desk.own("letter")) == "dear")
    fixture.volume.revokeGrants([desk.letter])
    #expect(fixture.text(desk.own("letter")) == nil && fixture.text(fixture.own("e/same")) == "dear")
    let file = open(fixture.own("e/same"), O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    fixture.volume.revokeGrants([folder])
    var byte: UInt8 = 0
    #expect(pread(file, &byte, 1, 0) == -1 && Errno.last == .EPERM)
    #expect(fixture.text(fixture.own("e/same")) == nil)
  }

  // MARK: Saving

  @Test(arguments: [false, true]) func anAppsOwnViewsDoNotShareWhatTheyMake(rootless: Bool) throws {
    let desk = try Desk(rootless, views: 2)
    let fixture = desk.fixture
    try fixture.write("mine", to: desk.own("letter.tmp"))
    #expect(fixture.text(fixture.own("d/letter.tmp", view: 2)) == nil)
    #expect(try fixture.names(fixture.own("d", view: 2)) == ["letter"])
    // What both had been granted both keep, until one of them puts something else there.
    let file = open(fixture.own("d/letter", view: 2), O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    try fixture.rename(desk.own("letter"), desk.own("letter~"))
    #expect(fixture.place(desk.letter) == "d/letter")
    var byte: UInt8 = 0
    #expect(pread(file, &byte, 1, 0) == 1)
    try fixture.rename(desk.own("letter.tmp"), desk.own("letter"))
    for view in 1...2 {
      #expect(fixture.text(fixture.own("d/letter", view: view)) == "mine")
      #expect(fixture.text(fixture.own("d/letter~", view: view)) == "dear")
    }
  }

  /// The user looks at what the app has open beside its file.
  ///
  /// That takes nothing from the app, and shows the app's other view nothing. Saved, it is the file of all
  /// three.
  @Test(arguments: [false, true]) func anOpenSiblingMayBeLookedAt(rootless: Bool) throws {
    let desk = try Desk(rootless, views: 2)
    let fixture = desk.fixture
    let flags = O_RDWR | O_CLOEXEC
    let own = open(desk.own("letter.tmp"), flags | O_CREAT, 0o666)
    let seen = open(desk.all("letter.tmp"), O_RDONLY | O_CLOEXEC)
    try #require(own >= 0 && seen >= 0)
    defer { for file in [own, seen] { close(file) } }
    func text(_ file: Int32) -> String {
      var bytes = [UInt8](repeating: 0, count: 64)
      let count = pread(file, &bytes, bytes.count, 0)
      return count < 0 ? Errno.last.message : String(decoding: bytes[..<count], as: UTF8.self)
    }
    #expect(pwrite(own, "mine", 4, 0) == 4)
    #expect(text(seen) == "mine" && fixture.text(desk.all("letter.tmp")) == "mine")
    #expect(pwrite(own, "more", 4, 4) == 4)
    #expect(text(seen) == "minemore" && text(own) == "minemore" && desk.isSeen("letter.tmp"))
    let hidden = fixture.own("d/letter.tmp", view: 2)
    #expect(open(hidden, flags) == -1 && Errno.last == .ENOENT)
    #expect(try fixture.names(fixture.own("d", view: 2)) == ["letter"])
    try fixture.rename(desk.own("letter.tmp"), desk.own("letter"))
    let other = open(fixture.own("d/letter", view: 2), flags)
    try #require(other >= 0)
    defer { close(other) }
    for (file, change) in [(own, "a"), (other, "b")] {
      #expect(pwrite(file, change, 1, 0) == 1)
      for reader in [own, seen, other] { #expect(text(reader) == change + "inemore") }
    }
    #expect(fixture.text(desk.all("letter")) == "binemore" && !fixture.exists(desk.all("letter.tmp")))
  }

  /// With `ln` in the place of the last rename; a later daemon must know what is at the name too.
  @Test(arguments: [false, true]) func savedByALinkIsWhatIsGranted(rootless: Bool) throws {
    let desk = try Desk(rootless)
    let fixture = desk.fixture
    let ways: [(String, (String) -> String)] = [("app", desk.own), ("user", desk.all)]
    for (who, path) in ways {
      try fixture.rename(path("letter"), path("letter~"))
      try fixture.write(who, to: path("letter.tmp"))
      try #require(link(path("letter.tmp"), path("letter")) == 0)
      try #require(unlink(path("letter.tmp")) == 0 && unlink(desk.all("letter~")) == 0)
      #expect(fixture.place(desk.letter) == "d/letter" && fixture.text(desk.own("letter")) == who, "\(who)")
      expectIdentity(desk, "\(who)")
    }
    // Removed, and another file linked there.
    try #require(unlink(desk.all("letter")) == 0 && link(desk.all("secret"), desk.all("letter")) == 0)
    expectIdentity(desk, "linked from outside")
  }

  /// The grant is noted as of what is there now, and of nothing that was.
  private func expectIdentity(_ desk: Desk, _ comment: Comment) {
    var status = stat()
    #expect(stat(desk.fixture.mounts.backing("d/letter"), &status) == 0)
    let noted = desk.fixture.volume.granted([desk.letter]).first
    #expect(noted?.identity.inode == UInt64(status.st_ino), comment)
  }

  @Test func siblingsAreAsManyAsSavingTakes() throws {
    let desk = try Desk(false)
    var count = 0
    var last: Errno?
    while count < 2000, last == nil {
      let file = open(desk.own("letter.\(count)"), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
      if file < 0 { last = Errno.last } else { close(file) }
      count += 1
    }
    #expect(last == .EDQUOT && count == 1025)
    // The user has no such limit, and the app has room again when something is gone.
    try desk.fixture.write("more", to: desk.all("letter.2000"))
    #expect(unlink(desk.own("letter.7")) == 0)
    try desk.fixture.write("more", to: desk.own("letter.7"))
  }
}
