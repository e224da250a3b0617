// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// A disk that is nearly full: what fails has changed nothing.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct FullDiskTests {
  /// A store on a small disk, which can be filled.
  private struct Fixture {
    let disk: Ext4
    let apps: AppFixture
    var container: String { "\(apps.store)/tree/\(AppFixture.container)" }
    private var filler: String { disk.path + "/filler" }

    init() throws {
      disk = try Ext4(megabytes: 24)
      apps = try AppFixture(isMounted: true, store: disk.path + "/store")
    }

    /// Leaves so many KiB.
    func fill(leaving kibibytes: Int) throws {
      sync()
      let file = open(filler, O_WRONLY | O_CREAT, 0o600)
      defer { close(file) }
      var size = 0
      for step in [1 << 20, 1 << 12] {
        let bytes = [UInt8](repeating: 7, count: step)
        while write(file, bytes, step) == step { size += step }
        guard Errno.last == .ENOSPC else { throw Errno.last }
        // A short write has taken some of the room.
        size = Int(lseek(file, 0, SEEK_END))
      }
      guard ftruncate(file, off_t(max(size - kibibytes << 10, 0))) == 0 else { throw Errno.last }
      sync()
    }

    /// Leaves so many files that can be made.
    func useUpInodes(leaving free: Int) throws {
      let directory = disk.path + "/empty"
      guard mkdir(directory, 0o700) == 0 || Errno.last == .EEXIST else { throw Errno.last }
      var number = 0
      while true {
        let file = open("\(directory)/\(number)", O_WRONLY | O_CREAT | O_EXCL, 0o600)
        if file < 0 {
          guard Errno.last == .ENOSPC else { throw Errno.last }
          break
        }
        close(file)
        number += 1
      }
      for left in 0..<free { unlink("\(directory)/\(number - 1 - left)") }
    }

    func empty() throws {
      unlink(filler)
      if access(disk.path + "/empty", F_OK) == 0 {
        try FileManager.default.removeItem(atPath: disk.path + "/empty")
      }
      sync()
    }

    func look<Result>(_ body: (Registry) throws -> Result) throws -> Result {
      let opened = try Store(opening: apps.store, .inspect)
      return try body(Registry(state: opened.state, path: apps.store + "/state"))
    }

    /// The directory that the registry takes for the container, and the one that is in its place.
    func identities() throws -> (noted: ObjectIdentity?, found: ObjectIdentity) {
      let opened = try Store(opening: apps.store, .inspect)
      let registry = try Registry(state: opened.state, path: apps.store + "/state")
      let identifier = try #require(AppIdentifier("com.example.editor"))
      let noted = try registry.containers(
        kind: .data, identifier: identifier, user: 65534, isMarkedForRemoval: false)
      let directory = try TemporaryDirectory.open(container)
      return (
        noted.first?.identity, ObjectIdentity(try directory.fd.status(), of: directory.fd)
      )
    }
  }

  @Test(arguments: [["import"], ["backup", "import"]])
  func importThatFailsChangesNothing(words: [String]) throws {
    let fixture = try Fixture()
    let apps = fixture.apps
    let home = try String(apps.nobody("path", "com.example.editor", "home").output.dropLast())
    try apps.shell("echo new >Documents/new", in: home)
    let package = apps.mounted.temporary.appending("Editor.xcappdata")
    let exporting =
      words.count == 1
      ? try apps.nobody("export", "com.example.editor", package)
      : try apps.nobody("backup", "export", package, "com.example.editor")
    #expect(exporting.status == 0, "\(exporting.errors)")
    try apps.shell("rm Documents/new; echo own >Documents/own", in: home)
    var failures = 0
    for room in stride(from: 0, through: 160, by: 4) {
      try fixture.fill(leaving: room)
      let result = try apps.nobody(words + [package, "--replace"])
      try fixture.empty()
      let names = try FileManager.default.contentsOfDirectory(atPath: fixture.container + "/Data/Documents")
      let identities = try fixture.identities()
      #expect(identities.noted == identities.found, "with \(room) KiB: \(result.errors)")
      if result.status == 0 {
        #expect(names.contains("new") && !names.contains("own"), "with \(room) KiB: \(names)")
        try apps.shell("rm Documents/new; echo own >Documents/own", in: home)
      } else {
        failures += 1
        #expect(names.contains("own") && !names.contains("new"), "with \(room) KiB: \(result.errors)")
      }
    }
    #expect(failures > 1, "the disk was never full")
    #expect(try apps.nobody(words + [package, "--replace"]).status == 0)
    #expect(try apps.problems().isEmpty)
  }

  /// Whatever a full disk stops, the list of apps is as the tree is, and the store can be mounted.
  @Test(arguments: ["inodes", "blocks"]) func removalOnAFullDiskIsWholeOrNot(lacking what: String) throws {
    let fixture = try Fixture()
    let apps = fixture.apps
    let bundle = "\(apps.store)/tree/Applications/Editor.app"
    let app = try #require(
      try fixture.look { try $0.apps() }.first { $0.identifier.text == "com.example.editor" })
    var removed = 0
    for step in 0..<6 {
      if what == "inodes" {
        try fixture.useUpInodes(leaving: step)
      } else {
        try fixture.fill(leaving: step * 4)
      }
      let result = try apps.mounted.run(
        "uninstall", "com.example.editor", "--keep-data", "--store", apps.store)
      #expect(try apps.mounted.unmount().status == 0)
      try apps.mounted.mount()
      let isThere = access(bundle, F_OK) == 0
      #expect(result.ending == (isThere ? .failed : .ok), "with \(step): \(result)")
      let known = try fixture.look { try $0.apps() }.map(\.identifier)
      #expect(known.contains(app.identifier) == isThere, "with \(step)")
      let intents = try fixture.look { try $0.intents() }
      #expect(intents.isEmpty, "with \(step)")
      try fixture.empty()
      guard !isThere else { continue }
      removed += 1
      try FileManager.default.createDirectory(atPath: bundle, withIntermediateDirectories: true)
      try fixture.look { try $0.add(app) }
      #expect(try apps.mounted.unmount().status == 0)
      try apps.mounted.mount()
    }
    #expect(removed > 0, "there was never room")
  }

  /// What can't be completed yet is served all the same, and nobody changes it meanwhile.
  @Test func storeIsServedWhoseRecoveryMustWait() throws {
    let fixture = try Fixture()
    let apps = fixture.apps
    #expect(try apps.mounted.unmount().status == 0)
    let known = try #require(
      try fixture.look { try $0.apps() }.first { $0.identifier.text == "com.example.roots" })
    try fixture.look { registry in
      _ = try registry.remove(known.identifier, of: known.user, keepingData: true)
      // It was stopped, so nobody is at it.
      registry.leave(try registry.begin(.install(known)))
    }
    unlink(apps.store + "/state/insula.db-journal")
    try fixture.useUpInodes(leaving: 0)
    let mounted = try apps.mounted.run("mount", apps.store, apps.mounted.point)
    #expect(mounted.status == 0)
    #expect(
      mounted.errors.contains("can't complete a change of an app that was interrupted"), "\(mounted.errors)")
    #expect(try apps.nobody("apps").status == 0)
    for name in ["Editor.app", "R.app"] {
      let made = mkdir(apps.mounted.path("Applications/\(name)/more"), 0o755)
      #expect(made != 0)
      // What stands for bundles here was never signed, so nothing in it is for use.
      #expect(Errno.last == .EIO, "\(name): \(Errno.last)")
    }
    let checked = try apps.mounted.run("check", apps.store).output
    #expect(
      checked.contains("R.app is being installed: com.example.roots; or that was interrupted"), "\(checked)")
    try fixture.empty()
    _ = try apps.mounted.run("uninstall", "com.example.editor", "--keep-data", "--store", apps.store)
    #expect(try fixture.look { try $0.intents() }.isEmpty)
  }
}
