// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

@Suite struct CreateTests {
  private func status(_ path: String) throws -> FileStatus {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw Errno.last }
    return FileStatus(status)
  }

  @Test func laysOutTheDomainsWithOwnersAndModes() throws {
    // Modes must not depend on who calls.
    let store = try TestStore()
    let own = ProcessID.user
    for directory in [DomainTree.root] + DomainTree.directories {
      let status = try status("\(store.path)/tree/\(directory.path)")
      #expect(status.isDirectory)
      #expect(status.permissions == directory.mode, "\(directory.path)")
      #expect(status.st_uid == own)
      let admin: UInt32 = Program.isRoot ? 1 : ProcessID.group
      #expect(status.st_gid == (directory.group == .admin ? admin : ProcessID.group), "\(directory.path)")
    }
  }

  @Test func volumesAreHidden() throws {
    let store = try TestStore()
    let volumes = try TemporaryDirectory.open(store.path + "/tree/Volumes")
    let network = try TemporaryDirectory.open(store.path + "/tree/Network")
    let access = SecurityAccess.store(Metadata(isSystem: TestStore.description.mode == .system))
    #expect(try access.flags(of: volumes.fd) == .hidden && access.flags(of: network.fd).isEmpty)
  }

  @Test func keepsEverybodyElseOut() throws {
    let store = try TestStore()
    for part in ["", "/keys", "/state"] { #expect(try status(store.path + part).permissions == 0o700) }
    #expect(try status(store.path + "/store.plist").permissions == 0o600)
  }

  @Test func holdsNothingBesidesItsParts() throws {
    let store = try TestStore()
    #expect(try store.temporary.names() == ["store"])
    #expect(try store.temporary.names(in: "store") == ["keys", "state", "store.plist", "tree"])
  }

  @Test func descriptionComesBackAsItWas() throws {
    let temporary = try TemporaryDirectory()
    let description = TestStore.description
    try Store.create(at: temporary.appending("store"), description)
    #expect(try Store(opening: temporary.appending("store"), .inspect).description == description)
  }

  @Test func descriptionIsForPeopleToRead() throws {
    let store = try TestStore()
    let text = try #require(store.temporary.text(of: "store/store.plist"))
    for word in [
      "<?xml", "<key>Format</key>", "<integer>1</integer>", "<key>UUID</key>", "<key>AdminGroup</key>",
    ] {
      #expect(text.contains(word))
    }
  }

  @Test func storeThatIsThereStaysAsItIs() throws {
    let store = try TestStore()
    let before = store.temporary.text(of: "store/store.plist")
    #expect(throws: StoreError.alreadyAStore(path: store.path)) {
      try Store.create(at: store.path, TestStore.description)
    }
    #expect(store.temporary.text(of: "store/store.plist") == before)
  }

  @Test func emptyDirectoryIsUsed() throws {
    let temporary = try TemporaryDirectory()
    try temporary.makeDirectory("store", mode: 0o777)
    // A disk of its own has this one.
    try temporary.makeDirectory("store/lost+found")
    try Store.create(at: temporary.appending("store"), TestStore.description)
    _ = try Store(opening: temporary.appending("store"), .exclusive)
    #expect(try status(temporary.appending("store")).permissions == 0o700)
    #expect(try temporary.names(in: "store") == ["keys", "lost+found", "state", "store.plist", "tree"])
  }

  @Test func directoryWithSomethingInItIsRefusedAndUntouched() throws {
    let temporary = try TemporaryDirectory()
    try temporary.makeDirectory("store")
    try temporary.write("mine", to: "store/file")
    let path = temporary.appending("store")
    #expect(throws: StoreError.notEmpty(path: path)) { try Store.create(at: path, TestStore.description) }
    #expect(try temporary.names(in: "store") == ["file"])
    #expect(try status(path).permissions == 0o755)
  }

  @Test func fileInThePlaceOfTheStoreIsRefused() throws {
    let temporary = try TemporaryDirectory()
    let path = try temporary.write("mine", to: "store")
    #expect(throws: StoreError.notAStore(path: path, reason: "it is not a directory")) {
      try Store.create(at: path, TestStore.description)
    }
    #expect(temporary.text(of: "store") == "mine")
  }

  @Test func missingParentIsNamed() throws {
    let temporary = try TemporaryDirectory()
    let parent = temporary.appending("nowhere")
    #expect(throws: StoreError.failed(doing: "create a store in", path: parent, errno: .ENOENT)) {
      try Store.create(at: parent + "/store", TestStore.description)
    }
  }

  @Test(arguments: ["with blank", "ümläut", "new\nline", "-dash", "<&>"])
  func oddNamesAreNamesLikeAnyOther(name: String) throws {
    let temporary = try TemporaryDirectory()
    try Store.create(at: temporary.appending(name), TestStore.description)
    #expect(try Store(opening: temporary.appending(name), .exclusive).path == temporary.appending(name))
  }

  @Test func nameThatIsTooLongIsRefusedByName() throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.appending(String(repeating: "x", count: 250))
    #expect(throws: StoreError.failed(doing: "create the store", path: path, errno: .ENAMETOOLONG)) {
      try Store.create(at: path, TestStore.description)
    }
    #expect(try temporary.names() == [])
  }

  @Test func leftoversOfAKilledAttemptAreCleared() throws {
    let temporary = try TemporaryDirectory()
    // No process has this number: it is above the kernel's greatest.
    try temporary.makeDirectory(".store.unfinished-2000000000")
    try temporary.makeDirectory(".store.unfinished-2000000000/tree")
    try temporary.makeDirectory(".store.unfinished-1")
    try temporary.makeDirectory(".store.unfinished-x")
    try Store.create(at: temporary.appending("store"), TestStore.description)
    // That of a process that runs may be at work, and what is not ours by its name stays.
    #expect(try temporary.names() == [".store.unfinished-1", ".store.unfinished-x", "store"])
  }

  /// The name says that it is left where nobody else can give it.
  @Test func whatOthersMayHaveNamedStays() throws {
    let temporary = try TemporaryDirectory()
    let left = ".store.unfinished-2000000000"
    try temporary.makeDirectory(left)
    try temporary.write("thesis", to: "\(left)/thesis")
    #expect(chmod(temporary.path, 0o777) == 0)
    try Store.create(at: temporary.appending("store"), TestStore.description)
    #expect(temporary.text(of: "\(left)/thesis") == "thesis")
    if ProcessID.user == 0 {
      #expect(chmod(temporary.path, 0o755) == 0 && chown(temporary.appending(left), 65_534, 65_534) == 0)
      #expect(rename(temporary.appending("store"), temporary.appending("first")) == 0)
      try Store.create(at: temporary.appending("store"), TestStore.description)
      #expect(temporary.text(of: "\(left)/thesis") == "thesis")
    }
  }

  @Test func storeThatIsHalfMadeInPlaceIsFinishedByTheNextAttempt() throws {
    let temporary = try TemporaryDirectory()
    try temporary.makeDirectory("store")
    try temporary.write("", to: "store/unfinished")
    try temporary.makeDirectory("store/tree", mode: 0o700)
    let path = temporary.appending("store")
    #expect(throws: StoreError.halfMade(path: path)) { _ = try Store(opening: path, .inspect) }
    try Store.create(at: path, TestStore.description)
    #expect(try temporary.names(in: "store") == ["keys", "state", "store.plist", "tree"])
    _ = try Store(opening: path, .exclusive)
  }

  @Test(.enabled(if: Program.isRoot, "a small disk needs root"), arguments: [3, 10, 30])
  func fullDiskIsNamedAndNothingIsLeft(files: Int) throws {
    let disk = try SmallDisk(bytes: 1 << 20, files: files)
    let path = disk.path + "/store"
    #expect(throws: StoreError.noSpace(path: path)) { try Store.create(at: path, TestStore.description) }
    let left = try TemporaryDirectory.open(disk.path)
    #expect(try left.fd.entries().isEmpty)
  }

  @Test(.enabled(if: Program.isRoot, "a read-only disk needs root"))
  func readOnlyDiskIsNamed() throws {
    let disk = try SmallDisk(bytes: 1 << 20, files: 100)
    try disk.remount(readOnly: true)
    let path = disk.path + "/store"
    #expect(throws: StoreError.readOnly(path: path)) { try Store.create(at: path, TestStore.description) }
  }
}
