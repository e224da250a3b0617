// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula backup export` and `import`, on a mounted store, by the app's user and by root for that user.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ITunesFormTests {
  /// What is backed up has "in" in its name, what is not has "out".
  private static let fill = """
    cd $data; mkdir -p Documents/in1/deep 'Documents/in \u{1F600} \u{e9}'
    mkdir -p Library/Caches/out tmp/out .cache/out
    echo text >Documents/in1/in; : >Documents/in1/in-empty; echo x >'Documents/in1/in \u{540d}\u{524d}'
    head -c 3000000 /dev/urandom >Documents/in1/deep/in-large; ln -s ../nowhere Documents/in-link
    echo out >Library/Caches/out/out; echo own >.in-own; chmod 640 Documents/in1/in
    ln Documents/in1/in Documents/in1/in-other; printf 'x' >"$(printf 'Documents/out\\377')"
    touch -d '2001-02-03 04:05:06' Documents/in1/in
    setfattr -n user.com.example.tag -v value Documents/in1/in
    insula acl +a 'everyone deny delete' Documents/in1/in; insula flags hidden Documents/in1
    insula flags uchg Documents/in1/in-empty
    mkdir Documents/out; echo x >Documents/out/out; echo x >Documents/out-marked
    insula backup exclude Documents/out Documents/out-marked
    mkfifo Documents/out-fifo; chmod 500 Documents/in1/deep
    mkdir -p "$group/Library/Caches" "$group/in"; echo shared >"$group/in/in"
    echo x >"$group/Library/Caches/out"
    """
  private static let helpers = """
    save() { insula backup export --store $store "$@"; }
    load() { insula backup import --store $store "$@"; }
    # All that such a backup keeps of the app's data.
    look() (
      cd $data
      find Documents Library .in-own ! -name 'out*' ! -path '*/Caches/*' -printf '%p %y %m %s %Ts %l\\n' |
        grep -vE '^Library( d|/Caches)' | sed 's/ d \\([0-9]*\\) [0-9]* / d \\1 /' | sort
      find Documents -type f ! -path '*/out*' | sort | xargs -d '\\n' sha256sum
      find Documents -type f ! -path '*/out*' | sort | xargs -d '\\n' getfattr -h -d -m 'user\\.|insula'
    )
    rows() {
      python3 -c 'import sqlite3, sys
    database = sqlite3.connect(sys.argv[1] + "/Manifest.db")
    for row in database.execute("SELECT domain, relativePath FROM Files"):
      print("/".join(row).rstrip("/"))' "$1" | sort
    }

    """

  private func run(_ fixture: PlaceFixture, _ script: String, as person: Person = .owner) throws
    -> ProgramResult
  {
    try fixture.run(Self.helpers + script, as: person)
  }

  private func perform(_ fixture: PlaceFixture, _ script: String, as person: Person = .owner) throws -> String
  {
    try fixture.perform("set -e; " + Self.helpers + script, as: person)
  }

  @Test(arguments: [false, true]) func exportHasWhatIsBackedUp(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    try fixture.perform(Self.fill, as: .owner)
    let exported = try run(fixture, "save $work/place/B")
    #expect(exported.status == 0, "\(exported.errors)")
    #expect(exported.errors.contains("Documents/out-fifo: a fifo has no contents"), "\(exported.errors)")
    #expect(exported.errors.contains(": its name is not UTF-8"), "\(exported.errors)")
    // The same as a backup program finds, but for what such a backup can't have.
    let found = try perform(
      fixture,
      """
      insula backup run --store $store -- python3 - "$data" "$group" <<'END' | sort
      import os, sys
      for domain, top in (("AppDomain-org.example.editor", sys.argv[1]),
                          ("AppDomainGroup-group.org.example", sys.argv[2])):
        print(domain)
        for place, folders, files in os.walk(top):
          for name in folders + files:
            path = os.path.relpath(os.path.join(place, name), top)
            if not (path.endswith(".app") or path.startswith(".com.apple.") or "fifo" in path
                    or any(ord(c) >= 0xd800 and ord(c) < 0xe000 for c in path)):
              print(domain + "/" + path)
      END
      """)
    let rows = try perform(fixture, "rows $work/place/B")
    #expect(rows == found, "\(rows)\n\(found)")
    #expect(!rows.contains("/out") && rows.split(separator: "\n").count > 12, "\(rows)")
    // Nobody else reads it, and nothing is left beside it.
    #expect(
      try perform(fixture, "cd $work/place; ls -A; stat -c %a B; find B -perm /077") == "B\nletter.txt\n700\n"
    )
    let report = try perform(fixture, "save $work/place/J --json")
    let json = try JSONSerialization.jsonObject(with: Data(report.utf8)) as? [String: Any]
    #expect((json?["containers"] as? [[String: Any]])?.count == 2, "\(report)")
  }

  @Test(arguments: [false, true]) func everythingComesBack(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    try fixture.perform(Self.fill, as: .owner)
    let before = try perform(fixture, "save $work/place/B >/dev/null 2>&1; look")
    #expect(before.contains("Documents/in1/in f 640") && before.contains("user.com.example.tag"), "\(before)")
    for person in fixture.people {
      try fixture.perform(
        """
        cd $data; insula flags nouchg Documents/in1/in-empty; insula acl -N Documents/in1/in
        echo other >"$group/in/in"; echo more >"$group/more"
        echo other >Documents/in1/in; rm -f Documents/in-link; echo more >Documents/more
        """, as: .owner)
      let refused = try run(fixture, "load $work/place/B --user $owner", as: person)
      #expect(
        refused.status == 1
          && refused.errors.contains("already has data; nothing was changed; '--replace' replaces all of it"),
        "\(refused)")
      #expect(try fixture.perform("cat $documents/more", as: .owner) == "more\n")
      let imported = try run(
        fixture, "load $work/place/B --replace --user $owner --json", as: person)
      #expect(imported.status == 0, "\(imported.output)\(imported.errors)")
      let after = try perform(fixture, "look")
      #expect(after == before, "\(person): \(after)\n\(before)")
      let left = try fixture.perform(
        "cd $home/Library; ls -A Containers 'Group Containers'; cd Group*/group*; cat in/in; ls -A",
        as: .owner)
      #expect(
        left == """
          Containers:
          org.example.editor

          Group Containers:
          group.org.example
          shared
          .com.apple.mobile_container_manager.metadata.plist
          Library
          in

          """, "\(person)")
      #expect(try fixture.run("mv -T \"$group\" $home/away", as: .owner).ending == .failed)
    }
    // What was marked is not in it, and is gone.
    #expect(try fixture.run("ls $documents/out", as: .owner).ending == .seriousTrouble)
    let checker = try #require(fixture.people.last)
    #expect(try !fixture.perform("insula check --json $store", as: checker).contains("path"))
  }

  @Test func appsThatAreNotThereAreNamed() throws {
    let fixture = try PlaceFixture()
    try fixture.install("Viewer")
    try fixture.perform("echo text >$documents/file", as: .owner)
    let result = try run(
      fixture,
      """
      save $work/place/B; insula uninstall org.example.viewer --store $store; echo other >$documents/file
      load $work/place/B --replace; echo "status $?"; cat $documents/file
      load $work/place/B org.example.none; echo "status $?"
      insula uninstall $app --store $store >&2; load $work/place/B
      """)
    let words = [
      "Exported 3 containers", "Imported the data of org.example.editor", "status 1\ntext\nstatus 1\n",
    ]
    #expect(words.allSatisfy { result.output.contains($0) }, "\(result.output)\(result.errors)")
    for words in [
      "org.example.viewer: it is not installed, so its data were not imported; install it first",
      "group.org.example: no app of this group is installed",
      "org.example.none: ", "has no data of this app; nothing was changed",
    ] {
      #expect(result.errors.contains(words), "\(words)\n\(result.errors)")
    }
  }

  @Test func directoryIsNewOrEmpty() throws {
    let fixture = try PlaceFixture()
    let result = try run(
      fixture,
      """
      cd $work/place; echo text >$documents/file; mkdir empty full; echo x >full/x; ln -s empty link
      for d in empty full letter.txt link nothing/B; do save $d; echo "$d $?"; done
      ls -A; ls full; ls empty | wc -l; cat letter.txt
      """)
    #expect(
      result.output.contains("empty 0\nfull 1\nletter.txt 1\nlink 1\nnothing/B 1\n"),
      "\(result.output)\(result.errors)")
    #expect(result.output.hasSuffix("empty\nfull\nletter.txt\nlink\nx\n\(try folders(result))\ntext\n"))
    #expect(
      result.errors.components(separatedBy: "is not an empty directory; nothing was changed").count == 4,
      "\(result.errors)")
  }

  private func folders(_ result: ProgramResult) throws -> String {
    let lines = result.output.split(separator: "\n")
    return String(try #require(lines.dropLast().last))
  }

  /// An export does not copy itself, wherever it is made.
  @Test func exportsIntoWhatIsExported() throws {
    let fixture = try PlaceFixture()
    let result = try run(
      fixture, "cd $documents; echo text >file; save B && rows B; find B -type f | wc -l; ls -A")
    #expect(
      result.output.hasSuffix(
        """
        AppDomain-org.example.editor
        AppDomain-org.example.editor/Documents
        AppDomain-org.example.editor/Documents/file
        AppDomain-org.example.editor/Library
        AppDomain-org.example.editor/Library/Application Support
        AppDomain-org.example.editor/Library/Preferences
        AppDomainGroup-group.org.example
        5
        B
        file

        """), "\(result.output)\(result.errors)")
  }

  @Test func appsThatAreSwitchedOffAreLeftOut() throws {
    let fixture = try PlaceFixture()
    let result = try run(
      fixture,
      """
      echo text >$documents/file; insula backup off $app --store $store
      save $work/place/B; rows $work/place/B
      insula backup on $app --store $store; insula backup exclude $home
      save $work/place/C; rows $work/place/C
      """)
    #expect(
      result.output.contains("Exported 1 container ") && result.output.contains("AppDomainGroup-"),
      "\(result.output)\(result.errors)")
    #expect(!result.output.contains("AppDomain-"), "\(result.output)")
    #expect(
      result.errors.components(separatedBy: "nothing was copied, because it is marked").count == 4,
      "\(result.errors)")
  }

  /// What an app leaves for whoever makes a backup of its data.
  @Test func whatAppsLeaveStopsNobody() throws {
    let fixture = try PlaceFixture()
    let secret = try fixture.cast.mounted.temporary.write("secret", to: "secret")
    let result = try run(
      fixture,
      """
      cd $documents; ln -s \(secret) link; ln -s . loop; mkfifo pipe; echo x >"$(printf 'a\\nb')"
      python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
      setfattr -n user.x -v "$(head -c 3000 /dev/zero | tr '\\0' y)" .
      save $work/place/B && ! grep -rq secret $work/place/B && rows $work/place/B | tail -n 7
      load $work/place/B --replace; cd $documents; readlink link; ls -A
      """)
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    #expect(result.output.contains(secret) && !result.output.contains("pipe"), "\(result.output)")
    #expect(result.errors.contains("pipe: a fifo") && result.errors.contains("socket: a socket"))
  }

  /// What root has done for others is done by them.
  @Test func rootReadsForOthersWithTheirRights() throws {
    let fixture = try PlaceFixture()
    try fixture.perform("echo text >$documents/file", as: .owner)
    let result = try run(
      fixture,
      """
      mkdir -m 700 $work/closed; save $work/closed/B --user $owner; echo "status $?"
      save $work/place/B --user $owner; chmod 700 $work/place/B; chown -R 0:0 $work/place/B
      load $work/place/B --replace --user $owner; echo "status $?"; ls -A $work/closed
      """, as: .root)
    #expect(result.output.contains("status 7\n") && result.output.hasSuffix("status 7\n"), "\(result)")
    #expect(result.errors.components(separatedBy: "Permission denied").count >= 3, "\(result.errors)")
  }
}
