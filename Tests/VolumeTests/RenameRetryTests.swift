// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Testing
@testable internal import Volume

/// What a thread in rename(2) is told, by the lookups that Linux makes in it.
///
/// `P/name=stored` is a lookup in a directory that finds another spelling, and `P/name` one that is exact.
@Suite struct RenameRetryTests {
  private let retries = RenameRetries()

  private func look(_ words: String, call: String? = "a", thread: Int32 = 7) -> String {
    words.split(separator: " ").map { look(word: String($0), call, thread) }.joined(separator: " ")
  }

  private func look(word: String, _ call: String?, _ thread: Int32) -> String {
    let parts = word.split(separator: "/").map(String.init)
    let names = parts[1].split(separator: "=").map(String.init)
    guard let asked = names.first, let stored = names.last else { return "?" }
    var status = FileStatus()
    // What has a capital letter first is a directory.
    status.st_mode = stored.first?.isUppercase == true ? S_IFDIR : S_IFREG
    status.st_dev = 1
    status.st_ino = Self.inode(stored)
    let found = Entry(node: NodeID(9), attributes: Attributes(status, validity: 0), validity: 0)
    let directory = ObjectNumber(inode: UInt64(Self.inode(parts[0])), device: 1)
    let made: RenameRetries.Lookup? = try? asked.withName { (asked) throws(Errno) in
      try stored.withName { (stored) throws(Errno) in
        RenameRetries.Lookup(asked, stored: stored, in: directory, found)
      }
    }
    guard let lookup = made else { return "?" }
    if names.count == 1 {
      retries.note(lookup, by: thread, call: { _ in call })
      return "-"
    }
    return "\(retries.answer(lookup, by: thread, call: { _ in call }))"
  }

  private static func inode(_ name: String) -> UInt { name.utf8.reduce(7) { $0 &* 31 &+ UInt($1) } }

  @Test(
    arguments: [
      // rename("foo", "FOO"), where the kernel knows foo.
      ("P/FOO=foo P/foo P/FOO=foo P/FOO=foo", "again - absent absent"),
      ("P/Dir P/DIR=Dir P/Dir P/DIR=Dir", "- again - absent"),
      // rename("FOO", "bar"), rename("x", "FOO").
      ("P/FOO=foo P/FOO=foo", "again found"), ("P/x P/FOO=foo P/x P/FOO=foo", "- again - found"),
      // rename("DIR/x", "Dir/y"), rename("DIR/x", "dIR/y").
      ("P/DIR=Dir P/DIR=Dir P/Dir Dir/x Dir/y", "again found - - -"),
      ("P/DIR=Dir P/DIR=Dir P/dIR=Dir Dir/x", "again found found -"),
      // rename("DIR/x", "dIR/X"), also deeper.
      (
        "P/DIR=Dir P/DIR=Dir P/dIR=Dir Dir/X=x P/DIR=Dir P/dIR=Dir Dir/x Dir/X=x",
        "again found found again found found - absent"
      ),
      (
        "P/DIR=Dir P/DIR=Dir Dir/SUB=Sub Sub/X=x P/DIR=Dir Dir/SUB=Sub Sub/x Sub/X=x",
        "again found found again found found - absent"
      ),
      // Never a third time, and never for what may be on the way: Linux would not begin again.
      ("P/DIR=Dir P/DIR=Dir Dir/SUB=Sub Dir/sUB=Sub", "again found found found"),
      ("P/DIR=Dir P/DIR=Dir Dir/X=x Dir/X=x Dir/Y=y", "again found again found found"),
    ])
  func lookupsOfARename(lookups: String, answers: String) {
    #expect(look(lookups) == answers)
  }

  @Test func othersAreToldNothing() {
    #expect(look("P/FOO=foo P/foo P/FOO=foo", call: nil) == "found - found")
    #expect(!retries.areUnderWay)
    #expect(look("P/FOO=foo") == "again" && retries.areUnderWay)
    // Another call of the thread's is another rename, or none; nor is another thread concerned.
    #expect(look("P/foo P/FOO=foo", call: "b") == "- again")
    #expect(look("P/foo P/FOO=foo", call: "b") == "- absent")
    #expect(look("P/foo P/FOO=foo", call: "b", thread: 8) == "- again")
    #expect(look("P/FOO=foo", call: nil) == "found")
    retries.end(7)
    retries.end(8)
    #expect(!retries.areUnderWay)
  }

  @Test func fewWaitAtATime() {
    for thread in 0..<2000 { _ = look("P/FOO=foo", thread: Int32(thread)) }
    #expect(look("P/FOO=foo", thread: 5000) == "found", "it does nothing, as it would on Linux")
  }

  @Test func callsAreTold() throws {
    #expect(ThreadCall.rename(by: 0) == nil && ThreadCall.rename(by: ProcessID.own) == nil)
    #expect(clx_renames(-1) == 0)
  }
}
