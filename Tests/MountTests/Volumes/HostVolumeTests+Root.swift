// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

extension HostVolumeTests {
  /// A user calls a volume like a disk of root's that is not there just now: root's programs find nothing
  /// there, and ask no program of that user's.
  @Test func rootIsNotLedToUsersVolumes() throws {
    let host = try Host()
    let (name, volumes) = (host.run.user.name, host.run.mounted.path("Volumes"))
    try host.expect("volume add . --at Backup >/dev/null; cat $POINT/Volumes/Backup/a", "one\n")
    try host.expect(
      """
      umask 077; cd $POINT/Volumes; echo top >nightly 2>/dev/null || echo none
      for place in Backup/nightly Backup/../Backup/nightly
      do (echo top >$place) 2>/dev/null || echo nothing; done
      ls -d Backup 2>/dev/null || echo no; find . ; ls -A; cd - >/dev/null; ls
      """, "none\nnothing\nnothing\nno\n.\na\nsub\n", as: RunFixture.root)
    // By its name alone root does not take it away either.
    for line in ["volume eject Backup", "volume eject Backup --force", "volume eject Volumes/Backup"] {
      try host.refuse(line, "but Backup of \(name); '--user NAME' means that user's", as: RunFixture.root)
    }
    let other = try TemporaryAccount()
    try host.refuse(
      "volume eject Backup --user \(other.account.name)", "no volume Backup", as: RunFixture.root)
    try host.refuse("volume eject Backup --user root", "only root may", .notPermitted)
    let disks = host.run.mounted.temporary
    let (mine, theirs) = (try disks.makeDirectory("roots"), try disks.makeDirectory("others"))
    try #require(chmod(mine, 0o755) == 0 && chown(theirs, other.account.uid, other.account.gid) == 0)
    try host.refuse(
      "volume add \(mine) --at Backup", "exists for one user alone has that name, Backup of \(name)",
      as: RunFixture.root)
    try host.refuse(
      "volume add \(theirs) --at Backup", "something has that name already", as: other.account)
    try host.expect(
      "volume eject Backup --user \(name) 2>&1; volume add \(mine) --at Backup; touch \(mine)/x",
      "insula: ejected Backup of \(name)\n\(volumes)/Backup\n", as: RunFixture.root)
    try host.expect("ls $POINT/Volumes/Backup", "x\n", as: other.account)
  }
}
