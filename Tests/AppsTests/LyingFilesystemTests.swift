// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

private var mayMakeFilesystems: Bool {
  Program.isRoot && access("/dev/fuse", W_OK) == 0
    && (try? Program.run(["sh", "-c", "command -v cc"]))?.status == 0
}

/// Bundles on a filesystem of somebody's own, which says whatever it likes of them.
@Suite(
  .enabled(if: mayMakeFilesystems, "a filesystem of one's own needs root, /dev/fuse and a C compiler"),
  .mayTake(seconds: 120))
struct LyingFilesystemTests {
  private static let source = Checkout.path("Tests/Fixtures/lying-filesystem.c")

  private static let compiled = Result {
    let made = try TemporaryDirectory()
    let result = try Program.run([
      "sh", "-c", "cc -Wall -Wextra -Werror -o \"$1\" \"$2\" $(pkg-config --cflags --libs fuse3)", "sh",
      made.appending("lying"), source,
    ])
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    return made
  }

  /// What is said about an app that lies; nil if it was installed.
  private func refusal(_ lie: String) throws -> AppFailure? {
    let fixture = try AppFixture()
    try fixture.bundle()
    try fixture.temporary.makeDirectory("there")
    let place = try fixture.temporary.makeDirectory("there/Editor.app")
    let program = try Self.compiled.get().appending("lying")
    let started = try Program.run([program, fixture.temporary.appending("Editor.app"), lie, place])
    try #require(started.status == 0, "\(started.errors)")
    defer { umount2(place, Int32(MNT_DETACH)) }
    let source = try TemporaryDirectory.open(place)
    let failure = appFailure {
      _ = try fixture.installer().install(source.fd, named: "Editor.app", for: .everyone, by: .ourselves)
    }
    #expect(try fixture.staged() == [])
    return failure
  }

  @Test func oneThatTellsTheTruthIsInstalled() throws {
    #expect(try refusal("nothing") == nil)
  }

  @Test func blocksThatNoDiskHasAreNoMatter() throws {
    #expect(try refusal("blocks") == nil)
  }

  @Test func contentsThatChangeBetweenReadsAreNotInstalled() throws {
    guard case .refused(_, let findings)? = try refusal("contents") else {
      Issue.record("it was installed")
      return
    }
    #expect(findings.map(\.kind) == [.changed])
  }

  @Test(arguments: ["size", "seek", "endless"])
  func whatHasNoEndIsRefused(lie: String) throws {
    #expect(try refusal(lie) != nil)
  }
}
