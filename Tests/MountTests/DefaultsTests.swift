// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What an app may try with the preferences that its user looks at or changes:
//
// - have the user read or overwrite another file, by a link in place of a list or of the directory:
//   `linksAreNotFollowed`
// - have the command wait, or take all memory: `whatIsNoListIsNamedAndStays`,
//   `oneValueInAMillionPlacesIsNotWrittenOut`
// - have what the user has lost by a list that can't be read: the same

/// `insula defaults`, on a mounted store.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct DefaultsTests {
  private static let defaults = """
    defaults() { verb=$1; shift; "$INSULA" defaults "$verb" --store "$POINT" "$@"; }
    cd "$POINT/Users/$(id -un)/Library/Preferences" || exit 1

    """

  private func shell(_ fixture: RunFixture, _ script: String) throws -> ProgramResult {
    try fixture.shell(Self.defaults + script)
  }

  @Test(arguments: [false, true]) func preferencesAreBinaryListsThatOthersRead(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let result = try shell(
      fixture,
      """
      defaults write com.example.x Name Ärger; defaults write com.example.x Size -int 12
      defaults write com.example.x List -array a -int 1; defaults write com.example.x List -array-add b
      defaults write com.example.x Map -dict a 1; defaults write com.example.x Map -dict-add b -bool yes
      defaults write -g When -date 2026-01-31T23:59:59Z
      defaults read com.example.x; defaults read com.example.x Name; defaults read -g When; defaults domains
      defaults read --json com.example.x List | tr -d ' \\n'; echo
      head -c 8 com.example.x.plist; echo; stat -c '%a %U' com.example.x.plist | sed "s/$(id -un)/me/"
      python3 -c 'import plistlib, sys; print(plistlib.load(open("com.example.x.plist", "rb")))'
      python3 - <<'END'
      import plistlib
      plistlib.dump({"xml": 1}, open("com.example.y.plist", "wb"))
      END
      defaults write com.example.y more -float 0.5; defaults read com.example.y
      defaults delete com.example.x Size; defaults read com.example.x Size; echo $?
      defaults delete com.example.x; ls
      defaults read com.example.x; echo $?; defaults delete com.example.x; echo $?
      """)
    #expect(
      result.output == """
        {
            List =     (
                a,
                1,
                b
            );
            Map =     {
                a = 1;
                b = 1;
            };
            Name = "\\U00c4rger";
            Size = 12;
        }
        Ärger
        "2026-01-31 23:59:59 +0000"
        NSGlobalDomain, com.example.x
        ["a",1,"b"]
        bplist00
        600 me
        {'List': ['a', 1, 'b'], 'Map': {'a': '1', 'b': True}, 'Name': 'Ärger', 'Size': 12}
        {
            more = "0.5";
            xml = 1;
        }
        1
        com.example.y.plist
        1
        1

        """, "\(result.output)\(result.errors)")
    #expect(result.errors.split(separator: "\n").count == 3, "\(result.errors)")
  }

  @Test func appsHaveTheirsInTheirContainers() throws {
    let fixture = try RunFixture()
    let id = "org.example.tool"
    try fixture.install("Tool", options: ["--from", Program.insula])
    func inside(_ words: String) throws -> String {
      let result = try fixture.shell("insula run \(id) --args \(words)")
      return result.output + result.errors
    }
    #expect(try inside("defaults write \(id) Inner 1") == "")
    #expect(try inside("defaults write -g Global 2") == "")
    #expect(try inside("defaults domains") == "NSGlobalDomain, \(id)\n")
    #expect(try inside("defaults read -g Global") == "2\n")
    let preferences = "$POINT/Users/$(id -un)/Library/Containers/\(id)/Data/Library/Preferences"
    let outside = try shell(
      fixture,
      """
      defaults read \(id); defaults write \(id) Outer 3; ls -A; ls -A "\(preferences)"
      defaults read -g 2>/dev/null; echo $?
      """)
    #expect(
      outside.output == "{\n    Inner = 1;\n}\n.GlobalPreferences.plist\n\(id).plist\n1\n",
      "\(outside.output)\(outside.errors)")
    #expect(try inside("defaults read \(id) Outer") == "3\n")
    #expect(try inside("defaults delete \(id)") == "")
    #expect(try inside("defaults domains") == "NSGlobalDomain\n")
    // LiveCode's words for places are about the app itself, as its scripts ask for them.
    let root = "\(fixture.mounted.point)/Users/\(fixture.user.name)"
    let data = "\(root)/Library/Containers/\(id)/Data"
    #expect(try inside("path --livecode documents") == "\(data)/Documents\n")
    #expect(try inside("path --livecode cache") == "\(data)/Library/Caches\n")
    #expect(try inside("path --livecode home") == "\(fixture.mounted.point)/Applications/Tool.app\n")
    #expect(try inside("path --livecode desktop") == "\(root)/Desktop\n")
    let named = try fixture.shell(
      "insula path --livecode engine \(id); insula path --livecode support; echo $?")
    #expect(named.output == "\(fixture.mounted.point)/Applications/Tool.app\n2\n", "\(named.errors)")
  }

  @Test func oneValueInAMillionPlacesIsNotWrittenOut() throws {
    let fixture = try RunFixture()
    let result = try shell(
      fixture,
      """
      python3 - <<'END'
      import struct
      many, long = 900000, 60000
      objects = [b"\\xd1\\x01\\x02", b"\\x51k", b"\\xaf\\x12" + struct.pack(">I", many) + b"\\x03" * many,
                 b"\\x4f\\x12" + struct.pack(">I", long) + b"A" * long]
      out, offsets = b"bplist00", []
      for data in objects:
          offsets.append(len(out)); out += data
      table = len(out)
      out += b"".join(struct.pack(">I", o) for o in offsets) + bytes(6) + bytes([4, 1])
      open("bomb.plist", "wb").write(out + struct.pack(">QQQ", len(offsets), 0, table))
      END
      ulimit -v 4000000
      sum() { cksum < bomb.plist; }
      before=$(sum)
      for line in "read bomb" "read bomb --json" "write bomb x y" "delete bomb k"; do
        defaults $line >/dev/null; echo $?
      done
      [ "$before" = "$(sum)" ] && echo same
      """)
    #expect(result.output == "1\n1\n1\n1\nsame\n", "\(result)")
    let refusals = result.errors.split(separator: "\n").filter { String($0).includes("more than 64 MiB") }
    #expect(refusals.count == 4, "\(result.errors)")
  }

  @Test func whatIsNoListIsNamedAndStays() throws {
    let fixture = try RunFixture()
    let result = try shell(
      fixture,
      """
      printf broken > a.plist; mkfifo b.plist; mkdir c.plist; printf '<plist><array/></plist>' > d.plist
      truncate -s 70000000 e.plist; defaults write good x 1
      for domain in a b c d e; do
        defaults read $domain; defaults write $domain x 1; defaults delete $domain x
      done
      defaults read; cat a.plist d.plist; stat -c %s e.plist; ls
      """)
    #expect(
      result.output == """
        {
            good =     {
                x = 1;
            };
        }
        broken<plist><array/></plist>70000000
        a.plist
        b.plist
        c.plist
        d.plist
        e.plist
        good.plist

        """, "\(result.output)")
    let errors = result.errors.split(separator: "\n")
    for name in ["a", "b", "c", "d", "e"] {
      #expect(
        errors.filter { $0.split(separator: "/\(name).plist").count > 1 }.count == 4)
    }
  }

  @Test func linksAreNotFollowed() throws {
    let fixture = try RunFixture()
    let planted = try fixture.inside(
      """
      cd Library; rm -r Preferences/*; ln -s ../../../../../../Documents/secret.plist Preferences/x.plist
      ln -s ../../../../../../Documents/secret.plist Preferences/\(RunFixture.identifier).plist
      """)
    try #require(planted.status == 0, "\(planted.errors)")
    let result = try shell(
      fixture,
      """
      cd ../../Documents; printf secret > secret.plist; id=\(RunFixture.identifier)
      defaults read $id; defaults write $id a b; cat secret.plist; echo
      cd "$DATA/Library"; rm Preferences/*; rmdir Preferences; ln -s ../../../../../Documents Preferences
      defaults read $id; defaults write $id a b; ls Preferences
      """)
    #expect(result.output == "secret\nsecret.plist\n", "\(result.output)\(result.errors)")
    #expect(result.errors.split(separator: "\n").count == 4, "\(result.errors)")
  }

  /// What is there stays, whatever happens to what is written.
  @Test func writersTakeTurnsAndAFullDiskLosesNothing() throws {
    let fixture = try RunFixture()
    let result = try shell(
      fixture,
      """
      for number in $(seq 1 40); do defaults write many key$number $number & done; wait
      defaults read many | grep -c key; ls -A
      cp many.plist before; long=$(head -c 100000 /dev/zero | tr '\\0' x)
      (trap '' XFSZ; ulimit -f 100; defaults write many big "$long"; echo $?) 2>/dev/null
      cmp many.plist before && ls -A
      """)
    #expect(
      result.output == "40\nmany.plist\n1\nbefore\nmany.plist\n", "\(result.output)\(result.errors)")
  }
}
