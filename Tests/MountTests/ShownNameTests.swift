// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What a user may try with names that are shown:
//
// - be told what is in files of others, by tables that are links, or in directories that are closed:
//   `tablesAreReadByWhoAsks`
// - have the daemon wait, or read without end: the same, with a pipe and a large file
// - disguise a name by marks of writing direction: `marksAreNotShown`
// - give a file a name by setting the attribute: `nobodySetsThem`

/// `system.insula.name`, on a mounted store.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ShownNameTests {
  private static let name = """
    name() {
      python3 -c 'import os, sys
    print(os.getxattr(sys.argv[1], "system.insula.name" + sys.argv[2]).decode())' "$1" "$2"
    }
    """
  private static let start = """
    cd "$POINT/Users/$(id -un)"; mkdir Files; cd Files
    table() {
      mkdir -p "$1.localized/.localized"
      printf '"%s" = "%s";' "$1" "$2" > "$1.localized/.localized/de.strings"
    }
    \(name)

    """

  private func lines(_ fixture: RunFixture, _ script: String, as account: Account? = nil) throws -> [String] {
    let result = try fixture.shell(script, as: account)
    #expect(result.errors.isEmpty, "\(result.errors)")
    return result.output.split(separator: "\n").map(String.init)
  }

  @Test(arguments: [false, true]) func daemonAndCommandSayTheSame(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let found = try lines(
      fixture,
      Self.start + """
        table A Zwei; touch report.pdf v1.2
        for path in "$POINT/Users" "$POINT/Applications/Utilities" "$POINT/Volumes" "$POINT/System" \\
          ../Documents ../Library A.localized report.pdf v1.2 "$POINT/Applications/Notes.app" \\
          "$POINT/Library/Caches"
        do
          name "$path" .de; "$INSULA" name --language de "$path"; name "$path" .en; name "$path" ''
        done
        """)
    let expected = [
      ("Benutzer", "Users"), ("Dienstprogramme", "Utilities"), ("Volumes", "Volumes"), ("System", "System"),
      ("Dokumente", "Documents"), ("Library", "Library"), ("Zwei", "A"), ("report", "report"),
      ("v1.2", "v1.2"),
      ("Notes", "Notes"), ("Caches", "Caches"),
    ]
    #expect(found == expected.flatMap { [$0.0, $0.0, $0.1, $0.1] })
  }

  @Test func storeMayShowExtensions() throws {
    let fixture = try RunFixture(initOptions: ["--show-extensions"])
    let found = try lines(
      fixture,
      Self.start + """
        touch a.txt b.txt; "$INSULA" name --hide-extension b.txt
        name a.txt ''; "$INSULA" name a.txt; name b.txt ''; "$INSULA" name b.txt
        getfattr --absolute-names -d -m - -e hex b.txt | grep FinderInfo
        """)
    #expect(
      found == [
        "a.txt", "a.txt", "b", "b",
        "user.com.apple.FinderInfo=0x0000000000000000" + "0010" + String(repeating: "0", count: 44),
      ])
  }

  @Test func extensionsAreShownAndHiddenOneByOne() throws {
    let fixture = try RunFixture()
    let found = try lines(
      fixture,
      Self.start + """
        touch a.txt; name a.txt ''; "$INSULA" name --show-extension a.txt
        name a.txt ''; "$INSULA" name a.txt; "$INSULA" name --hide-extension a.txt
        name a.txt ''; "$INSULA" name a.txt; ls
        """)
    #expect(found == ["a", "a.txt", "a.txt", "a", "a", "a.txt"])
  }

  @Test func nobodySetsThem() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      Self.start + """
        touch a; getfattr -d -m - a
        python3 - <<'END'
        import os
        for act in (lambda n: os.setxattr("a", n, b"x"), lambda n: os.removexattr("a", n)):
          for name in ("system.insula.name", "system.insula.name.de", "system.insula.extensions"):
            try: act(name); print("done")
            except OSError as error: print(error.strerror)
        for name in ("system.insula.name.", "system.insula.name.../x", "system.insula.names"):
          try: print(os.getxattr("a", name))
          except OSError as error: print(error.strerror)
        END
        """)
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(lines.prefix(6).allSatisfy { $0 == "Operation not supported" } && lines.count == 9, "\(lines)")
    #expect(
      lines.suffix(3).allSatisfy { ["No data available", "Operation not supported"].contains($0) }, "\(lines)"
    )
  }

  @Test(arguments: [false, true]) func tablesAreReadByWhoAsks(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let own = try lines(
      fixture,
      Self.start + """
        umask 022; chmod 711 ..; table A Geheim; chmod 700 A.localized; table B Geheim
        chmod 600 B.localized/.localized/de.strings; table C Offen
        mkdir -p D.localized/.localized E.localized/.localized F.localized/.localized
        printf '"D" = "Geheim";' > secret; ln -s "$PWD/secret" D.localized/.localized/de.strings
        mkfifo E.localized/.localized/de.strings
        { printf '"F" = "Geheim"; //'; head -c 70000000 /dev/zero; } > F.localized/.localized/de.strings
        for letter in A B C D E F; do name $letter.localized .de; done
        """)
    #expect(own == ["Geheim", "Geheim", "Offen", "D", "E", "F"])
    guard !rootless else { return }
    let home = fixture.mounted.path("Users/\(fixture.user.name)/Files")
    let others = try lines(
      fixture,
      """
      cd "\(home)"
      \(Self.name)
      for letter in A B C; do name $letter.localized .de; done
      """, as: Account(name: "nobody", uid: 65534, gid: 65534, home: "/"))
    #expect(others == ["A.localized", "B", "Offen"], "what nobody else sees is as good as missing")
  }

  @Test func marksAreNotShown() throws {
    let fixture = try RunFixture()
    let found = try lines(
      fixture,
      Self.start + """
        table A "$(printf 'a\\342\\200\\256b\\033[31m')"
        name A.localized .de; "$INSULA" name --language de A.localized
        LANG=de "$INSULA" ls --finder; "$INSULA" name --language de --json A.localized | grep name
        """)
    #expect(found == ["a?b?[31m", "a?b?[31m", "a?b?[31m", "    \"name\" : \"a\\u202eb\\u001b[31m\""])
  }

  @Test func listingForAPersonLeavesOutWhatIsHidden() throws {
    let fixture = try RunFixture()
    let found = try lines(
      fixture,
      Self.start + """
        export LANG=de_DE.UTF-8; "$INSULA" ls --finder "$POINT"; ls "$POINT"; "$INSULA" ls --finder ..
        """)
    #expect(
      found == [
        "Programme", "Library", "Netzwerk", "System", "Benutzer",
        "Applications", "Library", "Network", "System", "Users", "Volumes",
        "Programme", "Schreibtisch", "Dokumente", "Downloads", "Files", "Filme", "Musik", "Bilder",
        "Öffentlich", "Websites",
      ])
  }
}
