// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing
internal import Volume

/// What users have granted follows what it is for, on real mounts.
@Suite(.serialized, .enabled(if: Program.isRoot, "mounting takes root"))
struct FollowedGrantTests {
  /// A letter in a folder, which the app may have.
  private func fixture(rootless: Bool = false) throws -> (GrantedMounts, Int64) {
    let fixture = try GrantedMounts(rootless: rootless)
    try fixture.makeDirectories("a", "a/b", "c", "c/d")
    try fixture.write("dear", to: fixture.all("a/b/letter"))
    try fixture.write("secret", to: fixture.all("a/b/other"))
    return (fixture, try fixture.grant("a/b/letter"))
  }

  @Test(arguments: [false, true]) func followsRenamesAndMoves(rootless: Bool) throws {
    let (fixture, id) = try fixture(rootless: rootless)
    var path = "a/b/letter"
    func expectOnly(_ new: String, _ what: String) throws {
      #expect(fixture.text(fixture.own(new)) == "dear", "\(what)")
      #expect(!fixture.exists(fixture.own(path)), "\(what)")
      #expect(fixture.place(id) == new, "\(what)")
      path = new
    }
    #expect(fixture.text(fixture.own(path)) == "dear")
    try fixture.rename(fixture.all("a/b/letter"), fixture.all("a/b/renamed"))
    try expectOnly("a/b/renamed", "renamed in its directory")
    try fixture.rename(fixture.all("a/b/renamed"), fixture.all("c/d/renamed"))
    try expectOnly("c/d/renamed", "moved to another directory")
    try fixture.rename(fixture.all("c/d"), fixture.all("c/e"))
    try expectOnly("c/e/renamed", "its directory was renamed")
    try fixture.rename(fixture.all("c"), fixture.all("a/c"))
    try expectOnly("a/c/e/renamed", "what is above its directory was moved")
    #expect(try fixture.names(fixture.own("a/c/e")) == ["renamed"])
    try fixture.write("other", to: fixture.all("a/x"))
    try fixture.rename(fixture.all("a/c"), fixture.all("a/x"), exchanging: true)
    try expectOnly("a/x/e/renamed", "what is above it has changed places")
    // What has come to where it was is nothing of the app's.
    #expect(!fixture.exists(fixture.own("a/c")) && fixture.exists(fixture.all("a/c")))
    #expect(fixture.told.all == [id])
    fixture.volume.revokeGrants([id])
    #expect(!fixture.exists(fixture.own("a")))
  }

  @Test func whatIsOpenStaysOpen() throws {
    let (fixture, id) = try fixture()
    let file = open(fixture.own("a/b/letter"), O_RDWR | O_CLOEXEC)
    try #require(file >= 0)
    defer { close(file) }
    for (old, new) in [
      ("a/b/letter", "a/b/new"), ("a/b/new", "c/d/new"), ("c", "a/c"), ("a/c/d", "a/d"), ("a", "z"),
    ] {
      try fixture.rename(fixture.all(old), fixture.all(new))
      var byte: UInt8 = 0
      #expect(pread(file, &byte, 1, 0) == 1, "\(old) to \(new): \(Errno.last)")
      #expect(pwrite(file, "D", 1, 0) == 1, "\(old) to \(new): \(Errno.last)")
    }
    #expect(fixture.place(id) == "z/d/new")
    #expect(fixture.text(fixture.own("z/d/new")) == "Dear")
    fixture.volume.revokeGrants([id])
    var byte: UInt8 = 0
    #expect(pread(file, &byte, 1, 0) == -1 && Errno.last == .EPERM)
    #expect(pwrite(file, &byte, 1, 0) == -1 && Errno.last == .EPERM)
  }

  @Test func folderFollowsWithAllThatIsInIt() throws {
    let fixture = try GrantedMounts()
    try fixture.makeDirectories("a", "a/folder", "a/folder/deep", "c")
    try fixture.write("one", to: fixture.all("a/folder/deep/one"))
    let id = try fixture.grant("a/folder")
    let file = open(fixture.own("a/folder/deep/one"), O_RDONLY | O_CLOEXEC)
    let directory = open(fixture.own("a/folder/deep"), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try #require(file >= 0 && directory >= 0)
    defer { for fd in [file, directory] { close(fd) } }
    try fixture.rename(fixture.all("a/folder"), fixture.all("c/moved"))
    #expect(fixture.text(fixture.own("c/moved/deep/one")) == "one")
    #expect(!fixture.exists(fixture.own("a")))
    var byte: UInt8 = 0
    #expect(pread(file, &byte, 1, 0) == 1)
    #expect(faccessat(directory, "one", F_OK, 0) == 0)
    #expect(fixture.place(id) == "c/moved")
    // What is moved within it, or is made there, is in it.
    try fixture.rename(fixture.own("c/moved/deep"), fixture.own("c/moved/deeper"))
    try fixture.write("two", to: fixture.own("c/moved/two"))
    #expect(try fixture.names(fixture.all("c/moved")) == ["deeper", "two"])
    fixture.volume.revokeGrants([id])
    #expect(faccessat(directory, "one", F_OK, 0) == -1 && Errno.last == .ENOENT)
  }

  @Test func followsWhatItsAppRenames() throws {
    let fixture = try GrantedMounts()
    try fixture.makeDirectories("a", "c")
    try fixture.write("dear", to: fixture.all("a/letter"))
    let folder = try fixture.grant("a")
    let file = try fixture.grant("a/letter")
    try fixture.rename(fixture.own("a/letter"), fixture.own("a/report"))
    #expect(fixture.place(file) == "a/report")
    #expect(fixture.text(fixture.own("a/report")) == "dear" && !fixture.exists(fixture.own("a/letter")))
    #expect(mkdir(fixture.own("a/deep"), 0o777) == 0)
    try fixture.rename(fixture.own("a/report"), fixture.own("a/deep/report"))
    #expect(fixture.place(file) == "a/deep/report" && fixture.place(folder) == "a")
    // Another folder that it was granted is another disk to it.
    try fixture.grant("c")
    #expect(throws: Errno.EXDEV) {
      try fixture.rename(fixture.own("a/deep/report"), fixture.own("c/report"))
    }
    fixture.volume.revokeGrants([folder])
    #expect(fixture.text(fixture.own("a/deep/report")) == "dear")
    #expect(try fixture.names(fixture.own("a")) == ["deep"])
    // A file alone gets no name that is not for saving it.
    #expect(throws: Errno.EPERM) {
      try fixture.rename(fixture.own("a/deep/report"), fixture.own("a/deep/letter"))
    }
    #expect(fixture.place(file) == "a/deep/report")
  }

  @Test func stayedNameKeepsItsGrant() throws {
    let (fixture, id) = try fixture()
    // Saved from outside, by renaming another file over it.
    try fixture.write("second", to: fixture.all("a/b/.new"))
    try fixture.rename(fixture.all("a/b/.new"), fixture.all("a/b/letter"))
    #expect(fixture.text(fixture.own("a/b/letter")) == "second")
    // And that one is followed.
    try fixture.rename(fixture.all("a/b/letter"), fixture.all("c/letter"))
    #expect(fixture.place(id) == "c/letter" && fixture.text(fixture.own("c/letter")) == "second")
    // Removed and made again, with the folder.
    try fixture.rename(fixture.all("c"), fixture.all("a/b/c"))
    #expect(unlink(fixture.all("a/b/c/letter")) == 0 && rmdir(fixture.all("a/b/c/d")) == 0)
    #expect(rmdir(fixture.all("a/b/c")) == 0)
    #expect(fixture.place(id) == "a/b/c/letter" && !fixture.exists(fixture.own("a/b/c")))
    try fixture.makeDirectories("a/b/c")
    try fixture.write("third", to: fixture.all("a/b/c/letter"))
    #expect(fixture.text(fixture.own("a/b/c/letter")) == "third")
    try fixture.rename(fixture.all("a/b/c"), fixture.all("d"))
    #expect(fixture.place(id) == "d/letter" && fixture.text(fixture.own("d/letter")) == "third")
  }

  /// What was made anew under the name is what is followed, and what was there before is not.
  @Test func whatIsMadeUnderTheNameIsFollowed() throws {
    let (fixture, id) = try fixture()
    let before = try #require(fixture.volume.granted([id]).first).identity
    #expect(link(fixture.all("a/b/letter"), fixture.all("c/kept")) == 0)
    for name in ["letter", "other"] { #expect(unlink(fixture.all("a/b/\(name)")) == 0) }
    #expect(rmdir(fixture.all("a/b")) == 0)
    try fixture.makeDirectories("a/b")
    try fixture.write("new", to: fixture.all("a/b/letter"))
    let now = try #require(fixture.volume.granted([id]).first)
    #expect(now.identity != before && fixture.text(fixture.own("a/b/letter")) == "new")
    try fixture.rename(fixture.all("a/b/letter"), fixture.all("c/letter"))
    #expect(fixture.place(id) == "c/letter" && fixture.text(fixture.own("c/letter")) == "new")
    #expect(!fixture.exists(fixture.own("c/kept")))
  }

  @Test func nothingElseIsEverFoundByTheOldName() throws {
    let (fixture, id) = try fixture()
    #expect(fixture.exists(fixture.own("a/b/letter")))
    try fixture.rename(fixture.all("a/b/letter"), fixture.all("c/letter"))
    try fixture.rename(fixture.all("a/b/other"), fixture.all("a/b/letter"))
    #expect(!fixture.exists(fixture.own("a/b/letter")))
    // The same with the directory above it.
    try fixture.rename(fixture.all("c"), fixture.all("e"))
    try fixture.makeDirectories("c")
    try fixture.write("secret", to: fixture.all("c/letter"))
    #expect(!fixture.exists(fixture.own("c/letter")) && fixture.text(fixture.own("e/letter")) == "dear")
    #expect(fixture.place(id) == "e/letter")
  }

  @Test func renamesThatDoNothingMoveNothing() throws {
    let (fixture, id) = try fixture()
    #expect(link(fixture.all("a/b/letter"), fixture.all("a/b/second")) == 0)
    try fixture.rename(fixture.all("a/b/letter"), fixture.all("a/b/second"))
    #expect(fixture.place(id) == "a/b/letter" && fixture.exists(fixture.own("a/b/letter")))
    #expect(rename(fixture.all("a/b/letter"), fixture.all("missing/x")) == -1)
    #expect(fixture.place(id) == "a/b/letter")
  }

  @Test func twoGrantsOfOneNameBecomeOne() throws {
    let fixture = try GrantedMounts()
    try fixture.makeDirectories("a")
    for name in ["a/one", "a/two"] { try fixture.write(name, to: fixture.all(name)) }
    let one = try fixture.grant("a/one")
    let two = try fixture.grant("a/two", writing: false)
    try fixture.rename(fixture.all("a/one"), fixture.all("a/two"))
    #expect(fixture.place(one) == nil && fixture.place(two) == "a/two")
    #expect(fixture.volume.granted([two]).first?.isWritable == true)
    try fixture.write("new", to: fixture.own("a/two"))
    fixture.volume.revokeGrants([two])
    #expect(!fixture.exists(fixture.own("a")))
  }

  /// A backup that goes, as an editor removes it, gives its grant back to the name that it had; but not if
  /// what is there was granted since then, with less access maybe.
  @Test func grantSincePreviousNameStands() throws {
    let (fixture, id) = try fixture()
    try fixture.rename(fixture.all("a/b/letter"), fixture.all("a/b/backup"))
    try fixture.write("new", to: fixture.all("a/b/letter"))
    let second = try fixture.grant("a/b/letter", writing: false)
    #expect(unlink(fixture.all("a/b/backup")) == 0)
    #expect(fixture.place(id) == "a/b/backup" && fixture.place(second) == "a/b/letter")
    #expect(fixture.text(fixture.own("a/b/letter")) == "new")
    let file = open(fixture.own("a/b/letter"), O_WRONLY | O_CLOEXEC)
    #expect(file == -1)
  }

  @Test func allViewsOfTheAppFollow() throws {
    let fixture = try GrantedMounts(views: 3)
    try fixture.makeDirectories("a", "c")
    try fixture.write("dear", to: fixture.all("a/letter"))
    try fixture.grant("a/letter")
    for view in 1...3 { #expect(fixture.exists(fixture.own("a/letter", view: view))) }
    try fixture.rename(fixture.all("a/letter"), fixture.all("a/second"))
    for view in 1...3 { #expect(fixture.text(fixture.own("a/second", view: view)) == "dear", "\(view)") }
    try fixture.rename(fixture.all("a/second"), fixture.all("c/second"))
    for view in 1...3 {
      #expect(fixture.text(fixture.own("c/second", view: view)) == "dear", "\(view)")
      #expect(!fixture.exists(fixture.own("a", view: view)), "\(view)")
    }
  }

  /// A grant for a file, whose object is gone, gives nothing of a folder that comes to its name.
  @Test func whatMeetsIsOfTheKindThatIsThere() throws {
    let fixture = try GrantedMounts()
    try fixture.makeDirectories("folder")
    try fixture.write("x", to: fixture.all("folder/file"))
    try fixture.write("y", to: fixture.all("name"))
    let file = try fixture.grant("name")
    let folder = try fixture.grant("folder", writing: false)
    try #require(unlink(fixture.all("name")) == 0)
    try fixture.rename(fixture.all("folder"), fixture.all("name"))
    #expect(fixture.place(folder) == "name" && fixture.place(file) == nil)
    #expect(fixture.text(fixture.own("name/file")) == "x")
    #expect(throws: Errno.self) { try fixture.write("z", to: fixture.own("name/file")) }
    #expect(fixture.told.all == [file, folder])
  }

  @Test func whatIsMovedTooDeepLeavesTheViews() throws {
    let fixture = try GrantedMounts()
    try fixture.makeDirectories("folder")
    let folder = try fixture.grant("folder")
    var deep = "d"
    try fixture.makeDirectories(deep)
    for _ in 0..<GrantPath.deepest - 4 {
      deep += "/d"
      try fixture.makeDirectories(deep)
    }
    try fixture.rename(fixture.all("folder"), fixture.all("\(deep)/folder"))
    #expect(fixture.place(folder) == "\(deep)/folder" && fixture.exists(fixture.own("\(deep)/folder")))
    try fixture.makeDirectories("\(deep)/d")
    try fixture.rename(fixture.all("\(deep)/folder"), fixture.all("\(deep)/d/folder"))
    #expect(fixture.place(folder) == "\(deep)/folder" && !fixture.exists(fixture.own("\(deep)/d/folder")))
  }
}
