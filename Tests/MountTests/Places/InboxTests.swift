// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// What people can do with what was delivered to an app, in the tree as a whole.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct InboxTests {
  /// Delivers again, and makes an ordinary directory in which the same lies.
  private func refill(_ fixture: PlaceFixture) throws {
    try fixture.perform(
      """
      test ! -e $inbox || find $inbox -mindepth 1 -delete
      cd $work/place; rm -rf *; echo text >letter.txt; setfattr -n user.mark -v value letter.txt
      mkdir -p note.rtfd/deep empty; echo inside >note.rtfd/TXT.rtf; ln -s TXT.rtf note.rtfd/link
      echo leaf >note.rtfd/deep/leaf
      deliver letter.txt note.rtfd empty
      """, as: .owner)
    try renewOrdinary(fixture)
  }

  private func renewOrdinary(_ fixture: PlaceFixture) throws {
    let cleaner = fixture.people.contains(.root) ? Person.root : .owner
    try fixture.perform(
      """
      cd $documents; rm -f $data/Library/Caches/moved; rm -rf ordinary other 2>/dev/null || {
        find ordinary other -exec insula flags nouchg,noschg {} + ; rm -rf ordinary other; }
      """, as: cleaner)
    try fixture.perform(
      """
      cd $documents; cp -a Inbox ordinary; mkdir -p other/directory other/vacant; echo file >other/file
      """, as: .owner)
  }

  private func attempt(
    _ line: String, _ place: String, as person: Person, in fixture: PlaceFixture
  ) throws -> ProgramResult {
    try fixture.run("at=$documents/\(place); other=$documents/other; \(line)", as: person)
  }

  @Test(arguments: [false, true]) func nothingInAnInboxIsChanged(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    try refill(fixture)
    let inbox = fixture.cast.words["inbox"] ?? ""
    let before = try fixture.fingerprint(inbox, as: .owner)
    #expect(before.split(separator: "\n").count > 20)
    for person in fixture.people {
      for line in InboxRows.refused + (person == .root ? InboxRows.refusedToRoot : []) {
        try renewOrdinary(fixture)
        let ordinary = try attempt(line, "ordinary", as: person, in: fixture)
        #expect(ordinary.status == 0, "\(person), elsewhere: \(line): \(ordinary.errors)")
        try renewOrdinary(fixture)
        let refused = try attempt(line, "Inbox", as: person, in: fixture)
        #expect(
          refused.isRefusal && refused.errors.contains(Errno.EPERM.message),
          "\(person): \(line): \(refused)")
      }
    }
    #expect(try fixture.fingerprint(inbox, as: .owner) == before)
  }

  @Test(arguments: [false, true]) func whatWasDeliveredIsReadAndTakenAway(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    for person in fixture.people {
      for line in InboxRows.allowed {
        try refill(fixture)
        for place in ["ordinary", "Inbox"] {
          let result = try attempt(line, place, as: person, in: fixture)
          #expect(result.status == 0, "\(person), \(place): \(line): \(result.errors)")
          if place == "ordinary" { try renewOrdinary(fixture) }
        }
      }
    }
  }

  @Test(arguments: [false, true]) func inboxItselfStays(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    // Nobody makes one, nor anything of that name.
    for person in fixture.people {
      for line in [
        "mkdir $at", "echo >$at", "ln -s /tmp $at", "mkfifo $at", "mv $documents/directory $at",
        "ln $documents/file $at", "cp -a $documents/directory $at",
      ] {
        let prepare = "cd $documents; mkdir -p directory; echo x >file; touch $work/$$; "
        let elsewhere = try fixture.run("\(prepare) at=$documents/inbox; \(line)", as: person)
        #expect(elsewhere.status == 0, "\(person): \(line): \(elsewhere.errors)")
        let refused = try fixture.run("\(prepare) at=$inbox; \(line)", as: person)
        #expect(
          refused.isRefusal && refused.errors.contains(Errno.EPERM.message),
          "\(person): \(line): \(refused)")
        try fixture.perform("cd $documents; rm -rf inbox file directory; test ! -e Inbox", as: person)
      }
    }
    try refill(fixture)
    try fixture.perform("find $inbox -mindepth 1 -delete", as: .owner)
    for person in fixture.people {
      for line in [
        "rmdir $at", "rm -r $at", "mv $at $documents/moved", "mv $at $data/tmp", "chmod 755 $at", "touch $at",
        "chown $owner $at", "setfattr -n user.mark -v x $at", "insula flags hidden $at",
        "insula acl +a 'everyone allow add_file' $at", "call exchange $at $documents/twin",
        "mv -T $documents/twin $at",
      ] {
        let prepare = "cd $documents; rm -rf twin moved plain $data/tmp/plain; mkdir twin plain; "
        let elsewhere = try fixture.run("\(prepare) at=$documents/plain; \(line)", as: person)
        #expect(elsewhere.status == 0, "\(person): \(line): \(elsewhere.errors)")
        let refused = try fixture.run("\(prepare) at=$inbox; \(line)", as: person)
        #expect(
          refused.isRefusal && refused.errors.contains(Errno.EPERM.message),
          "\(person): \(line): \(refused)")
      }
      // What it is in stays too.
      for line in [
        "mv $documents $data/tmp", "rm -r $documents", "mv $data $home/Data", "mv -T $data/tmp $documents",
      ] {
        let refused = try fixture.run(line, as: person)
        #expect(
          refused.isRefusal && refused.errors.contains(Errno.EPERM.message), "\(line): \(refused)")
      }
    }
    #expect(try fixture.perform("ls -A $inbox", as: .owner) == "")
  }

  @Test func strangersDoNotGetThere() throws {
    let fixture = try PlaceFixture()
    try refill(fixture)
    for line in [
      "ls $inbox", "cat $inbox/letter.txt", "echo x >$inbox/new", "rm $inbox/letter.txt",
      "mv $inbox/letter.txt $work", "chmod 777 $inbox/letter.txt", "ls $container", "ls $data",
      "ls \"$group\"",
      "ls \"$cloud\"", "echo x >$data/tmp/x", "deliver $work/place/letter.txt",
    ] {
      let result = try fixture.run(line, as: .stranger)
      let isOurs = line.hasPrefix("deliver")
      #expect(isOurs ? result.ending == .notPermitted : result.isRefusal, "\(line): \(result)")
      #expect(isOurs || result.errors.contains(Errno.EACCES.message), "\(line): \(result.errors)")
    }
  }

  @Test func readingIsNotedAsAnywhere() throws {
    let fixture = try PlaceFixture()
    try refill(fixture)
    let time = "stat -c %X $inbox/letter.txt"
    try fixture.perform(
      "cd $work/place; touch -a -d 2001-01-01 letter.txt; rm $inbox/letter.txt; deliver letter.txt",
      as: .owner)
    let before = try fixture.perform(time, as: .owner)
    try fixture.perform("cat $inbox/letter.txt", as: .owner)
    #expect(try before == fixture.perform("date -d 2001-01-01 +%s", as: .owner))
    #expect(try fixture.perform(time, as: .owner) != before)
  }

  /// What is known of it from before, by the daemon and by the kernel, makes no difference.
  @Test(arguments: [false, true]) func ruleHoldsForWhatIsKnownAlready(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    try refill(fixture)
    for _ in 0..<3 {
      // Each moves the same objects to and fro; the kernel has looked at all of them.
      try fixture.perform(
        """
        cd $documents; find . | xargs stat >/dev/null; \
        mv Inbox/note.rtfd away; find away | xargs stat >/dev/null
        echo more >>away/deep/leaf; mkdir away/deep/new; rmdir away/deep/new
        mv away $work/place/away.rtfd; deliver $work/place/away.rtfd; rm -r $work/place/away.rtfd
        """, as: .owner)
      let refused = try fixture.run(
        "cd $inbox/away.rtfd; cat deep/leaf >/dev/null; echo more >>deep/leaf || mkdir deep/new", as: .owner)
      #expect(refused.isRefusal && refused.errors.contains(Errno.EPERM.message), "\(refused)")
      try fixture.perform(
        "mv $inbox/away.rtfd $documents/note.rtfd; cd $documents/note.rtfd; touch deep/new; "
          + "rm deep/new; cd ..; rm -r note.rtfd; cd $work/place; deliver note.rtfd",
        as: .owner)
    }
  }

  @Test func dataThatAreImportedHaveTheirInbox() throws {
    let fixture = try PlaceFixture()
    try refill(fixture)
    try fixture.perform(
      """
      insula export $app $work/E.xcappdata --store $store; find $container | xargs stat >/dev/null
      insula import $work/E.xcappdata --replace --store $store
      test "$(cat $inbox/letter.txt)" = text; test "$(cat $inbox/note.rtfd/deep/leaf)" = leaf
      """, as: .owner)
    for line in [
      "echo x >$inbox/new", "echo x >>$inbox/note.rtfd/deep/leaf", "rmdir $inbox",
      "chmod 777 $inbox/letter.txt",
    ] {
      let refused = try fixture.run(line, as: .owner)
      #expect(
        refused.isRefusal && refused.errors.contains(Errno.EPERM.message), "\(line): \(refused)")
    }
    try fixture.perform(
      "deliver $work/place/letter.txt; test -f $inbox/letter-2.txt; rm -r $inbox/*", as: .owner)
  }
}
