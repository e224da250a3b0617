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
    for line in complaints { files.take(Array(line.utf8)) }
    let directory = try temporary.open()
    try files.remove(from: directory.fd, at: "/mnt/store")
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
  @Test func whateverAComplaintMayBeAboutGoes() throws {
    try remove("ignoring error for /mnt/store/\(Self.home)/Documents/torn: too: write: error")
    #expect(!has("Documents/torn") && !has("Documents/torn: too") && has("Documents/whole"))
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

  /// The attack: a name with a line break in it, so that the complaint about it is none.
  @Test func complaintsThatCannotBeReadAreAboutLineBreaks() throws {
    try remove("ignoring error for /mnt/store/\(Self.home)/Documents/new", "line/x: write: error")
    #expect(!has("Documents/new\nline") && has("Documents/whole") && has("Library/Containers/org.b"))
  }

  @Test func onlyWhatIsAllThatFailedIsGoneOnAfter() {
    func areAll(
      _ lines: [String], _ end: Subprocess.End, _ last: String = "Fatal: There were 1 errors"
    ) -> Bool {
      var files = UnrestoredFiles()
      for line in lines { files.take(Array(line.utf8)) }
      return files.areAll(of: Restic.Outcome(end: end, complaints: [last]))
    }
    let line = "ignoring error for /mnt/store/a: write: error"
    #expect(areAll([line], .exited(1)))
    #expect(!areAll([], .exited(1)) && !areAll([line], .exited(2)) && !areAll([line], .signalled(SIGKILL)))
    #expect(!areAll([line], .exited(1), "Fatal: wrong password"))
    #expect(!areAll(Array(repeating: line, count: 100_001), .exited(1)))
  }
}
