// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

extension FrozenHomeTests {
  /// The attack: somebody starts an app for everyone in that home, and it can't be updated or removed.
  @Test func aStartThatHangsKeepsNoAppFromBeingChanged() throws {
    let own = "org.example.own"
    try expect(nil, "install", bundle("Own"))
    let daemon = try #require(try shop.mounted.daemon())
    let disk = try freeze()
    defer { disk.thaw() }
    let said = shop.mounted.temporary.appending("said")
    let begun = try shop.mounted.run(
      [own, shop.mounted.point, said],
      before: [
        "setpriv", "--reuid=\(carl.account.uid)", "--regid=\(carl.account.gid)", "--clear-groups", "sh", "-c",
        "{ timeout -s KILL 200 \"$0\" run \"$1\" --store \"$2\" -- true; echo \"ended: $?\"; } "
          + ">/dev/null 2>&1 </dev/null &",
      ])
    try #require(begun.status == 0, "\(begun)")
    #expect(eventually { waitsForDisk(daemon) })
    try expect(nil, "update", bundle("Own", "2"))
    try expect(anna, "run", own, "--", "true")
    try expect(nil, "uninstall", own)
    disk.thaw()
    // What was made for the start of an app that is gone by then is removed.
    let query = "SELECT count(*) FROM containers WHERE identifier = '\(own)'"
    let database = shop.mounted.store + "/state/insula.db"
    #expect(
      try eventually {
        try Program.run(["sqlite3", "-cmd", ".timeout 20000", database, query]).output == "0\n"
      })
    #expect(eventually { access(container(carl, own), F_OK) == -1 })
    try shop.expectNothingToComplainAbout()
  }
}
