// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A home on a disk or a server that does not answer takes nothing from others.
@Suite(
  .enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized,
  .mayTake(seconds: 240))
struct FrozenHomeTests {
  private static let notes = "org.example.notes"
  private static let player = "org.example.player"
  /// Far more than any command takes, and less than the disk is away.
  private static let limit = "60"

  let shop: AppShop
  /// Has a home in the store; the home of the other one lies on a disk.
  let anna: TemporaryAccount
  let carl: TemporaryAccount

  init() throws {
    shop = try AppShop()
    (anna, carl) = (try TemporaryAccount(), try TemporaryAccount())
    for (name, version) in [("Notes", "1"), ("Notes", "2"), ("Player", "1"), ("Own", "1"), ("Own", "2")] {
      _ = try shop.make(name, version: version, in: "\(name)-\(version)")
    }
    let disk = shop.mounted.temporary.appending("disk")
    let made = try Program.run(
      ["sh", "-c", "truncate -s 64M \"$0\" && mkfs.ext4 -qF \"$0\" >/dev/null", disk],
      environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
    try #require(made.status == 0, "\(made)")
    try shop.succeed("user", "add", anna.account.name)
    try shop.succeed("user", "add", carl.account.name, "--home", disk)
    for name in ["Notes", "Player"] { try shop.succeed("install", bundle(name)) }
    for account in [anna, carl] {
      for app in [Self.notes, Self.player] {
        let container = try shop.run(as: account, "path", app, "home")
        try #require(container.status == 0, "\(container)")
      }
    }
  }

  func bundle(_ name: String, _ version: String = "1") -> String {
    shop.mounted.temporary.appending("\(name)-\(version)/\(name).app")
  }

  func freeze() throws -> FrozenDisk { try FrozenDisk(of: #require(try shop.mounted.daemon())) }

  func container(_ account: TemporaryAccount, _ app: String) -> String {
    shop.mounted.path("Users/\(account.account.name)/Library/Containers/\(app)")
  }

  /// Runs a command that must end while the disk does not answer, as root or somebody else.
  func expect(
    _ account: TemporaryAccount? = nil, _ words: String..., says: String = "",
    location: SourceLocation = #_sourceLocation
  ) throws {
    let result = try shop.runInTime(as: account, words)
    #expect(result.status == 0, "\(words): \(result)", sourceLocation: location)
    #expect(
      says.isEmpty || (result.output + result.errors).contains(says), "\(words): \(result)",
      sourceLocation: location)
  }

  private func marked() throws -> String {
    let query = "SELECT count(*) FROM containers WHERE doomed = 1"
    let database = shop.mounted.store + "/state/insula.db"
    return try Program.run(["sqlite3", "-cmd", ".timeout 20000", database, query]).output
  }

  // MARK: Changes of apps

  @Test func othersChangeTheirApps() throws {
    let disk = try freeze()
    defer { disk.thaw() }
    try expect(anna, "install", bundle("Own"), "--user", anna.account.name)
    try expect(anna, "update", bundle("Own", "2"), "--user", anna.account.name)
    try expect(anna, "uninstall", "org.example.own", "--user", anna.account.name)
    try expect(anna, "removed", "list")
    try expect(nil, "update", bundle("Notes", "2"))
    try expect(anna, "run", Self.notes, "--", "true")
  }

  /// What an app for everyone has in that home is removed when its disk answers; elsewhere at once.
  @Test func anAppForEveryoneGoes() throws {
    let disk = try freeze()
    defer { disk.thaw() }
    try expect(nil, "uninstall", Self.player, says: "does not answer")
    #expect(access(container(anna, Self.player), F_OK) == -1)
    #expect(access(container(carl, Self.player), F_OK) == 0)
    #expect(try marked() == "1\n")
    // Nobody waits a second time.
    try expect(anna, "install", bundle("Own"), "--user", anna.account.name)
    try expect(nil, "install", bundle("Player"))
    try expect(nil, "uninstall", Self.player)
    disk.thaw()
    #expect(eventually { access(container(carl, Self.player), F_OK) == -1 })
    #expect(try eventually { try marked() == "0\n" })
    for account in [anna, carl] {
      #expect(try shop.run(as: account, "removed", "list").output.contains(Self.player))
    }
    try shop.expectNothingToComplainAbout()
  }

  /// A home that is removed while its disk does not answer is waited for by nobody but who removes it.
  @Test func aHomeThatIsRemovedHoldsUpNobody() throws {
    let ben = try TemporaryAccount()
    try shop.succeed("user", "add", ben.account.name)
    let own = try shop.mounted.temporary.makeDirectory("own", mode: 0o755)
    try #require(chown(own, anna.account.uid, anna.account.gid) == 0)
    let roots = try shop.mounted.temporary.makeDirectory("roots", mode: 0o755)
    let disk = try freeze()
    defer { disk.thaw() }
    let words = ["user", "remove", carl.account.name, "--delete-home", "--store", shop.mounted.store]
    let limited = ["timeout", "-s", "KILL", Self.limit]
    let refused = try shop.mounted.run(words, before: limited)
    #expect(refused.status == 1 && refused.errors.contains("does not answer"), "\(refused)")
    let again = try shop.mounted.run(words, before: limited)
    #expect(again.status == 1 && again.errors.contains("is being removed"), "\(again)")
    try expect(anna, "volume", "add", own)
    try expect(nil, "volume", "add", roots)
    try expect(anna, "install", bundle("Own"), "--user", anna.account.name)
    try expect(nil, "user", "remove", ben.account.name, "--delete-home")
    #expect(access(shop.mounted.backing("Users/\(ben.account.name)"), F_OK) == -1)
    disk.thaw()
    #expect(
      try eventually { try !shop.mounted.temporary.names(in: "store/tree/Users").contains(carl.account.name) }
    )
    #expect(
      try eventually {
        try Program.run(["/usr/sbin/losetup", "-j", shop.mounted.temporary.appending("disk")]).output.isEmpty
      })
    try shop.succeed("user", "add", carl.account.name)
    try shop.expectNothingToComplainAbout()
  }

  /// A change of names that waits for that disk holds no lock that changes in others' directories need.
  @Test func namesOfOthersAreFree() throws {
    let become = ["setpriv", "--reuid=\(anna.account.uid)", "--regid=\(anna.account.gid)", "--clear-groups"]
    let place = shop.mounted.path("Users/\(anna.account.name)/Documents")
    // More than there are locks.
    let made = try Program.run(become + ["sh", "-c", "cd \"$0\" && mkdir $(seq 2500)", place])
    try #require(made.status == 0, "\(made)")
    let client = try Client(uid: carl.account.uid, gid: carl.account.gid)
    let disk = try freeze()
    defer { disk.thaw() }
    try client.send("mkdir", shop.mounted.path("Users/\(carl.account.name)/Documents/waits"), "448")
    let daemon = try #require(try shop.mounted.daemon())
    #expect(eventually { waitsForDisk(daemon) })
    let others = try Program.run(
      become + [
        "timeout", "-s", "KILL", Self.limit, "sh", "-c", "cd \"$0\" && mkdir $(seq -f %g/x 2500)", place,
      ])
    #expect(others.status == 0, "\(others.status)")
    #expect(try client.answer(milliseconds: 0) == nil)
    disk.thaw()
    #expect(try client.answer()?.errno == 0)
  }

  // MARK: Another worker

  /// Starts an app of somebody's that reads what it has, when it is told, and ends.
  private func start(_ account: TemporaryAccount, in said: String) throws {
    let script = """
      echo mine >$HOME/Documents/note; echo begun
      until [ -e "$HOME/Documents/go" ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
      cat $HOME/Documents/note
      """
    let begin = """
      { "$0" run "$1" --store "$2" -- sh -c "$3"; echo "ended: $?"; } >"$4" 2>&1 </dev/null &
      until grep -q begun "$4" || [ $((w+=1)) -gt 3000 ]; do sleep 0.02; done
      """
    let result = try shop.mounted.run(
      [Self.notes, shop.mounted.point, script, said],
      before: [
        "setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)", "--clear-groups",
        "sh", "-c", begin,
      ])
    try #require(result.status == 0 && FD.text(of: said, limit: 4096) == "begun\n", "\(result)")
  }

  /// What both do while the disk does not answer.
  private func expectOthersAreServed() throws {
    let users = try Program.run(["timeout", "-s", "KILL", Self.limit, "ls", shop.mounted.path("Users")])
    #expect(users.status == 0 && users.output.contains(anna.account.name), "\(users)")
    try expect(anna, "run", Self.notes, "--", "true")
    try expect(anna, "consent", "deny", Self.notes, "photos")
    try expect(anna, "storage")
    try expect(anna, "install", bundle("Own"), "--user", anna.account.name)
  }

  @Test(arguments: [false, true]) func anotherWorkerServesAtOnce(isRestart: Bool) throws {
    let said = try shop.mounted.temporary.makeDirectory("said", mode: 0o777)
    for account in [anna, carl] { try start(account, in: "\(said)/\(account.account.name)") }
    let disk = try freeze()
    defer { disk.thaw() }
    let began = monotonicNanoseconds()
    try shop.mounted.replaceWorker(byRestart: isRestart)
    try expectOthersAreServed()
    #expect(monotonicNanoseconds() - began < 60_000_000_000)
    disk.thaw()
    // Nobody's app was cut off.
    for account in [anna, carl] {
      let go = container(account, Self.notes) + "/Data/Documents/go"
      #expect(try Program.run(["touch", go]).status == 0)
      let file = "\(said)/\(account.account.name)"
      #expect(eventually { FD.text(of: file, limit: 4096)?.contains("ended: ") == true })
      #expect(FD.text(of: file, limit: 4096) == "begun\nmine\nended: 0\n")
    }
    try shop.expectNothingToComplainAbout()
  }

  /// A worker can't end while it changes something on that disk; the next one begins all the same.
  @Test func aWorkerThatCannotEndIsReplaced() throws {
    let disk = try freeze()
    defer { disk.thaw() }
    try expect(nil, "uninstall", Self.player, says: "does not answer")
    let before = try #require(try shop.mounted.daemon())
    #expect(kill(before, SIGKILL) == 0)
    let began = monotonicNanoseconds()
    #expect(try eventually { try shop.mounted.daemon().map { $0 != before } ?? false })
    try expectOthersAreServed()
    #expect(monotonicNanoseconds() - began < 60_000_000_000)
    // It is there still.
    #expect(ProcessID.field("State", of: "\(before)")?.hasPrefix("Z") == true)
    disk.thaw()
    #expect(eventually { access(container(carl, Self.player), F_OK) == -1 })
    #expect(try eventually { try marked() == "0\n" })
    #expect(try Program.waitForEnd(before))
    let removed = try shop.run(as: carl, "removed", "list").output
    #expect(removed.components(separatedBy: Self.player).count == 2, "\(removed)")
    try expect(carl, "run", Self.notes, "--", "true")
    try shop.expectNothingToComplainAbout()
  }

  /// Has carl install an app up to where its bundle is about to get its name; gives that, and the worker.
  private func stopInstallation() throws -> (place: String, worker: Int32, go: () throws -> Void) {
    let pause = try shop.mounted.temporary.makeDirectory("pause", mode: 0o700)
    _ = try shop.mounted.unmount()
    try shop.mounted.mount(before: ["env", "INSULA_HALT=\(pause)"])
    let home = shop.mounted.path("Users/\(carl.account.name)")
    #expect(eventually { access("\(home)/Library", F_OK) == 0 })
    try shop.mounted.temporary.write("", to: "pause/bundleStaged")
    let begin = """
      { timeout -s KILL \(Self.limit) "$@"; } >"$0" 2>&1 </dev/null &
      until [ -e "\(pause)/reached" ] || [ $((w+=1)) -gt 1500 ]; do sleep 0.02; done
      """
    let begun = try shop.mounted.run(
      ["install", bundle("Own"), "--user", carl.account.name, "--store", shop.mounted.store],
      before: ["sh", "-c", begin, shop.mounted.temporary.appending("said")])
    try #require(begun.status == 0 && access(pause + "/reached", F_OK) == 0, "\(begun)")
    let worker = try #require(try shop.mounted.daemon())
    return ("\(home)/Applications/Own.app", worker, { try shop.mounted.temporary.write("", to: "pause/go") })
  }

  /// How many changes are noted that have not ended, and how many apps carl has.
  private func intentsAndApps() throws -> String {
    let query = "SELECT (SELECT count(*) FROM intents), count(*) FROM apps WHERE user = \(carl.account.uid)"
    let database = shop.mounted.store + "/state/insula.db"
    return try Program.run(["sqlite3", "-cmd", ".timeout 20000", database, query]).output
  }

  /// A change that a killed worker has begun there is made when the disk answers: the next one, which ends
  /// it, does not take it back before.
  @Test func whatAKilledWorkerHasBegunIsEnded() throws {
    let (place, before, go) = try stopInstallation()
    let disk = try freeze()
    defer { disk.thaw() }
    try go()
    #expect(eventually { waitsForDisk(before) })
    #expect(kill(before, SIGKILL) == 0)
    #expect(try eventually { try shop.mounted.daemon().map { $0 != before } ?? false })
    try expectOthersAreServed()
    #expect(ProcessID.field("State", of: "\(before)")?.hasPrefix("Z") == true)
    disk.thaw()
    #expect(try Program.waitForEnd(before))
    #expect(eventually { access(place, F_OK) == 0 })
    #expect(try eventually { try intentsAndApps() == "0|1\n" })
    let client = try Client(uid: carl.account.uid, gid: carl.account.gid)
    #expect(try client.errno("create", place + "/Contents/x") == EROFS)
    try expect(carl, "run", "org.example.own", "--", "true")
    try shop.expectNothingToComplainAbout()
  }

  /// What it had only noted is taken back, and nothing is left of that in memory: the place is one as any.
  @Test func whatAKilledWorkerHasOnlyNotedIsForgotten() throws {
    let (place, before, _) = try stopInstallation()
    #expect(kill(before, SIGKILL) == 0)
    #expect(try eventually { try shop.mounted.daemon().map { $0 != before } ?? false })
    #expect(try eventually { try intentsAndApps() == "0|0\n" })
    let client = try Client(uid: carl.account.uid, gid: carl.account.gid)
    #expect(try eventually { try client.errno("mkdir", place, "448") == 0 })
    #expect(try client.errno("create", place + "/note") == 0)
    try shop.expectNothingToComplainAbout()
  }

  /// Has another worker serve, which does not look into a home before there is a file `go` beside what tells
  /// of that; before, the `directory` is there in the home.
  private func stopTakeover(ofHomeOf name: String, with directory: String) throws -> (
    home: String, pause: String
  ) {
    let pause = try shop.mounted.temporary.makeDirectory("pause", mode: 0o700)
    _ = try shop.mounted.unmount()
    try shop.mounted.mount(before: ["env", "INSULA_HALT=\(pause)"])
    let home = shop.mounted.path("Users/\(name)")
    #expect(eventually { access("\(home)/\(directory)", F_OK) == 0 })
    try shop.mounted.temporary.write("", to: "pause/homeTakenOver")
    try shop.mounted.replaceWorker(byRestart: false)
    #expect(access(pause + "/reached", F_OK) == 0)
    return (home, pause)
  }

  /// One that can't even be looked into is away until it can be, and is what it was then.
  @Test func aHomeComesWhenItAnswers() throws {
    let name = carl.account.name
    try expect(carl, "install", bundle("Own"), "--user", name)
    let (home, pause) = try stopTakeover(ofHomeOf: name, with: "Applications")
    try expectOthersAreServed()
    #expect(access(home, F_OK) == -1 && errno == ENOMEDIUM)
    let refused = try shop.run(as: carl, "path", Self.notes, "home")
    #expect(refused.status == 1 && refused.errors.contains("is on a disk or server that is not there"))
    #expect(access(pause + "/go", F_OK) == -1)
    try shop.mounted.temporary.write("", to: "pause/go")
    #expect(eventually { access(home + "/Applications/Own.app", F_OK) == 0 })
    let client = try Client(uid: carl.account.uid, gid: carl.account.gid)
    #expect(try client.errno("create", home + "/Applications/Own.app/Contents/x") == EROFS)
    #expect(try client.errno("create", home + "/Documents/x") == 0)
    try expect(carl, "run", Self.notes, "--", "true")
  }

  /// What root ejects while it can't be looked into does not come back when it answers.
  @Test func aHomeThatWasEjectedStaysAway() throws {
    let name = carl.account.name
    let disk = shop.mounted.temporary.appending("disk")
    let home = try stopTakeover(ofHomeOf: name, with: "Library").home
    try expect(nil, "volume", "eject", "Users/\(name)")
    try expect(nil, "user", "add", name)
    let client = try Client(uid: carl.account.uid, gid: carl.account.gid)
    #expect(try client.errno("create", home + "/Documents/new") == 0)
    try shop.mounted.temporary.write("", to: "pause/go")
    #expect(
      try eventually { try Program.run(["/usr/sbin/losetup", "-j", disk]).output.isEmpty })
    #expect(access(home + "/Documents/new", F_OK) == 0)
    try shop.expectNothingToComplainAbout()
  }

  // MARK: What stays

  /// What could not be removed is tried again for its user, and not by others' commands.
  @Test func whatStaysIsItsUsersBusiness() throws {
    let group = "group.org.example.shared"
    _ = try shop.make("Shared", version: "1", in: "Shared-1", groups: [group])
    let ben = try TemporaryAccount()
    try shop.succeed("user", "add", ben.account.name)
    let kept = shop.mounted.path("Users/\(ben.account.name)/Library/Group Containers/\(group)")
    try expect(ben, "install", bundle("Shared"), "--user", ben.account.name)
    try expect(ben, "path", "org.example.shared", "home")
    #expect(try shop.mounted.run("flags", "uchg", kept).status == 0)
    try expect(ben, "uninstall", "org.example.shared", "--user", ben.account.name, says: "uchg")
    #expect(try shop.mounted.run("flags", "nouchg", kept).status == 0)
    try expect(anna, "install", bundle("Own"), "--user", anna.account.name)
    try expect(nil, "uninstall", Self.player)
    #expect(access(kept, F_OK) == 0)
    try expect(ben, "install", bundle("Own"), "--user", ben.account.name)
    #expect(access(kept, F_OK) == -1)
  }
}
