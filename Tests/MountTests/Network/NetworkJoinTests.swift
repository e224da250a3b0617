// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula network join`, `update` and `leave`.
@Suite(
  .enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"),
  .enabled(if: WebDAVServer.isPossible, "rclone is not installed"), .mayTake(seconds: 300))
struct NetworkJoinTests {
  /// A machine that trusts nobody, and a network whose apps are signed by somebody.
  private struct Joining {
    let shop: AppShop
    let server: WebDAVServer

    init() throws {
      shop = try AppShop()
      server = try WebDAVServer(in: shop.mounted.temporary)
      let script = """
        cd "$0" && mkdir -p Applications Library/Trust Library/Fonts && cp "$1" Library/Trust/root.pem &&
          echo font >Library/Fonts/f
        """
      let root = shop.mounted.temporary.appending("root.pem")
      try #require(try Program.run(["sh", "-c", script, server.directory, root]).status == 0)
      // The machine itself trusts nobody: what the network has is judged by its own list.
      _ = try shop.mounted.run(["trust", "remove", "tester", "--store", shop.mounted.store])
      let roots = try shop.mounted.run("trust", "list", "--store", shop.mounted.store)
      for line in roots.output.split(separator: "\n").dropFirst() {
        let fingerprint = String(line.split(separator: " ").last ?? "")
        _ = try shop.mounted.run("trust", "remove", fingerprint, "--store", shop.mounted.store)
      }
    }

    func network(_ words: String...) throws -> ProgramResult {
      try shop.mounted.run(["network"] + words + ["--store", shop.mounted.point])
    }

    /// Puts an app on the server.
    func offer(_ name: String, version: String, in directory: String) throws {
      let path = try shop.make(name, version: version, in: directory)
      let place = server.directory + "/Applications"
      let copy = ["sh", "-c", "rm -rf \"$1/$2.app\"; cp -a \"$0\" \"$1\"", path, place, name]
      try #require(try Program.run(copy).status == 0)
    }

    var fingerprint: String {
      get throws {
        let refused = try network("join", server.url)
        let found = refused.errors.split(whereSeparator: \.isWhitespace).first { $0.utf8.count == 64 }
        return String(try #require(found, "\(refused)"))
      }
    }

    func join() throws -> ProgramResult { try network("join", server.url, "--root", try fingerprint) }
  }

  /// The network's root signs in a team's name, and the machine trusts another one.
  @Test func networkAssignsNoTeamOfTheMachines() throws {
    let joining = try Joining()
    let (shop, mounted) = (joining.shop, joining.shop.mounted)
    try joining.offer("One", version: "1", in: "one")
    // Another root has signed the app of an identity with the same team.
    let other = ["env", "HOME=\(mounted.temporary.appending("other-home"))"]
    let root = mounted.temporary.appending("other.pem")
    var bundles: [String] = []
    for words in [
      ["identity", "new", "own", "--team", "ABCDE12345"],
      ["identity", "export", "own", "--certificate", root], ["trust", "add", root, "--store", mounted.store],
    ] {
      try #require(try mounted.run(words, before: other).status == 0, "\(words)")
    }
    for name in ["Two", "Three"] {
      bundles.append(try shop.make(name, version: "1", in: "own-\(name)"))
      let sign = ["sign", bundles[bundles.count - 1], "--identity", "own", "--force"]
      let signed = try mounted.run(sign, before: other)
      try #require(signed.status == 0, "\(signed)")
    }
    let joined = try joining.join()
    try #require(joined.status == 0 && joined.output.contains("Installed One.app."), "\(joined)")
    let teams = ["sqlite3", mounted.store + "/state/insula.db", "SELECT count(*) FROM teams"]
    #expect(try Program.run(teams).output == "0\n")
    let installed = try mounted.run("install", bundles[0], "--store", mounted.store)
    #expect(installed.status == 0, "\(installed)")
    let left = try joining.network("leave")
    #expect(left.status == 0, "\(left)")
    let again = try mounted.run("install", bundles[1], "--store", mounted.store)
    #expect(again.status == 0, "\(again)")
    #expect(try Program.run(teams).output == "1\n")
  }

  @Test func appsComeGoAndChangeWithTheNetwork() throws {
    let joining = try Joining()
    try joining.offer("One", version: "1", in: "one")
    let joined = try joining.join()
    #expect(joined.status == 0 && joined.output.contains("Installed One.app."), "\(joined)")
    let mounted = joining.shop.mounted
    let apps = mounted.path("Network/Applications")
    let look = """
      ls "$0"; cat "$1/Library/Fonts/f"; touch "$1/Library/x" 2>&1 | grep -c Read-only
      touch "$0/One.app/x" 2>&1 | grep -c Read-only; rmdir "$1/Library" 2>&1 | grep -c rmdir
      """
    let seen = try Program.run(["sh", "-c", look, apps, mounted.path("Network")])
    #expect(seen.output == "One.app\nfont\n1\n1\n1\n", "\(seen)")
    // What runs is the copy on this machine, whatever becomes of the server.
    let account = try TemporaryAccount()
    try joining.shop.succeed("user", "add", account.account.name)
    let become = [
      "setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)", "--clear-groups",
    ]
    let ran = try mounted.run(
      ["run", "--store", mounted.point, "org.example.one", "--", "true"], before: become)
    #expect(ran.status == 0, "\(ran)")

    try joining.offer("One", version: "2", in: "two")
    try joining.offer("Two", version: "1", in: "more")
    let updated = try joining.network("update")
    #expect(updated.status == 0 && updated.output == "Updated One.app.\nInstalled Two.app.\n", "\(updated)")
    let nothing = try joining.network("update")
    #expect(nothing.output == "All apps of the network are as it has them.\n", "\(nothing)")
    _ = try Program.run(["rm", "-r", joining.server.directory + "/Applications/Two.app"])
    let away = "mv \"$0/Applications\" \"$0/away\" && mkdir \"$0/Applications\""
    let back = "rmdir \"$0/Applications\" && mv \"$0/away\" \"$0/Applications\""
    try #require(try Program.run(["sh", "-c", away, joining.server.directory]).status == 0)
    let empty = try joining.network("update")
    #expect(empty.ending == .failed && empty.errors.contains("has no apps at all"), "\(empty)")
    try #require(try Program.run(["sh", "-c", back, joining.server.directory]).status == 0)
    let removed = try joining.network("update")
    #expect(removed.output.hasPrefix("Removed Two.app"), "\(removed)")

    let left = try joining.network("leave")
    #expect(left.status == 0, "\(left)")
    let after = try Program.run(["sh", "-c", "ls \"$0\"; ls \"$0/Applications\"", mounted.path("Network")])
    #expect(after.output == "Applications\nServers\n", "\(after)")
    try joining.shop.expectNothingToComplainAbout()
  }

  /// A server can keep what was signed once, and offer no such app for a while: neither brings an earlier
  /// version back.
  ///
  /// The team's own, later word does, and only as long as there is no later one.
  @Test(arguments: [false, true]) func anEarlierVersionNeedsTheTeamsWord(isTakenAway: Bool) throws {
    let joining = try Joining()
    let mounted = joining.shop.mounted
    let place = joining.server.directory + "/Applications"
    try joining.shop.succeed("trust", "add", mounted.temporary.appending("root.pem"), store: false)
    try joining.offer("Other", version: "1", in: "others")
    try joining.offer("One", version: "2", in: "two")
    let old = try joining.shop.make("One", version: "1", in: "old")
    func pack() throws {
      let script = "cd \"$1\"; rm -rf One.app*; \"$0\" pack \"$2\" -o One.app.tar"
      let packed = try Program.run(
        ["sh", "-ec", script, Program.insula, place, old],
        environment: ["HOME": mounted.temporary.appending("home")])
      try #require(packed.status == 0, "\(packed)")
    }
    func sign(by identity: String) throws {
      let signed = try mounted.run("index", place, "--identity", identity)
      try #require(signed.status == 0, "\(signed)")
    }
    func version() throws -> String {
      let text = FD.text(of: mounted.path("Network/Applications/One.app/Contents/Info.plist"), limit: 1 << 16)
      return try #require(text?.components(separatedBy: "CFBundleVersion</key>").last)
        .trimmingCharacters(in: .whitespacesAndNewlines).components(separatedBy: "\n")[0]
    }
    // Signed before the present version came here: it allows nothing.
    try pack()
    try sign(by: "tester")
    let index = try #require(try? Data(contentsOf: URL(fileURLWithPath: place + "/index.plist")))
    _ = try Program.run(["rm", "-r", place + "/One.app.tar", place + "/index.plist"])
    try joining.offer("One", version: "2", in: "again")
    // The index must be older by its seconds.
    let signedAt = time(nil)
    try #require(eventually { time(nil) > signedAt + 1 })
    #expect(try joining.join().status == 0)
    #expect(try version().contains(">2<"))
    if isTakenAway {
      _ = try Program.run(["rm", "-r", place + "/One.app"])
      let removed = try joining.network("update")
      #expect(removed.status == 0 && removed.output.contains("Removed One.app"), "\(removed)")
    }
    for oldIndex in [nil, index] {
      try pack()
      try oldIndex?.write(to: URL(fileURLWithPath: place + "/index.plist"))
      let refused = try joining.network("update")
      #expect(refused.status == 1 && refused.errors.contains("its team must say so"), "\(refused)")
      if !isTakenAway { #expect(try version().contains(">2<")) }
      #expect(access(mounted.path("Network/Applications/One.app"), F_OK) == (isTakenAway ? -1 : 0))
    }
    let refusedAt = time(nil)
    try #require(eventually { time(nil) > refusedAt })
    try sign(by: "tester")
    let word = try #require(try? Data(contentsOf: URL(fileURLWithPath: place + "/index.plist")))
    let back = try joining.network("update")
    #expect(back.status == 0, "\(back)")
    #expect(try version().contains(">1<"))
    // A later one needs nobody's word.
    _ = try Program.run(["rm", "-r", place + "/One.app.tar", place + "/index.plist"])
    try joining.offer("One", version: "3", in: "three")
    #expect(try joining.network("update").status == 0)
    #expect(try version().contains(">3<"))
    // What allowed it once does not allow it again.
    _ = try Program.run(["rm", "-r", place + "/One.app"])
    try pack()
    try word.write(to: URL(fileURLWithPath: place + "/index.plist"))
    let again = try joining.network("update")
    #expect(again.status == 1 && again.errors.contains("nothing was changed"), "\(again)")
    #expect(try version().contains(">3<"))
    #expect(try joining.network("leave").status == 0)
    #expect(access(mounted.store + "/state/network-versions", F_OK) != 0)
  }

  /// Each home on the server has a link to its place in `/Users`, and nothing else of the server has one.
  @Test func usersAreThoseOfTheNetwork() throws {
    let joining = try Joining()
    let mounted = joining.shop.mounted
    let make = """
      mkdir "$0/Users" && cd "$0/Users" && mkdir anna "be rta" .insula "$(printf 'a\\356\\200\\200')" &&
        mkdir -- -rf a:b && echo >file
      """
    try #require(try Program.run(["sh", "-c", make, joining.server.directory]).status == 0)
    #expect(try joining.join().status == 0)
    func links() throws -> String {
      let show =
        "cd \"$0\" && [ \"$(stat -c %a .)\" = 755 ] && for i in *; do echo \"$i: $(readlink \"$i\")\"; done"
      return try Program.run(["sh", "-c", show, mounted.path("Network/Users")]).output
    }
    let first = try links()
    #expect(first == "anna: ../../Users/anna\nbe rta: ../../Users/be rta\n")
    // What an administrator has put there stays theirs.
    let own = "mkdir \"$0/own\" && ln -s elsewhere \"$0/link\" && mv \"$1/anna\" \"$1/carl\""
    let place = joining.server.directory + "/Users"
    try #require(try Program.run(["sh", "-c", own, mounted.path("Network/Users"), place]).status == 0)
    #expect(try joining.network("update").status == 0)
    #expect(
      try links() == "be rta: ../../Users/be rta\ncarl: ../../Users/carl\nlink: elsewhere\nown: \n")
    // A server that can't be asked changes nothing.
    try #require(try Program.run(["mv", place, place + "-away"]).status == 0)
    let without = try joining.network("update")
    #expect(without.status == 0 && without.errors.contains("/Network/Users stays as it is"), "\(without)")
    #expect(try links().contains("carl: ../../Users/carl"))
    try #require(try Program.run(["mv", place + "-away", place]).status == 0)
    #expect(try joining.network("leave").status == 0)
    #expect(try links() == "link: elsewhere\nown: \n")
    try joining.shop.expectNothingToComplainAbout()
  }

  /// One command at a time joins, updates or leaves.
  @Test func nobodyElseChangesItMeanwhile() throws {
    let joining = try Joining()
    #expect(try joining.join().status == 0)
    let keys = try FD.cwd.openFollowing(joining.shop.mounted.store + "/keys", O_RDONLY | O_DIRECTORY)
    try #require(flock(keys.fd.raw, LOCK_EX | LOCK_NB) == 0)
    for words in [["update"], ["leave"], ["join", joining.server.url]] {
      let refused = try joining.shop.mounted.run(
        ["network"] + words + ["--store", joining.shop.mounted.point])
      #expect(refused.ending == .busy && refused.errors.contains("another command joins"), "\(refused)")
    }
    _ = flock(keys.fd.raw, LOCK_UN)
    #expect(try joining.network("leave").status == 0)
  }

  /// Roots of the network count for its apps alone, and only those that were pinned.
  @Test func trustIsTheNetworksOwn() throws {
    let joining = try Joining()
    try joining.offer("One", version: "1", in: "one")
    let wrong = try joining.network("join", joining.server.url, "--root", "0123456789abcdef")
    #expect(wrong.ending == .failed && wrong.errors.contains("no root of that fingerprint"), "\(wrong)")
    #expect(try joining.join().status == 0)
    let own = joining.shop.mounted.temporary.appending("one/One.app")
    let elsewhere = try joining.shop.mounted.run("install", own, "--store", joining.shop.mounted.store)
    // As `insula verify` says of a signer who is not trusted.
    #expect(elsewhere.ending == Ending(24), "the machine must not trust a network's root: \(elsewhere)")

    // Somebody who gets at the server has another root.
    let script = """
      set -e; cd "$0"; "$1" identity new mallory --team EVIL000001 >/dev/null
      "$1" new-app Evil >/dev/null; "$1" sign Evil.app --identity mallory >/dev/null
      "$1" identity export mallory >"$2/Library/Trust/more.pem"; cp -a Evil.app "$2/Applications"
      """
    try joining.shop.mounted.temporary.makeDirectory("mallory", mode: 0o755)
    let place = joining.shop.mounted.temporary.appending("mallory")
    let made = try Program.run(
      ["sh", "-c", script, place, Program.insula, joining.server.directory], environment: ["HOME": place])
    try #require(made.status == 0, "\(made)")
    let updated = try joining.network("update")
    #expect(updated.ending == .failed && updated.errors.contains("Evil.app"), "\(updated)")
    let apps = try Program.run(["ls", joining.shop.mounted.path("Network/Applications")])
    #expect(apps.output == "One.app\n", "\(apps)")
  }

  /// Whoever is stopped while joining can begin again.
  @Test func joiningCanBeStopped() throws {
    let joining = try Joining()
    try joining.offer("One", version: "1", in: "one")
    let fingerprint = try joining.fingerprint
    let mounted = joining.shop.mounted
    for hundredths in stride(from: 10, through: 55, by: 3) {
      let words = ["network", "join", joining.server.url, "--root", fingerprint, "--store", mounted.point]
      // In the foreground, so that timeout(1) does not end itself, and is there until the command is gone.
      let killed = ["timeout", "--foreground", "-s", "KILL", "0.\(hundredths)"]
      let stopped = try mounted.run(words, before: killed)
      // What the daemon was asked for goes on; whoever leaves waits for it.
      let left = try joining.network("leave")
      let hasLeft = left.status == 0 || left.errors.contains("has not joined a network")
      #expect(hasLeft, "after 0.\(hundredths) s (\(stopped)): \(left)")
    }
    let joined = try joining.network("join", joining.server.url, "--root", fingerprint)
    #expect(joined.status == 0, "\(joined)")
    let seen = try Program.run(["ls", mounted.path("Network"), mounted.path("Network/Applications")])
    #expect(seen.output.contains("Library\nServers\n") && seen.output.contains("One.app"), "\(seen)")
  }

  @Test func onlyTheMachinesOwnerJoins() throws {
    let joining = try Joining()
    let account = try TemporaryAccount()
    let refused = try joining.shop.run(as: account, "network", "join", joining.server.url)
    #expect(refused.ending == .notPermitted, "\(refused)")
    let absent = try joining.network("update")
    #expect(absent.errors.contains("has not joined a network"), "\(absent)")
    let url = try joining.network("join", "no-url")
    #expect(url.status == 2 && url.errors.contains("is no address of a server"), "\(url)")
    let nobody = try joining.network("join", "dav://127.0.0.1:1/x")
    #expect(nobody.ending == .failed, "\(nobody)")
    let left = try Program.run(["ls", joining.shop.mounted.path("Network")])
    #expect(left.output == "Servers\n", "\(left)")
    _ = try joining.join()
    let again = try joining.network("join", joining.server.url)
    #expect(again.errors.contains("'insula network leave' comes first"), "\(again)")
  }
}
