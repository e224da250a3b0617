// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The rules of an app's places in its own view, held against the same lines as in the tree as a whole.
@Suite(
  .enabled(if: EscapeFixture.isPossible, "it takes root, /dev/fuse, bubblewrap and a C compiler"), .serialized
)
struct ViewPlaceTests {
  private static func fixture(rootless: Bool) throws -> PlaceFixture {
    let program = try EscapeFixture.program()
    return try PlaceFixture(rootless: rootless) { bundle in
      try FileManager.default.copyItem(atPath: program, toPath: "\(bundle)/Contents/MacOS/escape")
    }
  }

  /// What an app has no program for, and what is not in its view.
  private func isForApps(_ line: String) -> Bool {
    !line.contains("insula ") && !line.contains("$home")
  }

  /// One line in one place: how it ended, and what it said.
  private struct Step {
    let line: String
    let place: String
    let expected: [Errno]
  }

  /// Plays lines in one view, after `before` each; all of it is one script, since starting a view takes
  /// longer than a line.
  private func play(_ steps: [Step], before: String, in fixture: PlaceFixture) throws {
    let words = fixture.cast.words.merging(["owner": fixture.cast.names["owner"] ?? ""]) { $1 }
    var script = words.map { "\($0.key)='\($0.value)'\n" }.joined()
    script += """
      call() {
        answer=$("$bundle/Contents/MacOS/escape" call "$@")
        case $answer in
        ok*) ;;
        1) echo 'Operation not permitted' >&2; return 1 ;;
        *) echo "error $answer" >&2; return 1 ;;
        esac
      }
      umask 022

      """
    for (number, step) in steps.enumerated() {
      script += """
        { \(before)
        } >/dev/null 2>&1
        ( \(step.place)
        \(step.line)
        ) >/dev/null 2>"$data/tmp/errors"; echo "\(number) $? $(tr '\\n' ' ' <"$data/tmp/errors")"

        """
    }
    let quoted = try fixture.cast.workshop.write(script, to: "script")
    let result = try fixture.run(
      "insula run --store $store $app -- sh -c \"$(cat '\(quoted)')\" </dev/null", as: .owner)
    let lines = result.output.split(separator: "\n").map(String.init)
    try #require(lines.count == steps.count, "\(result.status) \(result.errors) \(lines.suffix(2))")
    for (step, line) in zip(steps, lines) {
      let status = line.split(separator: " ").dropFirst().first.map(String.init)
      if step.expected.isEmpty {
        #expect(status == "0", "\(step.place): \(step.line): \(line)")
      } else {
        let isRefused = step.expected.contains { line.contains($0.message) }
        #expect(status != "0" && isRefused, "\(step.place): \(step.line): \(line)")
      }
    }
  }

  private let refill = """
    cd $work/place; rm -rf *; echo text >letter.txt; setfattr -n user.mark -v value letter.txt
    mkdir -p note.rtfd/deep empty; echo inside >note.rtfd/TXT.rtf; ln -s TXT.rtf note.rtfd/link
    echo leaf >note.rtfd/deep/leaf; deliver letter.txt note.rtfd empty
    """
  private let renew = """
    cd $documents; rm -rf ordinary other; cp -a Inbox ordinary; mkdir -p other/directory other/vacant
    echo file >other/file; rm -f $data/Library/Caches/moved
    """

  @Test(arguments: [false, true]) func nothingInAnInboxIsChanged(rootless: Bool) throws {
    let fixture = try Self.fixture(rootless: rootless)
    try fixture.perform(refill, as: .owner)
    let inbox = try #require(fixture.cast.words["inbox"])
    let before = try fixture.fingerprint(inbox, as: .owner)
    let steps = InboxRows.refused.filter(isForApps).flatMap { line in
      [
        Step(line: line, place: "at=$documents/ordinary; other=$documents/other", expected: []),
        Step(line: line, place: "at=$inbox; other=$documents/other", expected: [.EPERM]),
      ]
    }
    #expect(steps.count > 80)
    try play(steps, before: renew, in: fixture)
    #expect(try fixture.fingerprint(inbox, as: .owner) == before)
  }

  @Test(arguments: [false, true]) func whatWasDeliveredIsReadAndTakenAway(rootless: Bool) throws {
    let fixture = try Self.fixture(rootless: rootless)
    for line in InboxRows.allowed.filter(isForApps) {
      try fixture.perform("test ! -e $inbox || find $inbox -mindepth 1 -delete; \(refill)", as: .owner)
      try play(
        [Step(line: line, place: "at=$inbox; other=$documents/other", expected: [])], before: renew,
        in: fixture
      )
    }
  }

  @Test(arguments: [false, true]) func placesAreWhatTheyAre(rootless: Bool) throws {
    let fixture = try Self.fixture(rootless: rootless)
    let prepare = """
      away=$documents/away; thing=$away/thing; rm -rf $away; \
      mkdir $away; echo x >$thing; echo x >$away/twin; cd $away
      link=$data/Editor.app
      """
    var steps: [Step] = []
    for place in ContainerRows.open {
      for line in ContainerRows.work.filter(isForApps) {
        // What is called so in Documents is no Inbox in other places.
        steps.append(Step(line: line, place: "at=\"\(place)\"", expected: []))
      }
    }
    for place in ContainerRows.closed {
      for line in ContainerRows.comings {
        steps.append(Step(line: line, place: "at=$away/at; mkdir $at", expected: []))
        steps.append(Step(line: line, place: "at=\"\(place)\"", expected: [.EPERM]))
      }
    }
    for fixed in ["$documents", "$data/Library", "$data/tmp"] {
      for line in ContainerRows.goings where !(fixed == "$documents" && line.contains("$away")) {
        let twin = "rm $away/twin; mkdir $away/twin"
        steps.append(Step(line: line, place: "\(twin) $away/fixed; fixed=$away/fixed", expected: []))
        steps.append(Step(line: line, place: "\(twin); fixed=\"\(fixed)\"", expected: [.EPERM]))
      }
    }
    for line in ContainerRows.bundleUses {
      steps.append(Step(line: line, place: "at=$bundle/Contents", expected: []))
    }
    for line in ContainerRows.bundleChanges {
      steps.append(Step(line: line, place: "cp -a $bundle/Contents $away/at; at=$away/at", expected: []))
      // It is a mount of its own, to and from which nothing is linked.
      steps.append(Step(line: line, place: "at=$bundle/Contents", expected: [.EROFS, .EXDEV]))
    }
    try play(steps, before: prepare, in: fixture)
  }

  /// In its own view an app moves none of its containers, and puts nothing beside them.
  @Test(arguments: [false, true]) func containersStay(rootless: Bool) throws {
    let fixture = try Self.fixture(rootless: rootless)
    let prepare = """
      cd $documents; for away in $documents/away "$group/away"; do
        rm -rf "$away"; mkdir -p "$away/twin" "$away/x/Data"; done
      """
    let lines = [
      "mv -T \"$at\" \"$at-2\"", "mv -T \"$at\" \"$away/moved\"", "call exchange \"$at\" \"$away/twin\"",
      "call exchange \"$away/twin\" \"$at\"", "mv -T \"$at\" \"$(dirname \"$at\")/.hidden\"",
      "mkdir \"$(dirname \"$at\")/new\"",
    ]
    var steps: [Step] = []
    for line in lines {
      steps.append(Step(line: line, place: "away=$documents/away; at=$away/x", expected: []))
      for (place, away) in [("$container", "$group"), ("$group", "$documents"), ("$cloud", "$documents")] {
        // What is in the view is a mount of its own, in directories that are not.
        steps.append(
          Step(
            line: line, place: "at=\"\(place)\"; away=\"\(away)/away\"",
            expected: [.EPERM, .EXDEV, .EBUSY, .EACCES, .EROFS]))
      }
    }
    try play(steps, before: prepare, in: fixture)
  }

  /// In its own view an app makes no Inbox, and does not get rid of the one that there is.
  @Test(arguments: [false, true]) func inboxItselfStays(rootless: Bool) throws {
    let fixture = try Self.fixture(rootless: rootless)
    let prepare = "cd $documents; rm -rf inbox directory file; mkdir directory; echo x >file"
    let making = [
      "mkdir $at", "echo >$at", "ln -s /tmp $at", "mkfifo $at", "mv $documents/directory $at",
      "ln $documents/file $at", "cp -a $documents/directory $at",
    ].flatMap { line in
      [
        Step(line: line, place: "at=$documents/inbox", expected: []),
        Step(line: line, place: "at=$documents/Inbox", expected: [.EPERM]),
      ]
    }
    try play(making, before: prepare, in: fixture)
    try fixture.perform(refill + "\nfind $inbox -mindepth 1 -delete", as: .owner)
    let unmaking = [
      "rmdir $at", "rm -r $at", "mv $at $documents/moved && rmdir $documents/moved", "chmod 755 $at",
      "touch $at",
      "setfattr -n user.mark -v x $at",
    ].flatMap { line in
      [
        Step(line: line, place: "at=$documents/plain; mkdir -p $at", expected: []),
        Step(line: line, place: "at=$documents/Inbox", expected: [.EPERM]),
      ]
    }
    try play(unmaking, before: "cd $documents", in: fixture)
  }
}
