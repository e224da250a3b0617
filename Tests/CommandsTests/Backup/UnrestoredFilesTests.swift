// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// What restic could not bring back is not restored, and nothing else is lost by that.
@Suite struct UnrestoredFilesTests {
  private let temporary: TemporaryDirectory
  private static let home = "tree/Users/anna"
  private static let top = "/mnt/store"

  init() throws {
    temporary = try TemporaryDirectory()
    for path in ["tree", "tree/Users", Self.home] { try temporary.makeDirectory(path) }
    for path in [
      "Documents", "Documents/odd: name", "Documents/new\nline", "Library", "Library/Containers",
      "Library/Containers/org.a", "Library/Containers/org.a/Data", "Library/Containers/org.b",
      "Library/Containers/org.b/Data", "Library/Mobile Documents", "Library/Mobile Documents/org~a",
    ] { try temporary.makeDirectory("\(Self.home)/\(path)") }
    for path in [
      "Documents/whole", "Documents/torn", "Documents/torn: too", "Documents/odd: name/inside",
      "Library/Containers/org.a/Data/torn", "Library/Containers/org.a/Data/whole",
      "Library/Containers/org.b/Data/whole", "Library/Mobile Documents/org~a/torn", "Documents/new\nline/x",
      "Library/Containers/org.b/Data/new",
    ] { try temporary.write("contents", to: "\(Self.home)/\(path)") }
  }

  private func remove(_ complaints: String...) throws {
    var files = UnrestoredFiles()
    for message in complaints { files.take(Array(message.utf8)) }
    let directory = try temporary.open()
    try files.remove(from: directory.fd, at: Self.top)
  }

  /// As restic complains: of a path, by the place where it was to be.
  private func complaint(_ path: String, _ reason: (String) -> String = { "open \($0): file name too long" })
    -> String
  {
    "ignoring error for \(Self.top)/\(Self.home)/\(path): "
      + reason("\(Restic.givenPath)\(Self.top)/\(Self.home)/\(path)") + "\n"
  }

  private func has(_ path: String) -> Bool { access(temporary.appending("\(Self.home)/\(path)"), F_OK) == 0 }

  @Test func whatIsTornGoes() throws {
    try remove(
      "ignoring error for /mnt/store/\(Self.home)/Documents/torn: write: no space left on device",
      "ignoring error for /mnt/store/\(Self.home)/Documents/none: open: file name too long",
      "ignoring error for /mnt/store/../torn: x",
      "ignoring error for /mnt/other/\(Self.home)/Documents/whole: x",
      "restoring something: \(Self.home)")
    #expect(!has("Documents/torn") && has("Documents/whole") && has("Documents/odd: name/inside"))
    #expect(has("Library/Containers/org.a/Data/whole"))
  }

  /// A name may look like the end of a path.
  @Test func complaintSaysTwiceWhatItIsAbout() throws {
    try remove(complaint("Documents/torn: too"))
    #expect(has("Documents/torn") && !has("Documents/torn: too") && has("Documents/whole"))
    try remove(complaint("Documents/torn"))
    #expect(!has("Documents/torn") && has("Documents/whole"))
  }

  @Test func whateverAComplaintMayBeAboutGoes() throws {
    try remove(complaint("Documents/torn: too") { _ in "ciphertext verification failed" })
    #expect(!has("Documents/torn") && !has("Documents/torn: too") && has("Documents/whole"))
  }

  /// The attack: a name, or what a link leads to, with a line in it that would complain of somebody else's.
  @Test func nobodyComplainsOfWhatOthersHave() throws {
    let forged = "x\n" + complaint("Documents/whole") + complaint("Library/Containers/org.b/Data/whole")
    try remove(complaint("Documents/\(forged)"), complaint("Documents/torn") { "symlink \(forged) \($0): x" })
    #expect(has("Documents/whole") && has("Library/Containers/org.b") && !has("Documents/torn"))
  }

  @Test func directoriesStayAsTheirOwnersAlone() throws {
    try remove("ignoring error for /mnt/store/\(Self.home)/Documents/odd: name: Setxattr: error")
    #expect(has("Documents/odd: name/inside"))
    let top = try temporary.open()
    #expect(try top.fd.status(at: "\(Self.home)/Documents/odd: name").permissions == 0o700)
  }

  @Test func dataOfAnAppGoAsAWhole() throws {
    try remove(
      "ignoring error for /mnt/store/\(Self.home)/Library/Containers/org.a/Data/torn: write: error",
      "ignoring error for /mnt/store/\(Self.home)/Library/Mobile Documents/org~a/torn: write: error")
    #expect(!has("Library/Containers/org.a") && !has("Library/Mobile Documents/org~a"))
    #expect(has("Library/Containers/org.b/Data/whole") && has("Documents/torn"))
  }

  @Test func namesHaveLineBreaks() throws {
    try remove(complaint("Documents/new\nline/x"))
    #expect(!has("Documents/new\nline/x") && has("Documents/new\nline") && has("Documents/whole"))
  }

  @Test func onlyWhatIsAllThatFailedIsGoneOnAfter() {
    func areAll(
      _ messages: [String], _ end: Subprocess.End, _ last: String = "Fatal: There were 1 errors\n\n"
    ) -> Bool {
      var files = UnrestoredFiles()
      for message in messages + [last] { files.take(Array(message.utf8)) }
      return files.areAll(of: Restic.Outcome(end: end, complaints: []))
    }
    let one = "ignoring error for /mnt/store/a: write: error\n"
    #expect(areAll([one], .exited(1)))
    #expect(areAll(["\(one)\(one)"], .exited(1)))
    #expect(areAll(Array(repeating: one, count: 100_001), .exited(1), "Fatal: There were 100001 errors\n"))
    #expect(!areAll([], .exited(1)) && !areAll([one], .exited(2)) && !areAll([one], .signalled(SIGKILL)))
    #expect(!areAll([one], .exited(1), "Fatal: wrong password"))
    // One was lost on the way, or is written as by no version that we know.
    #expect(!areAll([one, one], .exited(1)) && !areAll([], .exited(1)))
    #expect(!areAll(["ignoring error for \"/mnt/store/a\": write: error"], .exited(1)))
  }
}
