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

    func empty() {
      unlink(filler)
      sync()
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

  @Test func importThatFailsChangesNothing() throws {
    let fixture = try Fixture()
    let apps = fixture.apps
    let home = try String(apps.nobody("path", "com.example.editor", "home").output.dropLast())
    try apps.shell("echo new >Documents/new", in: home)
    let package = apps.mounted.temporary.appending("Editor.xcappdata")
    #expect(try apps.nobody("export", "com.example.editor", package).status == 0)
    try apps.shell("rm Documents/new; echo own >Documents/own", in: home)
    var failures = 0
    for room in stride(from: 0, through: 160, by: 4) {
      try fixture.fill(leaving: room)
      let result = try apps.nobody("import", package, "--replace")
      fixture.empty()
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
    #expect(try apps.nobody("import", package, "--replace").status == 0)
    #expect(try apps.problems().isEmpty)
  }
}
