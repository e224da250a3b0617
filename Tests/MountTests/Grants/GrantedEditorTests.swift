// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Programs save a file that is all of its folder that they have.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct GrantedEditorTests {
  private func run(_ fixture: RunFixture, _ script: String) throws -> ProgramResult {
    let home = fixture.mounted.path("Users/\(fixture.user.name)")
    return try fixture.shell("D='\(home)/Documents'\n" + script)
  }

  /// How programs save: what turns the word `first` in `$F` into `second`.
  private static let ways: [(name: String, script: String)] = [
    ("in place", "printf 'second\\n' > $F"),
    ("sed", "sed -i s/first/second/ $F"),
    ("a backup that stays", "sed -i.bak s/first/second/ $F"),
    ("new beside and renamed", "printf 'second\\n' > $F.tmp && mv $F.tmp $F"),
    ("put aside and made anew", "mv $F $F~ && printf 'second\\n' > $F && rm $F~"),
    ("put aside, and another renamed", "mv $F $F~ && printf 'second\\n' > $F.tmp && mv $F.tmp $F"),
    ("removed and made anew", "rm $F && printf 'second\\n' > $F"),
    (
      "vim",
      "! command -v vim > /dev/null && printf 'second\\n' > $F || "
        + "vim -u NONE -n -es -c '%s/first/second/' -c wq $F"
    ),
    (
      "vim that renames",
      "! command -v vim > /dev/null && printf 'second\\n' > $F || "
        + "vim -u NONE -n -es -c 'set backupcopy=no' -c '%s/first/second/' -c wq $F"
    ),
    (
      "python",
      """
      python3 -c "import os,tempfile; d=os.path.dirname('$F'); f,p=tempfile.mkstemp(dir=d); \
      os.write(f,b'second\\\\n'); os.fsync(f); os.close(f); os.replace(p,'$F')"
      """
    ),
  ]

  @Test(arguments: ways.indices) func savesAsItAlwaysDoes(index: Int) throws {
    let (name, script) = Self.ways[index]
    let fixture = try RunFixture()
    let result = try run(
      fixture,
      """
      mkdir $D/w; echo first > $D/w/letter; echo secret > $D/w/other
      insula grant $APP $D/w/letter --read-write > /dev/null
      run sh -c 'F=$1; \(script.replacing("'", with: "'\\''"))' sh $D/w/letter
      cat $D/w/letter $D/w/other
      insula grants | tail -n +2 | sed 's,.*/w/,,'
      run sh -c "ls $D/w; cat $D/w/letter"
      """)
    // What is beside it is not the app's by the next time, and the grant is for the name again.
    #expect(result.output == "second\nsecret\nletter\nletter\nsecond\n", "\(name): \(result.errors)")
  }

  @Test func savesFromOutsideKeepTheGrant() throws {
    // Where the old file stays under another name, that is what was granted.
    let others = ["put aside, and another renamed", "a backup that stays"]
    for (name, script) in Self.ways where !others.contains(name) {
      let fixture = try RunFixture()
      let result = try run(
        fixture,
        """
        mkdir $D/w; F=$D/w/letter; echo first > $F; insula grant $APP $F > /dev/null
        \(script)
        insula grants | tail -n +2 | sed 's,.*/w/,,'
        run cat $F
        """)
      #expect(result.output == "letter\nsecond\n", "\(name): \(result.errors)")
    }
  }
}
