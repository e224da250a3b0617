// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A daemon of root's reads a bundle as the one who asks for it.
@Suite(.enabled(if: Program.isRoot, "others than us ask"))
struct ReaderTests {
  private let fixture: AppFixture
  private let source: String

  init() throws {
    fixture = try AppFixture()
    source = try fixture.bundle()
  }

  private func install(groups: [UInt32] = []) -> AppFailure? {
    appFailure {
      let caller = CallerIdentity(uid: fixture.account.uid, gid: fixture.account.gid, groups: groups)
      try fixture.install(for: fixture.users, by: caller)
    }
  }

  @Test(arguments: ["Contents/Resources/page.html", "Contents/Resources", "Contents/Info.plist", "Contents"])
  func whatTheyMayNotReadIsNotReadForThem(place: String) throws {
    let full = "\(source)/\(place)"
    chmod(full, place.hasSuffix("html") || place.hasSuffix("plist") ? 0o600 : 0o700)
    let failure = try #require(install())
    #expect(failure.description.contains("Permission denied"), "\(failure)")
    #expect(try fixture.staged() == [] && fixture.names("\(fixture.home)/Applications") == [])
    // Root itself may.
    try fixture.install(for: fixture.users)
  }

  @Test func groupsOfTheOneWhoAsksCount() throws {
    let full = "\(source)/Contents/Resources"
    #expect(chown(full, 0, 54321) == 0 && chmod(full, 0o750) == 0)
    #expect(install(groups: [54322]) != nil)
    #expect(install(groups: [54322, 54321]) == nil)
    // And what was copied is the user's, not the group's.
    let status = try #require(fixture.status("\(fixture.home)/Applications/Editor.app/Contents/Resources"))
    #expect(status.st_uid == fixture.account.uid && status.st_gid == fixture.account.gid)
  }

  @Test func threadsOfOursStayWhatTheyAre() throws {
    #expect(install() == nil)
    let ids = try #require(FD.text(of: "/proc/thread-self/status", limit: 1 << 16))
    #expect(ids.contains("Uid:\t0\t0\t0\t0") && ids.contains("Gid:\t0\t0\t0\t0"))
  }
}
