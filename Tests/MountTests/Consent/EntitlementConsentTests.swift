// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

// What an app may try whose signature entitles it to everything:
//
// - it reads, changes, links, moves or spells otherwise what is private, what other apps have in their
//   containers, and what is another user's: `entitlementsGiveNothingPrivate`
// - it keeps what it had open or mapped when its user or an administrator says no: `decisionsActOnWhatIsOpen`
// - it moves a private place, or what leads to one, while it may use it: `placesKeepTheirNames`
// - it takes a file that it was granted for a way to what lies beside it: `grantsOfDocumentsAreNoMore`

/// Entitlements let an app ask; what it gets its user decides.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct EntitlementConsentTests {
  private static let grabber = "org.example.grabber"
  private static let other = "org.example.other"
  private static let services = [
    "media-library", "photos", "contacts", "calendars", "reminders", "desktop", "documents", "downloads",
    "removable-volumes", "network-volumes", "app-data",
  ]

  /// A file of each kind that is private, in the home.
  private static let files = [
    "Music/Other/file", "Music/Music/song", "Movies/film", "Pictures/shot", "Downloads/down", "Desktop/desk",
    "Library/Application Support/AddressBook/card",
    "Library/Containers/\(other)/Data/Documents/letter", "Library/Containers/\(other)/Data/Library/secret",
    "Library/Group Containers/group.\(other)/note",
    "Library/Mobile Documents/iCloud~org~example~other/Documents/page",
  ]
  /// Those that consent opens to an app that is entitled to everything.
  private static let opened = files.filter {
    !$0.contains("Group Containers") && !$0.contains("Data/Library")
  }

  private func fixture(rootless: Bool = false, _ initOptions: [String] = []) throws -> ConsentFixture {
    let fixture = try ConsentFixture(rootless: rootless, initOptions: initOptions)
    let texts = ["AppleMusic", "PhotoLibrary", "PhotoLibraryAdd", "Contacts", "Calendars", "Reminders"].map {
      "<key>NS\($0)UsageDescription</key><string>Wants it.</string>"
    }
    let folders = ["assets.music", "assets.pictures", "assets.movies", "files.downloads"].map {
      "<key>com.apple.security.\($0).read-write</key><true/>"
    }
    let all = "<array><string>/</string></array>"
    try fixture.fixture.install(
      "Grabber",
      entitlements: folders.joined() + """
        <key>com.apple.security.temporary-exception.files.absolute-path.read-write</key>\(all)
        <key>com.apple.security.temporary-exception.files.home-relative-path.read-write</key>\(all)
        """, info: texts.joined())
    try fixture.fixture.install(
      "Other",
      entitlements: """
        <key>com.apple.security.application-groups</key><array><string>group.\(Self.other)</string></array>
        <key>com.apple.developer.icloud-container-identifiers</key>
        <array><string>iCloud.\(Self.other)</string></array>
        """)
    let made = try fixture.shell(
      """
      set -e; insula run \(Self.other) -- true; insula run \(Self.grabber) -- true
      cd '\(fixture.home)'
      for name in \(Self.files.map { "'\($0)'" }.joined(separator: " ")); do
        mkdir -p "$(dirname "$name")"; echo secret > "$name"
      done
      """)
    try #require(made.status == 0, "\(made)")
    return fixture
  }

  /// Runs the attempts as the app, or as the user with the app's home.
  private func attempts(_ fixture: ConsentFixture, asApp: Bool) throws -> [String] {
    let script = "\(ConsentFixture.fixtures)/entitlement-attempts.py"
    let words = Self.files.map { "'\($0)'" }.joined(separator: " ")
    let result = try fixture.shell(
      asApp
        ? """
        insula run --env HOME_OF_USER='\(fixture.home)' \(Self.grabber) -- python3 -B - \(words) < '\(script)'
        """
        : """
        HOME_OF_USER='\(fixture.home)' HOME='\(fixture.home)/Library/Containers/\(Self.grabber)/Data' \
          python3 -B - \(words) < '\(script)'
        """)
    try #require(result.status == 0, "\(result)")
    return result.output.split(separator: "\n").map(String.init)
  }

  private func consent(_ verb: String, _ services: [String] = services) -> String {
    services.map { "$INSULA consent \(verb) \(Self.grabber) \($0) --store $POINT > /dev/null" }
      .joined(separator: " && ")
  }

  /// Whatever was decided: nobody was asked, the user has said no, or an administrator.
  @Test(arguments: [
    (false, "", []), (false, "nopassthrough", []), (true, "", []), (false, "", ["--case-insensitive"]),
  ])
  func entitlementsGiveNothingPrivate(rootless: Bool, options: String, initOptions: [String]) throws {
    let fixture = try fixture(rootless: rootless, initOptions)
    let mounted = fixture.fixture.mounted
    if !options.isEmpty {
      #expect(try mounted.unmount().status == 0)
      try mounted.mount(options: options)
    }
    let undecided = try attempts(fixture, asApp: true)
    #expect(undecided.count == 1 && undecided[0].hasPrefix("tried 2"), "\(undecided)")
    let denied = try fixture.shell(consent("deny"))
    #expect(denied.status == 0, "\(denied)")
    #expect(try attempts(fixture, asApp: true) == undecided)
    // Its own container, and what is around all that, it has.
    let own = try fixture.shell(
      """
      insula run --env HOME_OF_USER='\(fixture.home)' \(Self.grabber) -- sh -c '
        cd && echo a > Documents/a && cat Documents/a && cd "$HOME_OF_USER"
        echo b > Public/b && cat Public/b
        echo c > ../Shared/c && cat ../Shared/c'
      """)
    #expect(own.output.hasPrefix("a\nb\nc\n"), "\(own)")
    // Restriction counts for those, too, whose user has allowed everything.
    let managed = "\(mounted.point)/Library/Managed Preferences"
    let list = "<plist version=\"1.0\"><dict><key>*</key><true/></dict></plist>"
    #expect(try fixture.shell(consent("allow")).status == 0)
    let asOwner = rootless ? ["runuser", "-u", fixture.fixture.user.name, "--"] : []
    let written = try Program.run(
      asOwner + [
        "sh", "-c", "mkdir -p '\(managed)' && echo '\(list)' > '\(managed)/org.insula.consent.plist'",
      ])
    try #require(written.status == 0, "\(written)")
    #expect(try attempts(fixture, asApp: true) == undecided)
    // All of it is there for the user, or the attempts would prove nothing.
    let possible = Set(try attempts(fixture, asApp: false))
    for name in Self.files {
      for what in ["read", "around", "root", "link", "steps", "list", "copy", "change", "move out", "remove"]
      {
        let isPossible = possible.contains("\(what) \(name)")
        #expect(isPossible, "\(what) \(name)")
      }
    }
    #expect(possible.contains("spelt read Movies/film") == !initOptions.isEmpty)
    #expect(
      possible.contains("move place Library/Calendars")
        && possible.contains("exchange place Library/Application Support"))
  }

  /// Two views of the app have the same files open, and lose and get them together.
  @Test(arguments: [(false, ""), (false, "nopassthrough"), (true, "")])
  func decisionsActOnWhatIsOpen(rootless: Bool, options: String) throws {
    let fixture = try fixture(rootless: rootless)
    let mounted = fixture.fixture.mounted
    if !options.isEmpty {
      #expect(try mounted.unmount().status == 0)
      try mounted.mount(options: options)
    }
    let documents = "\(fixture.home)/Library/Containers/\(Self.grabber)/Data/Documents"
    let managed = "\(mounted.point)/Library/Managed Preferences"
    let list = "<plist version=\"1.0\"><dict><key>*</key><true/></dict></plist>"
    let asOwner = rootless ? ["runuser", "-u", fixture.fixture.user.name, "--"] : []
    func wait(_ state: Int) -> String {
      """
      n=0; until [ -e '\(documents)/a-ready-\(state)' ] && [ -e '\(documents)/b-ready-\(state)' ]; do
        n=$((n + 1)); [ $n -lt 2000 ] || { cat $outputs/* >&2; exit 9; }; sleep 0.05; done
      """
    }
    func go(_ state: Int) -> String { "touch '\(documents)/a-go-\(state)' '\(documents)/b-go-\(state)'" }
    let words = [
      "sh", "-c",
      """
      \(wait(4)); mkdir -p '\(managed)' && echo '\(list)' > '\(managed)/org.insula.consent.plist'; \(go(4))
      \(wait(5)); rm '\(managed)/org.insula.consent.plist'; \(go(5))
      """,
    ]
    let administrator = try JoinableThread(name: "restricts") { _ = try? Program.run(asOwner + words) }
    defer { administrator.join() }
    let paths = Self.opened.map { "'\($0)'" }.joined(separator: " ")
    let result = try fixture.shell(
      """
      outputs=$(mktemp -d)
      for name in a b; do
        insula run --env HOME_OF_USER='\(fixture.home)' \(Self.grabber) -- python3 -B - $name \(paths) \
          < '\(ConsentFixture.fixtures)/entitled-app.py' > $outputs/$name 2>&1 &
      done
      \(wait(1)); \(consent("allow")); \(go(1))
      \(wait(2)); \(consent("deny")); \(go(2))
      \(wait(3)); \(consent("allow")); \(go(3))
      wait; cat $outputs/a; echo; cat $outputs/b; rm -r $outputs
      """)
    let expected = """
      at first opens 1
      allowed opens ok
      allowed reads ok
      allowed maps ok
      denied opens 1
      denied reads 1
      denied maps signal 7
      allowed again opens ok
      restricted opens 1
      restricted reads 1
      restricted maps signal 7
      restricted no more opens ok

      """
    #expect(result.output == expected + "\n" + expected, "\(result)")
  }

  /// With consent, too: under another name a place would be a part of what is around it, and a file that was
  /// carried out of it would stay when consent goes.
  @Test(arguments: [false, true])
  func placesKeepTheirNames(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let result = try fixture.shell(
      consent("allow") + """

        insula run --env HOME_OF_USER='\(fixture.home)' \(Self.grabber) -- sh -c '
          cd "$HOME_OF_USER"; cat Music/Other/file
          for place in Music Pictures Movies Library/Calendars "Library/Application Support" Downloads \
              "Library/Application Support/AddressBook" Library; do
            mv -T "$place" "$place-moved" 2> /dev/null; echo $?; rmdir "$place" 2> /dev/null; echo $?
          done
          for file in Music/Other/file Pictures/shot Downloads/down; do
            ln $file linked 2>&1 | grep -c "cross-device"; python3 -c "import os, sys
        try: os.rename(sys.argv[1], \\"carried\\")
        except OSError as error: print(error.errno)" $file
          done; mv Music/Other/file Music/Other/renamed && cat Music/Other/renamed'
        """)
    let refused = Array(repeating: "1\n1\n", count: 8).joined()
    let apart = Array(repeating: "1\n18\n", count: 3).joined()
    #expect(result.output == "secret\n" + refused + apart + "secret\n", "\(result)")
  }

  /// A user may grant one document of another app, and grants nothing else by that.
  @Test(arguments: [false, true])
  func grantsOfDocumentsAreNoMore(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let documents = "\(fixture.home)/Library/Containers/\(Self.other)/Data/Documents"
    let result = try fixture.shell(
      """
      echo more > '\(documents)/second'
      insula grant \(Self.grabber) '\(documents)/letter' > /dev/null && \(consent("deny")) && inside() {
        insula run \(Self.grabber) -- sh -c "$1"
      }
      inside 'cd "\(documents)" && cat letter && ls && cat second ../Library/secret; ls .. ../..; ls ../../..'
      """)
    #expect(result.output == "secret\nletter\n..:\nDocuments\n\n../..:\nData\n", "\(result)")
    #expect(result.errors.contains("Operation not permitted"), "\(result)")
  }

  /// Another user's home is no place for an entitlement, however open it is.
  @Test func othersHomesAreNotThere() throws {
    let fixture = try fixture()
    let account = try TemporaryAccount()
    let mounted = fixture.fixture.mounted
    try fixture.fixture.succeed("user", "add", account.account.name, "--store", mounted.store)
    let home = "\(mounted.point)/Users/\(account.account.name)"
    let made = try fixture.shell(
      """
      chmod 755 '\(home)' && cd '\(home)' && chmod 755 Music Public && echo theirs > Music/song \
        && echo theirs > Public/file && chmod 644 Music/song Public/file
      """, as: account.account)
    try #require(made.status == 0, "\(made)")
    let script = "cat '\(home)/Music/song' '\(home)/Public/file'; ls '\(mounted.point)/Users'"
    #expect(try fixture.shell(script).output.hasPrefix("theirs\ntheirs\n"))
    let result = try fixture.shell(
      consent("allow") + "; insula run \(Self.grabber) -- sh -c \"\(script)\"")
    #expect(result.output == "Shared\n\(fixture.fixture.user.name)\n", "\(result)")
  }

  /// What X11 is, whoever installs an app is told that has it; by which the app has nothing of other apps.
  @Test func installSaysWhatX11Is() throws {
    let fixture = try RunFixture()
    for (name, key) in [("Windows", "x11"), ("Panes", "wayland")] {
      try fixture.install(name, entitlements: "<key>org.insula.desktop.\(key)</key><true/>")
      try fixture.succeed("uninstall", "org.example.\(name.lowercased())", "--store", fixture.mounted.store)
      let bundle = fixture.mounted.temporary.appending("store/\(name)-made/\(name).app")
      let installed = try fixture.mounted.run(["install", bundle, "--store", fixture.mounted.store])
      #expect(installed.status == 0, "\(installed)")
      #expect(installed.errors.contains("read what is typed") == (key == "x11"), "\(installed)")
    }
  }
}
