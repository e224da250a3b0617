// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import TestSupport
internal import Testing

/// Attempts to learn anything of what is private without consent: whatever is there, each comes to the same.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ConsentAttemptTests {
  /// Each attempt's name with what has come of it.
  private func outcomes(_ fixture: ConsentFixture) throws -> [String: String] {
    let script = Checkout.path("Tests/Fixtures/consent-attempts.py")
    let result = try fixture.shell(
      """
      insula run --env HOME_OF_USER='\(fixture.home)' \(ConsentFixture.player) -- python3 -B - < '\(script)'
      """)
    try #require(result.status == 0, "\(result)")
    let rows = try result.output.split(separator: "\n").map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [Any], "\(line)")
    }
    return Dictionary(uniqueKeysWithValues: rows.map { ("\($0[0])", "\($0[1])") })
  }

  /// Where a user has put a link or a file in the place of a private directory.
  @Test(arguments: [false, true])
  func whatIsInThePlaceTellsNothing(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    func told(_ link: String, _ file: String) throws -> String {
      let made = try fixture.shell(
        """
        cd '\(fixture.home)/Library' && rm -rf Calendars Reminders && mkdir -p "Application Support" \
          && ln -s '\(link)' Calendars && echo '\(file)' > Reminders
        """)
      try #require(made.status == 0, "\(made)")
      let result = try fixture.inside(
        """
        exec 2>&1; cd "$HOME_OF_USER/Library"; ls -ln --time-style=+%s Calendars Reminders; readlink Calendars
        stat -c '%s %b %h %a %X %Y %Z %F' Calendars Reminders; cat Reminders; ls Calendars/; find . -ls \
          | grep -e Reminders -e Calendars | sed 's/^ *[0-9]*//'; getfattr -d Reminders
        """)
      #expect(result.output.contains("Reminders"), "\(result)")
      return result.output
    }
    let first = try told("../Documents/one", "x")
    #expect(!first.contains("one"), "\(first)")
    #expect(try told("../Documents/another", "much more") == first)
  }

  /// Attempts to learn something of a directory of which an app sees only a part.
  private static let ofDirectoriesOnTheWay: Set = [
    "fstat_by_path_descriptor", "ls_d", "ls_home", "lstat", "scandir_home", "stat_pictures",
    "stat_st_atime_ns", "stat_st_blocks", "stat_st_ctime_ns", "stat_st_mtime_ns", "stat_st_nlink",
    "stat_st_size", "statx_with_sync", "statx_without_sync",
  ]

  @Test(arguments: [false, true])
  func nothingIsLearntWithoutConsent(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let full = try outcomes(fixture)
    #expect(full.count >= 80, "\(full.count)")
    // Whatever else is there is there no more.
    let emptied = try fixture.shell(
      """
      cd '\(fixture.home)' && mv Music/Music Music/Other Documents/ \
        && mv Pictures/* Documents/ && touch Music Pictures
      """)
    try #require(emptied.status == 0, "\(emptied)")
    let empty = try outcomes(fixture)
    for (name, outcome) in full { #expect(empty[name] == outcome, "\(name): it tells what is there") }
    let back = try fixture.shell(
      """
      cd '\(fixture.home)' && mv Documents/Music Documents/Other Music/ \
        && mv Documents/All.photoslibrary Pictures/
      setfattr -n user.mark -v x Pictures/All.photoslibrary/1
      decide allow media-library && decide allow photos
      """)
    try #require(back.output == "authorized\nauthorized\n", "\(back)")
    let allowed = try outcomes(fixture)
    // Or else an attempt would prove nothing; but a directory on the way tells nothing with consent, too.
    for (name, outcome) in full {
      #expect((allowed[name] == outcome) == Self.ofDirectoriesOnTheWay.contains(name), "\(name): \(outcome)")
    }
  }
}
