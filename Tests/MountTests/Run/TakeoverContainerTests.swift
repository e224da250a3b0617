// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Apps run on when another worker takes over, whatever has become of their containers.
///
/// An app may remove what it likes of them, and gets nothing by that.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 180))
struct TakeoverContainerTests {
  private static let group = "group.org.example.shared"
  private static let entitlements =
    "<key>com.apple.security.application-groups</key><array><string>\(group)</string></array>"

  private static func makeFixture(rootless: Bool) throws -> (RunFixture, said: String) {
    let fixture = try RunFixture(rootless: rootless, entitlements: entitlements)
    return (fixture, try fixture.mounted.temporary.makeDirectory("said", mode: 0o777))
  }

  /// Runs a script as the app of a user: once it has said "begun", it reads a line that `go` writes.
  private func start(
    _ fixture: RunFixture, _ said: String, _ script: String, as account: Account? = nil
  ) throws {
    let user = account ?? fixture.user
    let begun = try fixture.shell(
      """
      cd '\(said)' && mkfifo '\(user.name).go' && cat > '\(user.name).sh' <<'SCRIPT' || exit 1
      GROUP="\(fixture.mounted.path("Users/\(user.name)/Library/Group Containers/\(Self.group)"))"
      \(script)
      SCRIPT
      text=$(cat '\(user.name).sh')
      { run sh -c "$text"; echo "ended: $?"; } 0<> '\(user.name).go' > '\(user.name).out' 2>&1 &
      until grep -q -e begun -e ended '\(user.name).out' || [ $((w+=1)) -gt 3000 ]; do sleep 0.02; done
      """, as: account)
    try #require(begun.status == 0, "\(begun)")
    try #require(text(said, user) == "begun\n", "\(text(said, user))")
  }

  private func text(_ said: String, _ user: Account) -> String {
    FD.text(of: "\(said)/\(user.name).out", limit: 1 << 16) ?? ""
  }

  private func go(_ fixture: RunFixture, _ said: String, as account: Account? = nil) throws -> String {
    let user = account ?? fixture.user
    let told = try fixture.shell("echo go 1<> '\(said)/\(user.name).go'", as: account)
    try #require(told.status == 0, "\(told)")
    #expect(eventually { text(said, user).contains("ended: ") })
    return text(said, user)
  }

  /// The app empties its cache, as apps do, and puts a link to another app's documents in its place.
  ///
  /// It also removes what its group's container consists of. It goes on, and sees no more than before.
  @Test(arguments: [false, true]) func appThatLacksDirectoriesGoesOn(rootless: Bool) throws {
    let (fixture, said) = try Self.makeFixture(rootless: rootless)
    let mounted = fixture.mounted
    let neighbour = rootless ? nil : try TemporaryAccount()
    if let neighbour { try fixture.succeed("user", "add", neighbour.account.name, "--store", mounted.store) }
    try fixture.install("Beside")
    let script = """
      cd "$HOME" && rm -rf Library/Caches Library/Preferences "Library/Application Support" || exit 1
      rm -f Notes.app 2> /dev/null
      ln -s ../../../org.example.beside/Data/Documents Library/Caches && rm -rf "$GROUP"/Library || exit 1
      echo shared > "$GROUP"/file && echo before > Documents/before && exec 3>> Documents/before || exit 1
      echo begun; read line
      echo after >&3 && cat Documents/before "$GROUP"/file; echo new > Documents/new && cat Documents/new
      cat Library/Caches/secret 2> /dev/null; echo "secret: $?"
      """
    let users = [fixture.user] + (neighbour.map { [$0.account] } ?? [])
    for user in users {
      let beside = try fixture.shell(
        #"insula run org.example.beside -- sh -c 'cd && echo secret > Documents/secret'"#, as: user)
      try #require(beside.status == 0, "\(beside)")
      try start(fixture, said, script, as: user)
    }
    for isRestart in [false, true] { try mounted.replaceWorker(byRestart: isRestart) }
    for user in users {
      let told = try go(fixture, said, as: user)
      #expect(told == "begun\nbefore\nafter\nshared\nnew\nsecret: 1\nended: 0\n", "\(told)")
    }
    // The next start makes what is missing; what the app has put in its place is its own affair.
    let removed = try fixture.shell("rm \"$DATA/Library/Caches\" && run sh -c 'cd && ls Library'")
    #expect(
      removed.output.contains("Application Support\n") && removed.output.contains("Caches\n"), "\(removed)")
  }

  /// A container that became another team's meanwhile is not for it, nor what is in the place of one.
  @Test(arguments: [false, true]) func appWhoseContainerIsAnothersIsEnded(isLink: Bool) throws {
    let (fixture, said) = try Self.makeFixture(rootless: false)
    let mounted = fixture.mounted
    let neighbour = try TemporaryAccount()
    try fixture.succeed("user", "add", neighbour.account.name, "--store", mounted.store)
    let script = "echo begun; read line; cat \"$GROUP\"/file; echo went on"
    for user in [fixture.user, neighbour.account] { try start(fixture, said, script, as: user) }
    if isLink {
      let place = mounted.backing("Users/\(fixture.user.name)/Library/Group Containers/\(Self.group)")
      let decoy = try mounted.temporary.makeDirectory("decoy", mode: 0o755)
      #expect(try Program.run(["mv", place, place + ".away"]).status == 0)
      #expect(try Program.run(["ln", "-s", decoy, place]).status == 0)
    } else {
      let changed = try Program.run([
        "sqlite3", mounted.store + "/state/insula.db",
        "UPDATE containers SET team = 'ZYXWV98765' WHERE kind = 'group' AND user = \(fixture.user.uid)",
      ])
      try #require(changed.status == 0, "\(changed.errors)")
    }
    try mounted.replaceWorker(byRestart: false)
    #expect(eventually { text(said, fixture.user).contains("ended: 137\n") })
    #expect(text(said, fixture.user).contains("went on") == false)
    let other = try go(fixture, said, as: neighbour.account)
    #expect(other.hasSuffix("went on\nended: 0\n"), "\(other)")
  }

  /// A login that was renamed gets a home of its new name: what runs has its container in the other one.
  @Test func appStaysInTheHomeInWhichItWasStarted() throws {
    let (fixture, said) = try Self.makeFixture(rootless: false)
    let (mounted, account) = (fixture.mounted, try TemporaryAccount())
    try fixture.succeed("user", "add", account.account.name, "--store", mounted.store)
    #expect(try mounted.unmount().status == 0)
    let old = mounted.backing("Users/old-name")
    #expect(try Program.run(["mv", mounted.backing("Users/\(account.account.name)"), old]).status == 0)
    try mounted.mount()
    try start(
      fixture, said, "cd \"$HOME\"; echo old > Documents/kept; echo begun; read line; cat Documents/kept",
      as: account.account)
    try fixture.succeed("user", "add", account.account.name, "--store", mounted.store)
    let new = try fixture.shell("run sh -c 'cd; echo new > Documents/kept'", as: account.account)
    try #require(new.status == 0, "\(new)")
    let kept = "Library/Containers/\(RunFixture.identifier)/Data/Documents/kept"
    #expect(FD.text(of: "\(old)/\(kept)", limit: 100) == "old\n")
    try mounted.replaceWorker(byRestart: false)
    let told = try go(fixture, said, as: account.account)
    #expect(told == "begun\nold\nended: 0\n", "\(told)")
  }

  /// Where nothing can be made, an app starts with what is there of its container, and goes on with it.
  @Test(arguments: [false, true]) func appStartsAndGoesOnInAReadOnlyMount(rootless: Bool) throws {
    let (fixture, said) = try Self.makeFixture(rootless: rootless)
    let before = try fixture.shell(
      "run sh -c 'cd && echo kept > Documents/kept && rm -rf Library/Caches Library/Preferences'")
    try #require(before.status == 0, "\(before)")
    #expect(try fixture.mounted.unmount().status == 0)
    try fixture.mounted.mount(options: "ro")
    try start(fixture, said, "cd \"$HOME\"; echo begun; read line; cat Documents/kept")
    try fixture.mounted.replaceWorker(byRestart: false)
    let told = try go(fixture, said)
    #expect(told == "begun\nkept\nended: 0\n", "\(told)")
  }
}
