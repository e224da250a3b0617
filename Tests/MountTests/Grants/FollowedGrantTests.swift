// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing
internal import Volume

/// What users have granted follows what it is for, on real mounts.
@Suite(.serialized, .enabled(if: Program.isRoot, "mounting takes root"))
struct FollowedGrantTests {
  /// A letter in a folder, which the app may have.
  private func house(rootless: Bool = false) throws -> (GrantedMounts, Int64) {
    let house = try GrantedMounts(rootless: rootless)
    try house.makeDirectories("a", "a/b", "c", "c/d")
    try house.write("dear", to: house.all("a/b/letter"))
    try house.write("secret", to: house.all("a/b/other"))
    return (house, try house.grant("a/b/letter"))
  }

  @Test(arguments: [false, true]) func followsRenamesAndMoves(rootless: Bool) throws {
    let (house, id) = try house(rootless: rootless)
    var path = "a/b/letter"
    func expectOnly(_ new: String, _ what: String) throws {
      #expect(house.text(house.own(new)) == "dear", "\(what)")
      #expect(!house.exists(house.own(path)), "\(what)")
      #expect(house.place(id) == new, "\(what)")
      path = new
    }
    #expect(house.text(house.own(path)) == "dear")
    try house.rename(house.all("a/b/letter"), house.all("a/b/renamed"))
    try expectOnly("a/b/renamed", "renamed in its directory")
    try house.rename(house.all("a/b/renamed"), house.all("c/d/renamed"))
    try expectOnly("c/d/renamed", "moved to another directory")
    try house.rename(house.all("c/d"), house.all("c/e"))
    try expectOnly("c/e/renamed", "its directory was renamed")
    try house.rename(house.all("c"), house.all("a/c"))
    try expectOnly("a/c/e/renamed", "what is above its directory was moved")
    #expect(try house.names(house.own("a/c/e")) == ["renamed"])
    try house.write("other", to: house.all("a/x"))
    try house.rename(house.all("a/c"), house.all("a/x"), exchanging: true)
    try expectOnly("a/x/e/renamed", "what is above it has changed places")
    // What has come to where it was is nothing of the app's.
    #expect(!house.exists(house.own("a/c")) && house.exists(house.all("a/c")))
    #expect(house.told.all == [id])
    house.volume.revokeGrants([id])
    #expect(!house.exists(house.own("a")))
  }

  @Test func whatIsOpenStaysOpen() throws {
    let (house, id) = try house()
    let file = open(house.own("a/b/letter"), O_RDWR | O_CLOEXEC)
    try #require(file >= 0)
    defer { close(file) }
    for (old, new) in [
      ("a/b/letter", "a/b/new"), ("a/b/new", "c/d/new"), ("c", "a/c"), ("a/c/d", "a/d"), ("a", "z"),
    ] {
      try house.rename(house.all(old), house.all(new))
      var byte: UInt8 = 0
      #expect(pread(file, &byte, 1, 0) == 1, "\(old) to \(new): \(Errno.last)")
      #expect(pwrite(file, "D", 1, 0) == 1, "\(old) to \(new): \(Errno.last)")
    }
    #expect(house.place(id) == "z/d/new")
    #expect(house.text(house.own("z/d/new")) == "Dear")
    house.volume.revokeGrants([id])
    var byte: UInt8 = 0
    #expect(pread(file, &byte, 1, 0) == -1 && Errno.last == .EPERM)
    #expect(pwrite(file, &byte, 1, 0) == -1 && Errno.last == .EPERM)
  }

  @Test func folderFollowsWithAllThatIsInIt() throws {
    let house = try GrantedMounts()
    try house.makeDirectories("a", "a/folder", "a/folder/deep", "c")
    try house.write("one", to: house.all("a/folder/deep/one"))
    let id = try house.grant("a/folder")
    let file = open(house.own("a/folder/deep/one"), O_RDONLY | O_CLOEXEC)
    let directory = open(house.own("a/folder/deep"), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try #require(file >= 0 && directory >= 0)
    defer { for fd in [file, directory] { close(fd) } }
    try house.rename(house.all("a/folder"), house.all("c/moved"))
    #expect(house.text(house.own("c/moved/deep/one")) == "one")
    #expect(!house.exists(house.own("a")))
    var byte: UInt8 = 0
    #expect(pread(file, &byte, 1, 0) == 1)
    #expect(faccessat(directory, "one", F_OK, 0) == 0)
    #expect(house.place(id) == "c/moved")
    // What is moved within it, or is made there, is in it.
    try house.rename(house.own("c/moved/deep"), house.own("c/moved/deeper"))
    try house.write("two", to: house.own("c/moved/two"))
    #expect(try house.names(house.all("c/moved")) == ["deeper", "two"])
    house.volume.revokeGrants([id])
    #expect(faccessat(directory, "one", F_OK, 0) == -1 && Errno.last == .ENOENT)
  }

  @Test func followsWhatItsAppRenames() throws {
    let house = try GrantedMounts()
    try house.makeDirectories("a", "c")
    try house.write("dear", to: house.all("a/letter"))
    let folder = try house.grant("a")
    let file = try house.grant("a/letter")
    try house.rename(house.own("a/letter"), house.own("a/report"))
    #expect(house.place(file) == "a/report")
    #expect(house.text(house.own("a/report")) == "dear" && !house.exists(house.own("a/letter")))
    #expect(mkdir(house.own("a/deep"), 0o777) == 0)
    try house.rename(house.own("a/report"), house.own("a/deep/report"))
    #expect(house.place(file) == "a/deep/report" && house.place(folder) == "a")
    // Another folder that it was granted is another disk to it.
    try house.grant("c")
    #expect(throws: Errno.EXDEV) {
      try house.rename(house.own("a/deep/report"), house.own("c/report"))
    }
    house.volume.revokeGrants([folder])
    #expect(house.text(house.own("a/deep/report")) == "dear")
    #expect(try house.names(house.own("a")) == ["deep"])
    // A file alone gets no name that is not for saving it.
    #expect(throws: Errno.EPERM) {
      try house.rename(house.own("a/deep/report"), house.own("a/deep/letter"))
    }
    #expect(house.place(file) == "a/deep/report")
  }

  @Test func stayedNameKeepsItsGrant() throws {
    let (house, id) = try house()
    // Saved from outside, by renaming another file over it.
    try house.write("second", to: house.all("a/b/.new"))
    try house.rename(house.all("a/b/.new"), house.all("a/b/letter"))
    #expect(house.text(house.own("a/b/letter")) == "second")
    // And that one is followed.
    try house.rename(house.all("a/b/letter"), house.all("c/letter"))
    #expect(house.place(id) == "c/letter" && house.text(house.own("c/letter")) == "second")
    // Removed and made anew, with the folder.
    try house.rename(house.all("c"), house.all("a/b/c"))
    #expect(unlink(house.all("a/b/c/letter")) == 0 && rmdir(house.all("a/b/c/d")) == 0)
    #expect(rmdir(house.all("a/b/c")) == 0)
    #expect(house.place(id) == "a/b/c/letter" && !house.exists(house.own("a/b/c")))
    try house.makeDirectories("a/b/c")
    try house.write("third", to: house.all("a/b/c/letter"))
    #expect(house.text(house.own("a/b/c/letter")) == "third")
    try house.rename(house.all("a/b/c"), house.all("d"))
    #expect(house.place(id) == "d/letter" && house.text(house.own("d/letter")) == "third")
  }

  @Test func nothingElseIsEverFoundByTheOldName() throws {
    let (house, id) = try house()
    #expect(house.exists(house.own("a/b/letter")))
    try house.rename(house.all("a/b/letter"), house.all("c/letter"))
    try house.rename(house.all("a/b/other"), house.all("a/b/letter"))
    #expect(!house.exists(house.own("a/b/letter")))
    // The same with the directory above it.
    try house.rename(house.all("c"), house.all("e"))
    try house.makeDirectories("c")
    try house.write("secret", to: house.all("c/letter"))
    #expect(!house.exists(house.own("c/letter")) && house.text(house.own("e/letter")) == "dear")
    #expect(house.place(id) == "e/letter")
  }

  @Test func renamesThatDoNothingMoveNothing() throws {
    let (house, id) = try house()
    #expect(link(house.all("a/b/letter"), house.all("a/b/second")) == 0)
    try house.rename(house.all("a/b/letter"), house.all("a/b/second"))
    #expect(house.place(id) == "a/b/letter" && house.exists(house.own("a/b/letter")))
    #expect(rename(house.all("a/b/letter"), house.all("missing/x")) == -1)
    #expect(house.place(id) == "a/b/letter")
  }

  @Test func twoGrantsOfOneNameBecomeOne() throws {
    let house = try GrantedMounts()
    try house.makeDirectories("a")
    for name in ["a/one", "a/two"] { try house.write(name, to: house.all(name)) }
    let one = try house.grant("a/one")
    let two = try house.grant("a/two", writing: false)
    try house.rename(house.all("a/one"), house.all("a/two"))
    #expect(house.place(one) == nil && house.place(two) == "a/two")
    #expect(house.volume.granted([two]).first?.isWritable == true)
    try house.write("new", to: house.own("a/two"))
    house.volume.revokeGrants([two])
    #expect(!house.exists(house.own("a")))
  }

  @Test func allViewsOfTheAppFollow() throws {
    let house = try GrantedMounts(views: 3)
    try house.makeDirectories("a", "c")
    try house.write("dear", to: house.all("a/letter"))
    try house.grant("a/letter")
    for view in 1...3 { #expect(house.exists(house.own("a/letter", view: view))) }
    try house.rename(house.all("a/letter"), house.all("a/second"))
    for view in 1...3 { #expect(house.text(house.own("a/second", view: view)) == "dear", "\(view)") }
    try house.rename(house.all("a/second"), house.all("c/second"))
    for view in 1...3 {
      #expect(house.text(house.own("c/second", view: view)) == "dear", "\(view)")
      #expect(!house.exists(house.own("a", view: view)), "\(view)")
    }
  }
}
