// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite struct KnownDigestTests {
  private let bundle: SignedTestBundle
  private let known = KnownDigests()
  private let place = "Note.app/Contents/Resources/page.html"

  init() throws {
    bundle = try SignedTestBundle(hasPlugIns: false)
    try bundle.sign()
  }

  private func note(_ digest: [UInt8]) throws {
    var status = FileStatus()
    guard stat(bundle.directory.appending(place), &status) == 0 else { throw Errno.last }
    known.note(digest, of: status)
  }

  private func findings() throws -> [String] {
    let opened = try CodeBundle(
      in: TemporaryDirectory.open(bundle.directory.appending("Note.app")), name: "Note.app", known: known)
    let found = opened.verify(bundle.authority.trust, at: testTime, includingStrangers: true)
    return found.findings.map { "\($0.kind) \($0.path)" }
  }

  @Test func knownDigestStandsForTheFile() throws {
    try note(Digest.whole(Array("<p>page</p>\n".utf8)))
    #expect(try findings() == [])
    // Nobody has read it: what is known is believed.
    try note(Array(repeating: 7, count: 32))
    #expect(try findings() == ["changed Contents/Resources/page.html"])
  }

  @Test func fileThatHasChangedIsRead() throws {
    try note(Array(repeating: 7, count: 32))
    // The same size, name and inode; the times of files may be as coarse as a tick of the kernel's clock.
    usleep(20_000)
    try bundle.directory.write("<p>page</p>\n", to: place)
    #expect(try findings() == [])
    try note(Digest.whole(Array("<p>page</p>\n".utf8)))
    usleep(20_000)
    try bundle.directory.write("<p>mage</p>\n", to: place)
    #expect(try findings() == ["changed Contents/Resources/page.html"])
  }

  @Test func digestThatWasNotFinishedIsNone() throws {
    try note([])
    #expect(try findings() == [])
  }
}
