// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
@testable internal import Store
internal import TestSupport
internal import Testing

/// Homes elsewhere are whose root has said they are.
@Suite(.enabled(if: Program.isRoot, "giving files away needs root")) struct HomesElsewhereTests {
  private let fixture: TestFixture

  init() throws { fixture = try TestFixture() }

  /// Whose a home elsewhere is, is what it was when it appeared, and none of them is root's by its number.
  @Test func homesElsewhereAreWhoseTheyWere() throws {
    let (cleo, other): (UInt32, UInt32) = (4_000_000_113, 4_000_000_114)
    let directory = try TemporaryDirectory()
    for (name, owner) in [("cleo", cleo), ("zero", 0)] {
      try directory.makeDirectory(name, mode: 0o711)
      try #require(chown(directory.appending(name), owner, owner) == 0)
      try fixture.store.link(name, to: directory.path)
      let root = SharedFD(try FD.cwd.openFollowing(directory.appending(name), O_RDONLY | O_DIRECTORY))
      let target = try RedirectedNames.Target(root: root, workshop: root, in: root)
      let users = try fixture.store.tree.openDirectory("Users")
      RedirectedNames.set(Array(name.utf8), in: try users.fd.status(), to: target)
    }
    defer {
      if let users = try? fixture.store.tree.openDirectory("Users"), let status = try? users.fd.status() {
        for name in ["cleo", "zero"] { RedirectedNames.set(Array(name.utf8), in: status, to: nil) }
      }
    }
    for isGivenAway in [false, true] {
      if isGivenAway { try #require(chown(directory.appending("cleo"), other, other) == 0) }
      #expect(try fixture.store.home(of: cleo) == "cleo")
      #expect(fixture.store.isHome("cleo", of: cleo) && !fixture.store.isHome("cleo", of: other))
      for user in [other, 0] {
        let failure = storeError { _ = try fixture.store.home(of: user) }
        guard case .noHome = failure else {
          Issue.record("\(user): \(failure.map { "\($0)" } ?? "there is a home")")
          continue
        }
      }
    }
  }
}
