// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
@testable internal import Store
internal import TestSupport
internal import Testing

/// A home that goes takes its owner's apps with it.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HomeRemovalTests {
  /// An account has got another number, and its home with it: its apps are noted for the former one.
  @Test(arguments: [true, false]) func appsOfAFormerNumberGoWithTheHome(isMounted: Bool) throws {
    let shop = try AppShop()
    let accounts = [try TemporaryAccount(), try TemporaryAccount()]
    let bundle = try shop.make("Notes", version: "1.0")
    for account in accounts {
      try shop.succeed("user", "add", account.account.name)
      try shop.succeed("install", bundle, "--user", account.account.name)
    }
    try shop.succeed("unmount")
    let path = "Users/\(accounts[0].account.name)/Applications/Notes.app"
    let database = shop.mounted.store + "/state/insula.db"
    let moved = "UPDATE apps SET user = 4000000001 WHERE path = '\(path)'; SELECT changes()"
    try #require(try Program.run(["sqlite3", database, moved]).output == "1\n")
    if isMounted { try shop.mounted.mount() }
    for (account, left) in zip(accounts, [1, 0]) {
      try shop.succeed("user", "remove", account.account.name, "--delete-home")
      let rows = try Program.run(["sqlite3", database, "SELECT count(*) FROM apps"])
      #expect(rows.output == "\(left)\n")
      #expect(access(shop.mounted.backing("Users/\(account.account.name)"), F_OK) == -1)
    }
  }

  /// Something that is mounted in a home is named before anything is removed, in whichever namespace.
  @Test(arguments: [true, false], [false, true])
  func aHomeWithAMountInItStaysWhole(isMounted: Bool, elsewhere: Bool) throws {
    let shop = try AppShop()
    let (account, other) = (try TemporaryAccount(), try TemporaryAccount())
    let name = account.account.name
    for name in [name, other.account.name] { try shop.succeed("user", "add", name) }
    try shop.succeed("install", try shop.make("Notes", version: "1.0"), "--user", name)
    if !isMounted { try shop.succeed("unmount") }
    let tree = isMounted ? shop.mounted.point : shop.mounted.store + "/tree"
    let place = "\(tree)/Users/\(name)/Documents/a deep/place"
    let ready = shop.mounted.temporary.appending("ready")
    let script = """
      mkdir -p "$1"; mount -t tmpfs none "$1" && echo kept >"$1/file" && echo $$ >"$2"
      [ -z "$3" ] || exec sleep 300
      """
    let words = ["sh", "-c", script, "sh", place, ready, elsewhere ? "stay" : ""]
    let helper =
      elsewhere
      ? try JoinableThread(name: "mounts") {
        _ = try? Program.run(["timeout", "200", "unshare", "-m"] + words)
      } : nil
    if !elsewhere { #expect(try Program.run(words).status == 0) }
    #expect(eventually { FD.text(of: ready, limit: 16)?.hasSuffix("\n") == true })
    let process = FD.text(of: ready, limit: 16)?.split(separator: "\n").first.flatMap { Int32($0) } ?? 0
    let before = try Program.run(["find", "\(tree)/Users/\(name)", "-xdev"]).output
    let refused = try shop.mounted.run("user", "remove", name, "--delete-home", "--store", shop.mounted.store)
    #expect(refused.status == 3 && refused.errors.contains("nothing was removed"), "\(refused)")
    #expect(refused.errors.contains(place), "\(refused)")
    #expect(refused.errors.contains("namespace of pid") == elsewhere, "\(refused)")
    #expect(try Program.run(["find", "\(tree)/Users/\(name)", "-xdev"]).output == before)
    #expect(try shop.mounted.run("apps", "--store", shop.mounted.store).output.contains("org.example.notes"))
    // The other one's home has none.
    try shop.succeed("user", "remove", other.account.name, "--delete-home")
    if elsewhere {
      kill(process, SIGKILL)
      helper?.join()
    } else {
      try unmount(place, lazily: false)
    }
    #expect(
      try eventually {
        try shop.mounted.run("user", "remove", name, "--delete-home", "--store", shop.mounted.store).status
          == 0
      })
    #expect(access(shop.mounted.backing("Users/\(name)"), F_OK) == -1)
  }

  /// The attack: a user who mounts something over another one's home, in a namespace of their own, has root
  /// keep it.
  ///
  /// Nobody but root and the home's owner can do that. Both have such a namespace, and the owner's counts.
  @Test func onlyTheOwnersMountsKeepAHome() throws {
    let shop = try AppShop()
    let (owner, other) = (try TemporaryAccount(), try TemporaryAccount())
    let name = owner.account.name
    for name in [name, other.account.name] { try shop.succeed("user", "add", name) }
    let home = shop.mounted.path("Users/\(name)")
    let words = ["user", "remove", name, "--delete-home", "--store", shop.mounted.store]
    // The same place, so that the one can't hide behind the other.
    let stranger = try OwnMount(at: home, as: other, shop.mounted.temporary)
    let owners = try OwnMount(at: home, as: owner, shop.mounted.temporary)
    let refused = try shop.mounted.run(words)
    #expect(refused.status == 3 && refused.errors.contains("nothing was removed"), "\(refused)")
    #expect(refused.errors.contains("\(home), in the mount namespace of pid \(owners.process)"), "\(refused)")
    #expect(!refused.errors.contains("pid \(stranger.process)"), "\(refused)")
    owners.end()
    let removed = try shop.mounted.run(words)
    #expect(removed.status == 0, "\(removed)")
    let told = "\(home), in the mount namespace of pid \(stranger.process), is another user's"
    #expect(removed.errors.contains(told), "\(removed)")
    #expect(try Set(shop.mounted.temporary.names(in: "store/tree/Users")) == ["Shared", other.account.name])
    stranger.end()
    try shop.expectNothingToComplainAbout()
  }

  /// A filesystem in memory over a directory, in a namespace of a user's own.
  private final class OwnMount {
    let process: Int32
    private let thread: JoinableThread

    init(at path: String, as account: TemporaryAccount, _ temporary: TemporaryDirectory) throws {
      let ready = try temporary.write("", to: "ready-\(account.account.uid)")
      try #require(chown(ready, account.account.uid, account.account.gid) == 0)
      let script = #"mount -t tmpfs none "$1" && echo kept >"$1/file" && echo $$ >"$2" && exec sleep 300"#
      let words =
        ["timeout", "200", "setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)"]
        + ["--clear-groups", "unshare", "-Urm", "sh", "-c", script, "sh", path, ready]
      thread = try JoinableThread(name: "mounts") { _ = try? Program.run(words) }
      try #require(eventually { FD.text(of: ready, limit: 16)?.hasSuffix("\n") == true })
      process = FD.text(of: ready, limit: 16)?.split(separator: "\n").first.flatMap { Int32($0) } ?? 0
      try #require(process > 0)
    }

    func end() {
      kill(process, SIGKILL)
      thread.join()
    }
  }

  /// How a process of the user's keeps a home in use.
  enum Use: CaseIterable { case directory, file }

  /// The attack: a user writes into their home while it is removed, so that half of it is left.
  ///
  /// Two users, of whom one has a process in their home.
  @Test(arguments: Use.allCases) func aHomeInUseStaysWhole(use: Use) throws {
    let shop = try AppShop()
    let (account, other) = (try TemporaryAccount(), try TemporaryAccount())
    let name = account.account.name
    for name in [name, other.account.name] { try shop.succeed("user", "add", name) }
    let app = try shop.make("Notes", version: "1.0")
    try shop.succeed("install", app, "--user", name)
    // What was removed before can be restored still.
    try shop.succeed("uninstall", "org.example.notes", "--user", name)
    try shop.succeed("install", app, "--user", name)
    let home = shop.mounted.path("Users/\(name)")
    let user = try Client(uid: account.account.uid, gid: account.account.gid)
    #expect(try user.errno("mkdir", home + "/Documents/deep", "448") == 0)
    switch use {
    case .directory: #expect(try user.errno("chdir", home + "/Documents/deep") == 0)
    case .file: #expect(try user.run("create", home + "/Documents/deep/file").errno == 0)
    }
    func state() throws -> [String] {
      [
        try Program.run(["find", home, "-printf", "%p %m %u\n"]).output,
        try shop.mounted.run("apps", "--store", shop.mounted.store).output,
        try shop.mounted.run("removed", "list", "--store", shop.mounted.store).output,
        try shop.mounted.run("acl", home).output,
      ]
    }
    let before = try state()
    let words = ["user", "remove", name, "--delete-home", "--store", shop.mounted.store]
    let refused = try shop.mounted.run(words)
    #expect(refused.status == 3 && refused.errors.contains("nothing was removed"), "\(refused)")
    #expect(refused.errors.contains("(insula-client)") && refused.errors.contains("/deep"), "\(refused)")
    #expect(try state() == before)
    try shop.succeed("user", "remove", other.account.name, "--delete-home")
    #expect(try user.errno("chdir", "/") == 0 && user.errno("close all") == 0)
    let removed = try shop.mounted.run(words)
    #expect(removed.status == 0, "\(removed)")
    #expect(try shop.mounted.temporary.names(in: "store/tree/Users") == ["Shared"])
    try shop.expectNothingToComplainAbout()
  }

  /// While a home is removed nobody but root gets into it, and its owner can't open it again.
  ///
  /// Two users: the home of the other one stays as it is.
  @Test func aClosedHomeIsRootsAlone() throws {
    let shop = try AppShop()
    let accounts = [try TemporaryAccount(), try TemporaryAccount()]
    for account in accounts { try shop.succeed("user", "add", account.account.name) }
    let clients = try accounts.map { try Client(uid: $0.account.uid, gid: $0.account.gid) }
    let paths = accounts.map { shop.mounted.path("Users/\($0.account.name)") }
    func state() throws -> String {
      let seen = try Program.run(["stat", "-c", "%a %u %g"] + paths).output
      return try seen + paths.map { try shop.mounted.run("acl", $0).output }.joined()
    }
    let before = try state()
    let root = try TemporaryDirectory.open(shop.mounted.point)
    let homes = try Homes(tree: root.fd, path: shop.mounted.point, mode: .system, isMounted: true)
    let closed = try #require(try homes.close(accounts[0].account.name))
    #expect(try clients[0].errno("list", paths[0]) == EACCES)
    #expect(try clients[0].errno("mkdir", paths[0] + "/Documents/new", "448") == EACCES)
    #expect(try clients[0].errno("chmod", paths[0], "448") == EPERM)
    #expect(try clients[1].errno("list", paths[1]) == 0)
    #expect(try clients[1].errno("mkdir", paths[1] + "/Documents/new", "448") == 0)
    try homes.reopen(closed)
    #expect(try state() == before)
    #expect(try clients[0].errno("mkdir", paths[0] + "/Documents/new", "448") == 0)
    // Whoever has a directory open when the home is taken away makes nothing in it any more.
    #expect(try clients[0].errno("chdir", paths[0] + "/Documents/new") == 0)
    let again = try #require(try homes.close(accounts[0].account.name))
    #expect(try clients[0].errno("mkdir", "still", "448") == 0)
    let taken = try homes.take(accounts[0].account.name)
    homes.disownTree(taken, again)
    #expect(try clients[0].errno("mkdir", "not any more", "448") == EACCES)
    try homes.destroy(taken, of: accounts[0].account.name)
    #expect(try clients[1].errno("list", paths[1]) == 0)
    #expect(
      try shop.mounted.temporary.names(in: "store/tree/Users").sorted()
        == [
          "Shared", accounts[1].account.name,
        ].sorted())
  }

  /// Whoever was stopped while they removed a home has left it closed: the next one removes it.
  @Test func aHomeThatWasLeftClosedIsRemoved() throws {
    let shop = try AppShop()
    let account = try TemporaryAccount()
    let name = account.account.name
    try shop.succeed("user", "add", name)
    let home = shop.mounted.path("Users/\(name)")
    let user = try Client(uid: account.account.uid, gid: account.account.gid)
    try #require(try user.errno("chdir", home + "/Documents") == 0)
    try #require(chmod(home, 0) == 0)
    try shop.succeed("flags", "schg", home, store: false)
    #expect(try user.errno("chmod", home, "448") == EPERM && user.errno("list", home) == EACCES)
    let words = ["user", "remove", name, "--delete-home", "--store", shop.mounted.store]
    let refused = try shop.mounted.run(words)
    #expect(refused.status == 3 && refused.errors.contains("nothing was removed"), "\(refused)")
    #expect(try user.errno("chdir", "/") == 0)
    let removed = try shop.mounted.run(words)
    #expect(removed.status == 0, "\(removed)")
    #expect(try shop.mounted.temporary.names(in: "store/tree/Users") == ["Shared"])
  }

  /// Names that differ in the spelling of a letter alone are those of two accounts, with a home each.
  @Test(arguments: [false, true]) func lookAlikesStayWhole(removesFirst: Bool) throws {
    let shop = try AppShop()
    let app = try shop.make("Notes", version: "1.0")
    try shop.succeed("unmount")
    // In a namespace of its own, where the machine has two more accounts.
    let script = #"""
      set -e; insula=$1; store=$2; app=$3; directory=$4
      one=$(printf 'e\314\201va'); two=$(printf '\303\251va')
      # Not over the file: another test that adds an account replaces it, and that ends such a mount.
      etc=$directory/etc; mkdir "$etc"
      for name in passwd group nsswitch.conf ld.so.cache; do
        [ ! -e "/etc/$name" ] || cp "/etc/$name" "$etc"
      done
      echo "$one:x:2000000021:2000000021::/nonexistent:/bin/sh" >>"$etc/passwd"
      echo "$two:x:2000000022:2000000022::/nonexistent:/bin/sh" >>"$etc/passwd"
      mount --bind "$etc" /etc
      sql() { sqlite3 "$store/state/insula.db" "$1"; }
      for name in "$one" "$two"; do
        "$insula" user add "$name" --store "$store" >/dev/null
        "$insula" install "$app" --user "$name" --store "$store" >/dev/null
      done
      for user in 2000000021 2000000022; do
        sql "INSERT INTO consents VALUES ('org.example.notes', $user, 'photos', 'ABCDE12345', NULL, 1, 1)"
      done
      [ -z "$5" ] || { other=$one; one=$two; two=$other; }
      "$insula" user remove "$two" --delete-home --store "$store" >/dev/null
      [ -d "$store/tree/Users/$one/Applications/Notes.app" ] || exit 98
      [ ! -e "$store/tree/Users/$two" ] || exit 99
      sql 'SELECT user FROM apps; SELECT user FROM consents'
      "$insula" check "$store" >&2
      "$insula" user remove "$one" --delete-home --store "$store" >/dev/null
      sql 'SELECT user FROM apps; SELECT user FROM consents'
      """#
    let words = ["timeout", "120", "unshare", "-m", "sh", "-c", script, "sh", Program.insula]
    let result = try Program.run(
      words + [
        shop.mounted.store, app, shop.mounted.temporary.appending("."), removesFirst ? "first" : "",
      ])
    let left = removesFirst ? 2_000_000_022 : 2_000_000_021
    #expect(result.status == 0 && result.output == "\(left)\n\(left)\n", "\(result)")
  }

  @Test(arguments: [true, false]) func homeGoesWithTheAppsInIt(isMounted: Bool) throws {
    let shop = try AppShop()
    let account = try TemporaryAccount()
    let name = account.account.name
    try shop.succeed("user", "add", name)
    let app = try shop.make("Notes", version: "1.0")
    try shop.succeed("install", app)
    try shop.succeed("install", app, "--user", name)
    // A connection to a daemon is over with its order, so one app is no test of two.
    try shop.succeed("install", try shop.make("Other", version: "1.0", in: "more"), "--user", name)
    if !isMounted { try shop.succeed("unmount") }
    // Not without the word for it.
    let asked = try shop.mounted.run("user", "remove", name, "--store", shop.mounted.store)
    #expect(asked.status == 1 && asked.errors.contains("--delete-home"))
    try shop.succeed("user", "remove", name, "--delete-home")
    #expect(access(shop.mounted.backing("Users/\(name)"), F_OK) == -1 && Errno.last == .ENOENT)
    let apps = try shop.mounted.run("apps", "--store", shop.mounted.store)
    #expect(apps.output.contains("org.example.notes") && !apps.output.contains(name), "\(apps.output)")
    try shop.expectNothingToComplainAbout()
    // Nothing of it stands in the way of a new one.
    try shop.succeed("user", "add", name)
    try shop.succeed("install", app, "--user", name)
    try shop.expectNothingToComplainAbout()
  }
}
