// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What becomes of a file's ACL when a program saves it, and what helps where it is lost.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct SavedFileTests {
  private static let entry = "user:root allow read"

  /// A way to save `$F`, whether vim is needed for it, and whether the file keeps its ACL.
  private static let ways: [(String, isVim: Bool, keeps: Bool)] = [
    ("echo second >$F", false, true),
    ("sed -i s/first/second/ $F", false, false),
    ("insula acl $F >kept; sed -i s/first/second/ $F; insula acl -E $F <kept", false, true),
    ("sed s/first/second/ $F >new; cat new >$F", false, true),
    ("$VIM -c 'set backupskip= writebackup backupcopy=no' -c 's/first/second/' -c wq $F", true, false),
    ("$VIM -c 'set backupskip= writebackup backupcopy=yes' -c 's/first/second/' -c wq $F", true, true),
    // Nobody removes the file, so nothing is renamed over it.
    (
      "insula acl +a 'everyone deny delete' $F; ! sed -i s/first/second/ $F; "
        + "$VIM -c 'set backupskip= writebackup backupcopy=auto' -c 's/first/second/' -c wq $F; "
        + "insula acl -a# 0 $F",
      true, true
    ),
  ]

  @Test(arguments: ways.indices) func renamingOverAFileTakesItsACLAway(index: Int) throws {
    let way = Self.ways[index]
    guard !way.isVim || FileManager.default.isExecutableFile(atPath: "/usr/bin/vim") else {
      return print("SKIPPED: vim is not installed, so how it saves was not tried")
    }
    let fixture = try RunFixture()
    let place = fixture.mounted.path("Users/\(fixture.user.name)/Documents")
    let saved = try fixture.shell(
      """
      insula() { "$INSULA" "$@"; }
      VIM='vim -N -u NONE -i NONE -n -es'; F=letter; cd \(place); echo first >$F
      insula acl +a '\(Self.entry)' $F; \(way.0); cat $F; insula acl $F
      """)
    let expected = "second\n" + (way.keeps ? "0: \(Self.entry)\n" : "letter: no ACL\n")
    #expect(
      saved.output.replacing(" 0: ", with: "0: ") == expected, "\(way.0): \(saved.output)\(saved.errors)")
  }

  /// What the directory passes on, each new file has.
  @Test func directoryGivesItToWhatIsSaved() throws {
    let fixture = try RunFixture()
    let place = fixture.mounted.path("Users/\(fixture.user.name)/Documents")
    let saved = try fixture.shell(
      """
      insula() { "$INSULA" "$@"; }
      cd \(place); insula acl +a '\(Self.entry),file_inherit' .; echo first >letter
      sed -i s/first/second/ letter; cat letter; insula acl letter
      """)
    #expect(
      saved.output.hasPrefix("second\n") && saved.output.contains("user:root inherited allow read"),
      "\(saved.output)\(saved.errors)")
  }
}
