// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
internal import Volume

/// A view that has a part of the tree, on a real mount beside one of all of it.
@Suite(.serialized, .enabled(if: Program.isRoot, "mounting takes root"))
struct ScopedViewTests {
  /// Everyone's, so that only the scope stands in the way.
  private func mounts(_ places: [ScopePlace], user: UInt32? = nil) throws -> TwoMounts {
    let mounts = try TwoMounts(scope: Scope(places), user: user)
    for name in ["own", "other", "granted", "beside"] {
      #expect(mkdir(mounts.path(0, name), 0o777) == 0)
    }
    for name in [
      "own/a", "other/secret", "granted/a", "granted/b", "beside/letter", "beside/letter~", "beside/private",
    ] {
      try write("\(name)\n", to: mounts.path(0, name))
    }
    return mounts
  }

  private static func place(_ name: String, _ reach: Reach, isSubtree: Bool = true) -> ScopePlace {
    ScopePlace("Users/Shared/\(name)", reach, isSubtree: isSubtree)
  }
  private static let own = place("own", [.read, .write])
  private static let granted = place("granted", [.read, .write, .revocable])
  private static let letter = place("beside/letter", [.read, .write, .revocable], isSubtree: false)

  private func write(_ text: String, to path: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
  }

  private func names(_ path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }

  private func errno(_ body: () -> Int32) -> Errno? { body() == 0 ? nil : Errno.last }

  @Test func onlyItsPlacesExist() throws {
    let mounts = try mounts([Self.own])
    #expect(try names(mounts.temporary.appending("1")) == ["Users"])
    #expect(try names(mounts.temporary.appending("1/Users/Shared")) == ["own"])
    #expect(try names(mounts.path(0, "")) == ["beside", "granted", "other", "own"])
    for hidden in ["other", "other/secret", "granted/a", "../../Applications", "own/../other/secret"] {
      #expect(errno { access(mounts.path(1, hidden), F_OK) } == .ENOENT, "\(hidden)")
      #expect(errno { access(mounts.path(0, hidden), F_OK) } == nil, "\(hidden)")
    }
    #expect(try String(contentsOfFile: mounts.path(1, "own/a"), encoding: .utf8) == "own/a\n")
  }

  @Test func passageIsOnlyWalkedThrough() throws {
    let mounts = try mounts([Self.own])
    let made = mounts.path(1, "made")
    #expect(errno { mkdir(made, 0o755) } == .EPERM)
    #expect(errno { symlink("own", made) } == .EPERM)
    #expect(errno { mknod(made, S_IFREG | 0o644, 0) } == .EPERM)
    #expect(errno { rename(mounts.path(1, "own"), made) } == .EPERM)
    #expect(errno { rename(mounts.path(1, "own/a"), made) } == .EPERM)
    #expect(errno { link(mounts.path(1, "own/a"), made) } == .EPERM)
    #expect(errno { rmdir(mounts.path(1, "own")) } == .EPERM)
    #expect(errno { chmod(mounts.path(1, ""), 0o755) } == .EPERM)
    // What is there but not in the view, by each way to make something.
    #expect(errno { mkdir(mounts.path(1, "other"), 0o755) } == .EPERM)
    #expect(open(mounts.path(1, "other"), O_CREAT | O_RDWR, 0o644) == -1 && Errno.last == .EPERM)
    #expect(errno { rename(mounts.path(1, "own/a"), mounts.path(1, "own/b")) } == nil)
  }

  @Test func othersThanItsUserFindNothing() throws {
    let account = try TemporaryAccount()
    let stranger = try TemporaryAccount()
    let mounts = try mounts([Self.own], user: account.account.uid)
    let file = mounts.path(1, "own/a")
    #expect(chmod(mounts.temporary.path, 0o755) == 0)
    // In this order: what the kernel has been told for the one, it would tell the other.
    for (uid, expected) in [(stranger.account.uid, EACCES), (account.account.uid, Int32(0))] {
      let client = try Client(uid: uid)
      #expect(try client.errno("stat", file) == expected)
    }
  }

  // MARK: Grants

  @Test func grantAppearsAndGoes() throws {
    let mounts = try mounts([Self.own])
    let view = mounts.views[1]
    let file = mounts.path(1, "granted/a")
    #expect(errno { access(file, F_OK) } == .ENOENT)
    view.granted.admit(Self.granted)
    #expect(try names(mounts.path(1, "")) == ["granted", "own"])
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "granted/a\n")
    try write("new", to: mounts.path(1, "granted/new"))
    #expect(try names(mounts.path(0, "granted")) == ["a", "b", "new"])
    view.granted.withdraw(Self.granted)
    #expect(errno { access(file, F_OK) } == .ENOENT)
    #expect(try names(mounts.path(1, "")) == ["own"])
  }

  @Test func whatIsOpenIsTakenBack() throws {
    let mounts = try mounts([Self.own, Self.granted])
    let file = open(mounts.path(1, "granted/a"), O_RDWR | O_CLOEXEC)
    let directory = open(mounts.path(1, "granted"), O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    try #require(file >= 0 && directory >= 0)
    defer { for fd in [file, directory] { close(fd) } }
    var byte: UInt8 = 0
    #expect(pread(file, &byte, 1, 0) == 1 && pwrite(file, &byte, 1, 0) == 1)
    mounts.views[1].granted.withdraw(Self.granted)
    #expect(pread(file, &byte, 1, 0) == -1 && Errno.last == .EPERM)
    #expect(pwrite(file, &byte, 1, 0) == -1 && Errno.last == .EPERM)
    #expect(errno { ftruncate(file, 0) } == .ENOENT)
    #expect(errno { fchmod(file, 0o600) } == .ENOENT)
    #expect(errno { faccessat(directory, "b", F_OK, 0) } == .ENOENT)
    #expect(errno { mkdirat(directory, "new", 0o755) } == .ENOENT)
    #expect(try String(contentsOfFile: mounts.path(0, "granted/a"), encoding: .utf8) == "granted/a\n")
  }

  @Test func grantForReadingIsOnlyThat() throws {
    let mounts = try mounts([Self.place("granted", [.read, .revocable])])
    let file = mounts.path(1, "granted/a")
    #expect(open(file, O_RDWR) == -1 && Errno.last == .EPERM)
    #expect(errno { unlink(file) } == .EPERM)
    #expect(errno { chmod(file, 0o600) } == .EPERM)
    #expect(errno { utimes(file, nil) } == .EPERM)
    #expect(setxattr(file, "user.a", "b", 1, 0) == -1 && Errno.last == .EPERM)
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "granted/a\n")
  }

  @Test func editorSavesAGrantedFile() throws {
    let mounts = try mounts([Self.own, Self.letter])
    #expect(try names(mounts.path(1, "beside")) == ["letter"])
    let saved = mounts.path(1, "beside/.letter.new")
    try write("second draft", to: saved)
    #expect(try names(mounts.path(1, "beside")) == [".letter.new", "letter"])
    #expect(errno { rename(saved, mounts.path(1, "beside/letter")) } == nil)
    #expect(try names(mounts.path(1, "beside")) == ["letter"])
    #expect(try String(contentsOfFile: mounts.backing("beside/letter"), encoding: .utf8) == "second draft")
    // What the user has beside it is neither seen nor replaced.
    let hidden = mounts.path(1, "beside/letter~")
    #expect(open(hidden, O_CREAT | O_RDWR, 0o644) == -1 && Errno.last == .EPERM)
    #expect(open(hidden, O_CREAT | O_EXCL | O_RDWR, 0o644) == -1 && Errno.last == .EEXIST)
    try write("third", to: saved)
    #expect(errno { rename(saved, hidden) } == .EEXIST)
    // A name that no editor uses tells nothing.
    for name in ["beside/private", "beside/.bash_profile"] {
      let path = mounts.path(1, name)
      #expect(open(path, O_CREAT | O_EXCL | O_RDWR, 0o644) == -1 && Errno.last == .EPERM, "\(name)")
      #expect(open(path, O_CREAT | O_RDWR, 0o644) == -1 && Errno.last == .EPERM, "\(name)")
      #expect(errno { rename(saved, path) } == .EPERM, "\(name)")
      #expect(errno { link(saved, path) } == .EPERM, "\(name)")
      #expect(errno { mknod(path, S_IFREG | 0o644, 0) } == .EPERM, "\(name)")
    }
    #expect(errno { mkdir(mounts.path(1, "beside/directory"), 0o755) } == .EPERM)
    #expect(errno { symlink("letter", mounts.path(1, "beside/link")) } == .EPERM)
    for name in ["beside/private", "beside/letter~"] {
      #expect(try String(contentsOfFile: mounts.backing(name), encoding: .utf8) == "\(name)\n")
    }
    mounts.views[1].granted.withdraw(Self.letter)
    #expect(errno { access(saved, F_OK) } == .ENOENT)
    #expect(errno { access(mounts.path(1, "beside"), F_OK) } == .ENOENT)
  }

  /// In a folder of which everything may be read anyway.
  @Test func editorSavesAGrantedFileAmongThoseThatItMayRead() throws {
    let mounts = try mounts([Self.place("beside", .read), Self.letter])
    #expect(try names(mounts.path(1, "beside")) == ["letter", "letter~", "private"])
    try write("second draft", to: mounts.path(1, "beside/.letter.new"))
    #expect(errno { rename(mounts.path(1, "beside/.letter.new"), mounts.path(1, "beside/letter")) } == nil)
    #expect(try String(contentsOfFile: mounts.backing("beside/letter"), encoding: .utf8) == "second draft")
    // What it may only read is neither replaced nor moved.
    try write("third", to: mounts.path(1, "beside/letter.tmp"))
    for (old, new) in [("letter.tmp", "letter~"), ("letter~", "letter.bak"), ("private", "letter.bak")] {
      #expect(errno { rename(mounts.path(1, "beside/\(old)"), mounts.path(1, "beside/\(new)")) } == .EPERM)
    }
    let file = open(mounts.path(1, "beside/letter.tmp"), O_RDWR | O_CLOEXEC)
    defer { close(file) }
    mounts.views[1].granted.withdraw(Self.letter)
    var byte: UInt8 = 0
    #expect(pread(file, &byte, 1, 0) == 1 && pwrite(file, &byte, 1, 0) == -1)
    #expect(open(mounts.path(1, "beside/letter.tmp"), O_RDWR | O_CLOEXEC) == -1)
  }

  @Test func nothingIsKeptByAnotherName() throws {
    let mounts = try mounts([Self.own, Self.granted])
    #expect(errno { link(mounts.path(1, "granted/a"), mounts.path(1, "own/kept")) } == .EXDEV)
    #expect(errno { rename(mounts.path(1, "granted/a"), mounts.path(1, "own/kept")) } == .EXDEV)
    #expect(errno { rename(mounts.path(1, "own/a"), mounts.path(1, "granted/c")) } == .EXDEV)
    #expect(errno { rename(mounts.path(1, "granted/a"), mounts.path(1, "granted/c")) } == nil)
    #expect(errno { link(mounts.path(1, "granted/c"), mounts.path(1, "granted/d")) } == nil)
  }

  @Test func databasesShareNoMemoryThatIsNotShared() throws {
    let mounts = try mounts([Self.own, Self.granted])
    #expect(open(mounts.path(1, "granted/x-shm"), O_CREAT | O_RDWR, 0o644) == -1 && Errno.last == .EPERM)
    let own = open(mounts.path(1, "own/x-shm"), O_CREAT | O_RDWR | O_CLOEXEC, 0o644)
    #expect(own >= 0)
    close(own)
  }

  // MARK: Maps

  @Test(arguments: ["shared", "private"])
  func mapOfWhatWasTakenBackEndsItsUser(kind: String) throws {
    let mounts = try mounts([Self.own, Self.granted])
    let client = try Client(crashes: true)
    let flags = kind == "private" ? O_RDONLY : O_RDWR
    #expect(try client.errno("open", mounts.path(1, "granted/a"), "\(flags)", "0") == 0)
    #expect(try client.errno("map", "0", "4096", kind) == 0)
    #expect(try client.run("load", "0").words == ["\(UInt8(ascii: "g"))"])
    if kind == "shared" { #expect(try client.errno("store", "0", "\(UInt8(ascii: "G"))") == 0) }
    mounts.views[1].granted.withdraw(Self.granted)
    // SIGBUS ends it.
    try client.send(kind == "shared" ? ["store", "1", "0"] : ["load", "0"])
    #expect(throws: Errno.ESRCH) { try client.answer() }
    // What was stored before has arrived.
    let left = try String(contentsOfFile: mounts.path(0, "granted/a"), encoding: .utf8)
    #expect(left == (kind == "shared" ? "Granted/a\n" : "granted/a\n"))
  }
}
