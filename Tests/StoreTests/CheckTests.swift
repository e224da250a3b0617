// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

@Suite struct CheckTests {
  private let store: TestStore

  init() throws { store = try TestStore() }

  private func findings(repairing: Bool = false) throws -> [Finding] {
    var check = try StoreCheck(try store.open(repairing ? .mending : .inspect), repairing: repairing)
    try check.run()
    return check.findings
  }

  /// Finds exactly one thing, repairs it, and finds nothing any more.
  private func expectRepair(_ path: String, _ problem: String) throws {
    let found = try findings()
    #expect(found.map(\.path) == ["\(store.path)/\(path)"])
    #expect(found.first?.problem.contains(problem) == true)
    #expect(found.first?.repaired == false)
    #expect(try findings().count == 1, "looking changes nothing")
    #expect(try findings(repairing: true).map(\.repaired) == [true])
    #expect(try findings().isEmpty)
  }

  @Test func newStoreIsWhole() throws {
    #expect(try findings().isEmpty)
  }

  @Test(arguments: [0o755, 0o711, 0o777, 0o1777, 0o770] as [mode_t])
  func storeThatIsOpenToOthersIsClosed(mode: mode_t) throws {
    #expect(chmod(store.path, mode) == 0)
    let found = try findings()
    #expect(found.map(\.path) == [store.path] && found.first?.severity == .failure, "\(found)")
    #expect(try findings(repairing: true).map(\.repaired) == [true])
    #expect(try findings().isEmpty)
    var status = FileStatus()
    #expect(stat(store.path, &status) == 0 && status.permissions == 0o700)
  }

  @Test func directoryInWhichOthersMayRenameTheStoreIsNamed() throws {
    #expect(chmod(store.temporary.path, 0o777) == 0)
    let found = try findings()
    #expect(found.map(\.path) == [store.temporary.path], "\(found)")
    for access in [.mending, .exclusive, .serving, .exclusiveReadOnly] as [Store.Access] {
      let refusal = #expect(throws: StoreError.self) { _ = try store.open(access) }
      guard case .exchangeable(store.path, let finding) = refusal else {
        Issue.record("\(access): \(String(describing: refusal))")
        continue
      }
      #expect(finding.path == store.temporary.path && finding.problem == .writable)
    }
    #expect(chmod(store.temporary.path, 0o1777) == 0)
    #expect(try findings().isEmpty)
  }

  @Test func whatEarlierStoresLackIsMade() throws {
    let missing = ["Application Support", "Caches", "Frameworks", "Preferences"].map {
      "\(store.path)/tree/System/Library/\($0)"
    }
    for path in missing { #expect(rmdir(path) == 0) }
    let volumes = try TemporaryDirectory.open(store.path + "/tree/Volumes")
    let access = SecurityAccess.store(Metadata(isSystem: TestStore.description.mode == .system))
    try access.setFlags([], on: volumes.fd)
    let found = try findings()
    #expect(found.map(\.path) == missing + [store.path + "/tree/Volumes"])
    #expect(found.allSatisfy { $0.severity == .warning && $0.advice.contains("insula check --repair") })
    #expect(try findings(repairing: true).allSatisfy(\.repaired))
    #expect(try findings().isEmpty && access.flags(of: volumes.fd) == .hidden)
  }

  @Test(arguments: ["tree/stray", "tree/.stray", "odd", "tree/System2"]) func straysAreNamed(name: String)
    throws
  {
    try store.temporary.makeDirectory("store/\(name)")
    let found = try findings(repairing: true)
    #expect(found.map(\.path) == ["\(store.path)/\(name)"] && found.first?.repaired == false)
    #expect(rmdir("\(store.path)/\(name)") == 0)
    #expect(try findings().isEmpty)
  }

  /// Users make trees as deep as they like; a walk that began at the top for each directory took ten minutes
  /// here.
  @Test(.mayTake(seconds: 240)) func deepTreesAreWalkedOnce() throws {
    try store.temporary.makeDirectory("store/tree/Users/Shared/deep")
    var directory = try FD.cwd.openFollowing(store.path + "/tree/Users/Shared/deep", O_RDONLY | O_DIRECTORY)
    for _ in 0..<40_000 {
      try "d".withName { (name) throws(Errno) in try directory.fd.makeDirectory(name, mode: 0o755) }
      directory = try directory.fd.openDirectory("d")
    }
    #expect(try findings().isEmpty)
    // What is found at the end has its whole path.
    let attribute = Program.isRoot ? "trusted.insula.acl" : "user.insula.acl"
    #expect(fsetxattr(directory.fd.raw, attribute, "no list", 7, 0) == 0)
    let length = "\(store.path)/tree/Users/Shared/deep".utf8.count + 2 * 40_000
    #expect(try findings().map(\.path.utf8.count) == [length])
  }

  @Test func missingDirectory() throws {
    #expect(rmdir(store.path + "/tree/Library/Caches") == 0)
    try expectRepair("tree/Library/Caches", "is missing")
  }

  @Test func missingParentAndChildrenAreMadeInOneGo() throws {
    #expect(rmdir(store.path + "/tree/Users/Shared") == 0)
    #expect(rmdir(store.path + "/tree/Users") == 0)
    #expect(try findings().count == 2)
    #expect(try findings(repairing: true).allSatisfy(\.repaired))
    #expect(try findings().isEmpty)
  }

  @Test func wrongMode() throws {
    #expect(chmod(store.path + "/tree/Users/Shared", 0o777) == 0)
    try expectRepair("tree/Users/Shared", "has mode 0777 instead of 01777")
  }

  @Test func keysOpenToOthers() throws {
    #expect(chmod(store.path + "/keys", 0o755) == 0)
    try expectRepair("keys", "has mode 0755 instead of 0700")
  }

  @Test(.enabled(if: Program.isRoot, "giving files away needs root"))
  func wrongOwner() throws {
    #expect(chown(store.path + "/tree/Applications", 65534, 65534) == 0)
    try expectRepair("tree/Applications", "belongs to 65534:65534 instead of 0:1")
  }

  @Test func fileInThePlaceOfADirectoryIsNotRepairedAway() throws {
    #expect(rmdir(store.path + "/tree/Volumes") == 0)
    try store.temporary.write("mine", to: "store/tree/Volumes")
    #expect(try findings(repairing: true).map(\.repaired) == [false])
    #expect(store.temporary.text(of: "store/tree/Volumes") == "mine")
  }

  @Test func linkInThePlaceOfADirectoryIsNotFollowed() throws {
    try store.temporary.makeDirectory("outside", mode: 0o711)
    #expect(rmdir(store.path + "/tree/Volumes") == 0)
    #expect(symlink(store.temporary.appending("outside"), store.path + "/tree/Volumes") == 0)
    #expect(try findings(repairing: true).map(\.problem) == ["is not a directory"])
    var status = stat()
    #expect(stat(store.temporary.appending("outside"), &status) == 0)
    #expect(status.st_mode & 0o7777 == 0o711)
  }

  @Test func parentThatIsNoDirectoryIsNotWalkedThrough() throws {
    for name in ["Applications/Utilities", "Applications"] {
      #expect(rmdir("\(store.path)/tree/\(name)") == 0)
    }
    try store.temporary.write("mine", to: "store/tree/Applications")
    let found = try findings(repairing: true)
    #expect(found.map(\.problem).first == "is not a directory")
    #expect(found.count == 2 && found.allSatisfy { !$0.repaired })
  }

  @Test func homeThatLacksSomethingAndLeftovers() throws {
    try store.temporary.makeDirectory("store/tree/Users/someone")
    try store.temporary.makeDirectory("store/tree/Users/.someone.removed-77")
    let found = try findings()
    #expect(found.allSatisfy { $0.severity == .warning })
    #expect(found.filter { $0.path.contains("/Users/someone/") }.count == HomeDirectory.all.count)
    #expect(found.contains { $0.path.hasSuffix("/.someone.removed-77") })
  }

  @Test(.enabled(if: Program.isRoot, "devices and mounts need root"))
  func deviceNodesAndMounts() throws {
    // Root may keep them in the tree, and not in the system domain.
    #expect(mknod(store.path + "/tree/Users/Shared/null", S_IFCHR | 0o666, 0x103) == 0)
    #expect(mknod(store.path + "/tree/System/Library/null", S_IFCHR | 0o666, 0x103) == 0)
    try store.temporary.makeDirectory("store/tree/Volumes/disk")
    #expect(mount("tmpfs", store.path + "/tree/Volumes/disk", "tmpfs", 0, nil) == 0)
    let found = try findings()
    #expect(found.count == 2 && found.allSatisfy { $0.severity == .failure })
    #expect(found.contains { $0.path.hasSuffix("/Library/null") && $0.problem.contains("device") })
    #expect(found.contains { $0.path.hasSuffix("/Volumes/disk") && $0.problem.contains("mount of") })
  }

  @Test(.enabled(if: Program.isRoot, "giving files away needs root"))
  func homeWithoutAnAccount() throws {
    try store.temporary.makeDirectory("store/tree/Users/gone")
    #expect(chown(store.path + "/tree/Users/gone", 4_000_000_001, 4_000_000_001) == 0)
    #expect(try findings().contains { $0.problem.contains("which no account has") })
  }

  @Test func damagedACLsAndFlags() throws {
    let file = try store.temporary.write("x", to: "store/tree/Users/Shared/file")
    let prefix = Program.isRoot ? "trusted.insula." : "user.insula."
    #expect(setxattr(file, prefix + "acl", "no list", 7, 0) == 0)
    #expect(setxattr(file, prefix + "flags", "x", 1, 0) == 0)
    // What can be read is no finding.
    let fine = try store.temporary.makeDirectory("store/tree/Users/Shared/fine")
    let list = AccessControlList([AccessControlEntry(.deny, .everyone, .delete)]).filesec
    #expect(setxattr(fine, prefix + "acl", list, list.count, 0) == 0)
    #expect(setxattr(fine, prefix + "flags", [0, 2, 0, 0], 4, 0) == 0)
    // Nothing is repaired by guessing.
    for repairing in [false, true] {
      let found = try findings(repairing: repairing)
      #expect(found.map(\.path) == [file, file])
      #expect(found.allSatisfy { $0.severity == .failure && !$0.repaired })
      #expect(found.first?.advice.contains("insula acl -N MOUNT/Users/Shared/file") == true)
      #expect(found.last?.advice.contains("insula flags") == true)
    }
  }

  /// What stands in the list counts for nothing in the tree, and nobody but its owner knows.
  @Test func posixACLsAreNamed() throws {
    func make(_ name: String) throws -> String {
      let file = try store.temporary.write("x", to: "store/tree/Users/Shared/\(name)")
      try Self.givePosixACL(to: file)
      return file
    }
    let paths = [try make("a"), try make("b")]
    for repairing in [false, true] {
      let found = try findings(repairing: repairing)
      #expect(found.map(\.path).sorted() == paths)
      #expect(
        found.allSatisfy { $0.severity == .warning && !$0.repaired && $0.problem.contains("POSIX ACL") })
      #expect(found.first?.advice.contains("setfacl -b") == true)
    }
    for number in 0..<30 { _ = try make("c\(number)") }
    let found = try findings()
    #expect(found.count == 21 && found.last?.problem == "has 12 more objects with a POSIX ACL")
  }

  /// Also in homes that lie elsewhere, as far as they can be reached: two in a directory of the machine, and
  /// one on a disk.
  @Test func posixACLsInHomesElsewhereAreNamed() throws {
    let source = try store.temporary.makeDirectory("homes", mode: 0o700)
    let registry = try Registry(of: try store.open())
    let notes = VolumeNotes(of: try store.open())
    var homes: [VolumeRecord] = []
    defer { for home in homes { try? notes.remove(home) } }
    func add(_ name: String, _ kind: VolumeRecord.Kind, _ path: String) throws {
      let directory = try TemporaryDirectory.open(source)
      let home = VolumeRecord(
        in: .users, name: Array(name.utf8), kind: kind, path: Array(path.utf8),
        identity: try ObjectIdentity(directory.fd.status(), of: directory.fd), owner: nil, isReadOnly: false,
        added: 1)
      homes.append(try registry.add(home))
      try notes.add([home])
      try store.open().link(name, to: path)
    }
    var paths: [String] = []
    for name in ["anna", "ben"] {
      try add(name, .directory, source)
      try store.temporary.makeDirectory("homes/\(name)")
      try store.temporary.makeDirectory("homes/\(name)/deep")
      paths += [
        name == "ben" ? "\(source)/ben" : try store.temporary.write("x", to: "homes/anna/f"),
        try store.temporary.write("x", to: "homes/\(name)/deep/g"),
      ]
      _ = try store.temporary.write("x", to: "homes/\(name)/without")
    }
    for path in paths { try Self.givePosixACL(to: path) }
    let found = try findings()
    #expect(found.map(\.path).sorted() == paths.sorted())
    #expect(found.allSatisfy { $0.severity == .warning && $0.problem.contains("POSIX ACL") })
    // Each home has its own count of those that are too many to be named.
    for number in 0..<30 {
      try Self.givePosixACL(to: try store.temporary.write("x", to: "homes/anna/c\(number)"))
    }
    let many = try findings()
    #expect(many.count == 2 + 21)
    #expect(
      many.filter { $0.problem == "has 12 more objects with a POSIX ACL" }.map(\.path) == ["\(source)/anna"])
    // What can't be reached is named.
    try add("cleo", .disk, "UUID=1234")
    let disk = try #require(try findings().first { $0.path.hasSuffix("/tree/Users") })
    #expect(disk.severity == .warning && disk.problem.hasSuffix("was checked: cleo (UUID=1234)"), "\(disk)")
    try #require(rename(source, source + ".away") == 0)
    try store.temporary.makeDirectory("homes", mode: 0o700)
    let away = try findings()
    #expect(away.count == 1 && away[0].problem.contains("anna (\(source)), ben (\(source)), cleo"), "\(away)")
    // What was not added on this machine is not even looked for.
    try notes.remove(homes[1])
    let unknown = try findings()
    let isNamed = unknown.contains { $0.problem.hasSuffix("checked: ben (\(source))") }
    #expect(unknown.count == 2 && isNamed, "\(unknown)")
  }

  private static func givePosixACL(to path: String) throws {
    // For the owner, user 1, the owning group, the mask and all others.
    let entries: [(UInt16, UInt16, UInt32)] = [
      (1, 6, .max), (2, 0, 1), (4, 4, .max), (16, 4, .max), (32, 4, .max),
    ]
    var list: [UInt8] = [2, 0, 0, 0]
    for (tag, rights, id) in entries {
      for part in [[tag, rights].flatMap(Self.bytes), Self.bytes(id)] { list += part }
    }
    try #require(setxattr(path, "system.posix_acl_access", list, list.count, 0) == 0)
  }

  /// The least significant byte first.
  private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
  }

  // MARK: Apps

  @Test func appsAndContainersThatAreNotAsTheRegistrySays() throws {
    let fixture = try TestFixture()
    var app = try InstalledApp.example(groups: ["group.com.example"])
    app.path = "Applications/Editor.app"
    try fixture.registry.add(app)
    let found = try fixture.findings()
    #expect(found.map(\.path) == [fixture.path + "/tree/Applications/Editor.app"])
    #expect(found.allSatisfy { $0.severity == .failure && $0.problem.contains("com.example.editor") })
    try fixture.made.temporary.makeDirectory("store/tree/Applications/Editor.app")
    #expect(try fixture.findings().isEmpty)
    _ = try fixture.containers().make(for: app, home: fixture.account.name)
    #expect(try fixture.findings().isEmpty)
    let container = fixture.home + "/Library/Containers/com.example.editor"
    try FileManager.default.removeItem(atPath: container + "/Data/tmp")
    try fixture.made.temporary.write(
      "x",
      to: String(container.dropFirst(fixture.made.temporary.path.count + 1))
        + "/\(ContainerLayout.metadataName)")
    #expect(mkdir(fixture.home + "/Library/Group Containers/group.other", 0o700) == 0)
    #expect(
      try fixture.findings().map(\.path).sorted()
        == [
          container + "/\(ContainerLayout.metadataName)", container + "/Data/tmp",
          fixture.home + "/Library/Group Containers/group.other",
        ])
    #expect(try fixture.findings().allSatisfy { $0.severity == .warning })
    #expect(rmdir(fixture.home + "/Library/Group Containers/group.other") == 0)
    _ = try fixture.containers().make(for: app, home: fixture.account.name)
    #expect(try fixture.findings().isEmpty)
  }

  @Test func damagedRegistryIsFound() throws {
    try store.temporary.write("no database", to: "store/state/insula.db")
    let found = try findings()
    #expect(found.map(\.path) == [store.path + "/state/insula.db"])
    #expect(found.first?.severity == .failure)
  }
}
