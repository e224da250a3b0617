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

/// What `insula check --repair` puts right in homes and containers.
@Suite struct HomeRepairTests {
  private let fixture: TestFixture

  init() throws { fixture = try TestFixture() }

  private func findings(repairing: Bool = false) throws -> [Finding] {
    var check = try StoreCheck(fixture.store, repairing: repairing)
    try check.run()
    return check.findings
  }

  /// Finds things at these places of the home alone, repairs them, and finds nothing any more.
  private func expectRepair(_ paths: [String], _ problem: String) throws {
    let places = paths.map { $0.isEmpty ? fixture.home : "\(fixture.home)/\($0)" }
    let found = try findings()
    #expect(found.map(\.path) == places && found.allSatisfy { !$0.repaired })
    #expect(found.allSatisfy { $0.problem.contains(problem) && $0.advice.contains("insula check --repair") })
    #expect(try findings().count == found.count, "looking changes nothing")
    #expect(try findings(repairing: true).allSatisfy(\.repaired))
    #expect(try findings().isEmpty)
  }

  private func mode(_ path: String) -> UInt32 {
    var status = stat()
    #expect(lstat("\(fixture.home)/\(path)", &status) == 0)
    return status.st_mode & 0o7777
  }

  @Test func missingDirectoriesAreMade() throws {
    #expect(
      removeMarked(fixture.home + "/Public/Drop Box") == 0 && removeMarked(fixture.home + "/Public") == 0)
    #expect(removeMarked(fixture.home + "/Movies") == 0)
    try expectRepair(["Movies", "Public", "Public/Drop Box"], "is missing from the home")
    #expect(mode("Public/Drop Box") == 0o733 && mode("Movies") == 0o700)
  }

  @Test func modesThatNobodyCanWantAreCorrected() throws {
    #expect(chmod(fixture.home + "/Documents", 0o777) == 0)
    try expectRepair(["Documents"], "has mode 0777, so everyone may write to it")
    #expect(mode("Documents") == 0o775)
    #expect(chmod(fixture.home + "/Music", 0o300) == 0)
    try expectRepair(["Music"], "has mode 0300, so its owner can't use it")
    #expect(mode("Music") == 0o700)
  }

  @Test func whatTheOwnerMayChooseIsNoFinding() throws {
    #expect(chmod(fixture.home + "/Documents", 0o755) == 0 && chmod(fixture.home + "/Pictures", 0o770) == 0)
    #expect(chmod(fixture.home + "/Public", 0o700) == 0 && chmod(fixture.home, 0o700) == 0)
    let library = try TemporaryDirectory.open(fixture.home + "/Library")
    try Metadata(isSystem: Program.isRoot).setFlags([], on: library.fd)
    #expect(try findings(repairing: true).isEmpty)
    #expect(mode("Documents") == 0o755 && mode("Pictures") == 0o770)
  }

  /// What a copy without attributes has lost.
  @Test func lostACLsAndFlagsComeBack() throws {
    let metadata = Metadata(isSystem: Program.isRoot)
    for path in ["Library", "Public/Drop Box", ""] {
      let object = try TemporaryDirectory.open("\(fixture.home)/\(path)")
      try metadata.setACL(nil, on: object.fd)
      try metadata.setFlags([], on: object.fd)
    }
    try expectRepair(["Library", "Public/Drop Box", ""], "lacks what the ACL of a new one says")
    let library = try TemporaryDirectory.open(fixture.home + "/Library")
    #expect(try metadata.security(of: library.fd).flags == .hidden)
  }

  @Test func entriesOfOthersStay() throws {
    let metadata = Metadata(isSystem: Program.isRoot)
    let documents = try TemporaryDirectory.open(fixture.home + "/Documents")
    let theirs = AccessControlEntry(.permit, .user(7), .read)
    try metadata.setACL(AccessControlList([theirs]), on: documents.fd)
    try expectRepair(["Documents"], "lacks what the ACL")
    #expect(
      try metadata.security(of: documents.fd).acl
        == .acl(AccessControlList(HomeDirectory.staying.entries + [theirs])))
  }

  @Test func attributesThatCannotBeReadAreThoseOfANewHome() throws {
    let metadata = Metadata(isSystem: Program.isRoot)
    #expect(setxattr(fixture.home + "/Desktop", "\(metadata.aclName)", "no list", 7, 0) == 0)
    #expect(setxattr(fixture.home + "/Sites", "\(metadata.flagsName)", "x", 1, 0) == 0)
    try expectRepair(["Desktop", "Sites"], "can't be read")
  }

  @Test(.enabled(if: Program.isRoot, "giving files away needs root"))
  func directoriesGoBackToTheirOwner() throws {
    #expect(chown(fixture.home + "/Documents", 0, 0) == 0)
    try expectRepair(["Documents"], "belongs to uid 0 instead of")
  }

  /// A home's owner gives any directory in it a standard name, also one that is closed to them.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root"), arguments: [0, 1] as [UInt32])
  func directoriesOfOthersStayTheirs(owner: UInt32) throws {
    // Of nobody who is there the home's owner gets it.
    let nobodys = fixture.home + "/Movies/clip"
    #expect(close(open(nobodys, O_CREAT | O_WRONLY, 0o600)) == 0)
    #expect(chown(fixture.home + "/Movies", 3_999_999_998, 3_999_999_998) == 0)
    try expectRepair(["Movies"], "belongs to uid 3999999998 instead of")
    let place = fixture.home + "/Documents"
    #expect(close(open(place + "/secret", O_CREAT | O_WRONLY, 0o644)) == 0)
    #expect(chown(place, owner, owner) == 0 && chmod(place, 0o700) == 0)
    let directory = try TemporaryDirectory.open(place)
    try Metadata(isSystem: Program.isRoot).setACL(nil, on: directory.fd)
    for repairing in [false, true] {
      let found = try findings(repairing: repairing)
      #expect(found.map(\.path) == [place] && found.first?.repaired == false)
      #expect(found.first?.problem.contains("and something is in it") == true)
    }
    let status = try directory.fd.status()
    #expect(status.st_uid == owner && status.permissions == 0o700)
    #expect(try Metadata(isSystem: Program.isRoot).security(of: directory.fd).acl == .none)
  }

  /// The service that knows their accounts may be away.
  @Test(.enabled(if: Program.isRoot, "giving files away needs root"), arguments: ["there", "ejected"])
  func directoriesOfOwnersOfHomesStayTheirs(home: String) throws {
    let owner: UInt32 = 3_999_999_997
    let registry = try Registry(of: fixture.store)
    if home == "there" {
      let other = try fixture.made.temporary.makeDirectory("store/tree/Users/other")
      #expect(chown(other, owner, owner) == 0)
    } else {
      let volume = try registry.add(
        VolumeRecord(
          in: .users, name: Array("other".utf8), path: Array("/insula-test-home".utf8),
          identity: ObjectIdentity(inode: 1, handle: [], created: 1), owner: nil, isReadOnly: false,
          added: 1))
      try registry.note(owner: owner, ofHome: volume.id)
      try registry.ejectHome(volume)
    }
    let place = fixture.home + "/Movies"
    #expect(close(open(place + "/clip", O_CREAT | O_WRONLY, 0o600)) == 0)
    #expect(chown(place, owner, owner) == 0)
    for repairing in [false, true] {
      let found = try findings(repairing: repairing).filter { $0.path == place }
      #expect(found.count == 1 && found.first?.repaired == false)
      #expect(found.first?.problem.contains("and something is in it") == true)
    }
    let directory = try TemporaryDirectory.open(place)
    #expect(try directory.fd.status().st_uid == owner)
  }

  @Test(arguments: ["link", "fifo", "file"])
  func whatSomebodyHasPutThereStays(kind: String) throws {
    let outside = try fixture.made.temporary.makeDirectory("outside", mode: 0o711)
    let place = fixture.home + "/Downloads"
    #expect(removeMarked(place) == 0)
    switch kind {
    case "link": #expect(symlink(outside, place) == 0)
    case "fifo": #expect(mkfifo(place, 0o644) == 0)
    default: #expect(close(open(place, O_CREAT | O_WRONLY, 0o644)) == 0)
    }
    for repairing in [false, true] {
      let found = try findings(repairing: repairing)
      #expect(found.map(\.path) == [place] && found.first?.repaired == false)
      #expect(found.first?.advice.hasPrefix("move it away") == true)
    }
    var status = stat()
    #expect(stat(outside, &status) == 0 && status.st_mode & 0o7777 == 0o711)
  }

  @Test func remaindersGo() throws {
    let ended = try Program.run(["sh", "-c", "echo $$"]).output.dropLast()
    for name in [".x.removed-\(ended)", ".y.new-\(ProcessID.own)"] {
      try fixture.made.temporary.makeDirectory("store/tree/Users/\(name)")
    }
    let repaired = try findings(repairing: true).filter(\.repaired).map(\.path)
    #expect(repaired == ["\(fixture.made.path)/tree/Users/.x.removed-\(ended)"])
    #expect(try findings().count == 1)
  }

  @Test func containersAreCompleted() throws {
    var app = try InstalledApp.example(groups: ["group.com.example"])
    app.path = "Applications/Editor.app"
    try fixture.registry.add(app)
    try fixture.made.temporary.makeDirectory("store/tree/Applications/Editor.app")
    _ = try fixture.containers().make(for: app, home: fixture.account.name)
    #expect(try findings().isEmpty)
    let container = fixture.home + "/Library/Containers/com.example.editor"
    for name in ["Data/tmp", "Data/Library/Caches"] {
      try FileManager.default.removeItem(atPath: "\(container)/\(name)")
    }
    #expect(unlink("\(container)/\(ContainerLayout.metadataName)") == 0)
    #expect(try findings().count == 3)
    #expect(try findings(repairing: true).allSatisfy(\.repaired))
    #expect(try findings().isEmpty)
    // What stands in the way stays.
    try FileManager.default.removeItem(atPath: "\(container)/Data/tmp")
    #expect(symlink("/nonexistent", "\(container)/Data/tmp") == 0)
    let found = try findings(repairing: true)
    #expect(found.map(\.path) == ["\(container)/Data/tmp"] && found.first?.repaired == false)
    #expect(found.first?.problem.contains("is a symbolic link") == true)
  }
}
