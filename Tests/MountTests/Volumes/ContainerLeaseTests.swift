// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// One home in two stores: an app has its container there in one of them at a time.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ContainerLeaseTests {
  private struct Two: VolumeFixture {
    let first: HomeVolumeTests.Homes
    let second: MountedStore
    private var name: String { first.run.user.name }

    init() throws {
      first = try HomeVolumeTests.Homes()
      second = try MountedStore(owner: nil)
      try second.mount()
      let made = first.run.mounted.temporary.appending("store")
      for words in [
        ["trust", "add", "\(made)/root.pem"], ["user", "add", first.run.user.name, "--home", first.source],
        ["install", "\(made)/Notes-made/Notes.app"],
      ] {
        let result = try second.run(words + ["--store", second.store])
        try #require(result.status == 0, "\(result)")
      }
    }

    func shell(_ script: String, as account: Account?) throws -> ProgramResult {
      try first.shell(
        """
        second() { verb=$1; shift; "$INSULA" "$verb" --store '\(second.point)' "$@"; }
        there() { "$INSULA" run --store '\(second.point)' "$APP" -- "$@" 2>&1; }
        LEASE="$S/.insula/leases/$NAME/data-$APP/lease"
        begin() {
          mkfifo "$H/fifo"; exec 3<>"$H/fifo"
          run sh -c 'echo here >Documents/place; read x; echo ended >>Documents/place' <&3 & APP_PID=$!
          running 1; until [ -s "$DATA/Documents/place" ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
        }
        \(script)
        """, as: account)
    }
  }

  /// While it runs in one store it does not in the other, nor is its cache purged there.
  @Test func itRunsInOneStoreAtATime() throws {
    let two = try Two()
    try two.expect(
      """
      begin; there true | grep -o 'with the same home'
      echo x >"$DATA/Library/Caches/c"; second purge "$APP" >/dev/null 2>&1; cat "$DATA/Library/Caches/c"
      echo go >&3; wait $APP_PID; there cat Documents/place; there sh -c 'echo there >Documents/place'
      run cat Documents/place; second purge "$APP" >/dev/null; ls "$DATA/Library/Caches"
      """, "with the same home\nx\nhere\nended\nthere\nCACHEDIR.TAG\n")
  }

  /// What one store removes is not taken from an app that runs in the other, nor is its data.
  @Test func nobodyRemovesItFromUnderAnother() throws {
    let two = try Two()
    let user = two.first.run.user
    try two.expect(
      """
      become="setpriv --reuid=\(user.uid) --regid=\(user.gid) --clear-groups"
      gone() { "$INSULA" user remove "$NAME" --delete-home --store '\(two.second.store)' 2>&1; }
      $become "$INSULA" run --store '\(two.second.point)' "$APP" -- true
      mkfifo "$S/fifo"; exec 3<>"$S/fifo"
      $become "$INSULA" run --store "$POINT" "$APP" -- \
        sh -c 'echo one >Documents/place; read x; echo two >>Documents/place' <&3 & APP_PID=$!
      until [ -s "$DATA/Documents/place" ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      gone | grep -o 'an app runs in the home'
      second uninstall "$APP" 2>&1 | grep -o 'another store that has had this home may'
      echo go >&3; wait $APP_PID; cat "$DATA/Documents/place"
      gone | grep -o Removed; ls -A "$S"
      """,
      "an app runs in the home\nanother store that has had this home may\none\ntwo\nRemoved\n.insula\nfifo\n",
      as: RunFixture.root)
  }

  /// Another machine's app of a group may be another one.
  @Test func theContainerOfAGroupIsNamed() throws {
    let two = try Two()
    let groups = "<array><string>group.org.example.pals</string></array>"
    try two.first.run.install(
      "Pal", entitlements: "<key>com.apple.security.application-groups</key>\(groups)")
    let user = two.first.run.user
    try two.expect(
      """
      lease="$S/.insula/leases/$NAME/group-group.org.example.pals/lease"; mkdir -p -m 700 "$lease"
      echo x >"$lease/00000000000000000099"
      (while sleep 0.3; do echo x >>"$lease/00000000000000000099"; done) &
      setpriv --reuid=\(user.uid) --regid=\(user.gid) --clear-groups \
        "$INSULA" run --store "$POINT" org.example.pal -- true 2>&1 |
        grep -o 'an app that shares .* with org.example.pal runs on another machine'; kill $!
      """,
      "an app that shares the container group.org.example.pals with org.example.pal runs on another "
        + "machine\n", as: RunFixture.root)
  }

  /// What a machine has left that is gone is waited for, all together, also by those who are refused at once.
  @Test func whoIsGoneIsWaitedForOnce() throws {
    let two = try Two()
    let (user, began) = (two.first.run.user, monotonicNanoseconds())
    let result = try two.shell(
      """
      become="setpriv --reuid=\(user.uid) --regid=\(user.gid) --clear-groups"
      user remove "$NAME" 2>/dev/null
      $become "$INSULA" run --store "$POINT" "$APP" -- sh -c 'echo x >Library/Caches/c'
      for name in data-$APP group-a group-b; do
        lease="$S/.insula/leases/$NAME/$name/lease"; mkdir -p -m 700 "$lease"
        echo '{"holder":"h","host":"gone","boot":"b","namespace":"n","pid":1,"began":"1","renewals":1,' \
          '"renewedAt":1,"isReleased":false}' >"$lease/00000000000000000099"
      done
      $become "$INSULA" purge "$APP" --store "$POINT" 2>&1 | grep -o 'another machine may use it' | uniq
      remove() { user remove "$NAME" --delete-home 2>&1; }
      remove | grep -o 'an app runs .* on gone' | sed "s/$NAME/me/"; ls "$S"; sleep 46
      remove | grep -o Removed
      """, as: RunFixture.root)
    let seconds = (monotonicNanoseconds() - began) / 1_000_000_000
    let said = "another machine may use it\nan app runs in the home of me on gone\n\(user.name)\nRemoved\n"
    #expect(result.output == said && seconds < 80, "\(result), \(seconds) s")
  }

  /// A home that one store has deleted is not used by the other, which can make a new one.
  @Test func whatIsDeletedIsNotUsedElsewhere() throws {
    let two = try Two()
    let user = two.first.run.user
    try two.expect(
      """
      there() { setpriv --reuid=\(user.uid) --regid=\(user.gid) --clear-groups \
        "$INSULA" run --store '\(two.second.point)' "$APP" -- "$@" 2>&1; }
      there echo ran; user remove "$NAME" --delete-home | grep -o Removed; ls "$S"
      there echo ran | grep -o 'removed by another store'; ls "$S"
      again() { "$INSULA" "$@" --store '\(two.second.store)' >/dev/null 2>&1; }
      again volume eject "Users/$NAME"; again user add "$NAME" --home "$S"; there echo ran
      """, "ran\nRemoved\nremoved by another store\nran\n", as: RunFixture.root)
  }

  /// Another worker keeps the lease; when a daemon has died, the other store has it at once.
  @Test func itOutlivesAWorkerButNoDaemon() throws {
    let two = try Two()
    try two.expect(
      """
      begin; "$INSULA" restart --store "$POINT" >/dev/null; there true | grep -o 'with the same home'
      echo go >&3; wait $APP_PID; cat "$DATA/Documents/place"; rm "$H/fifo" "$DATA/Documents/place"; begin
      """, "with the same home\nhere\nended\n")
    try two.first.run.mounted.killDaemon()
    #expect(eventually { (try? two.shell("there echo ran", as: nil).output) == "ran\n" })
    // What waits for the app waits for its view, which nobody serves any more.
    _ = try Program.run(["pkill", "-KILL", "-u", two.first.run.user.name])
  }

  /// An app whose lease another machine has taken is ended, and writes nothing any more.
  @Test func whoLosesItEnds() throws {
    let two = try Two()
    let user = two.first.run.user
    try two.expect(
      """
      become="setpriv --reuid=\(user.uid) --regid=\(user.gid) --clear-groups"
      $become "$INSULA" run --store "$POINT" "$APP" -- \
        sh -c 'while :; do date +%N >Documents/tick; sleep 0.05; done' 2>"$S/why" & APP_PID=$!
      until [ -s "$DATA/Documents/tick" ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      touch "$LEASE/$(printf %020d $(expr $(ls "$LEASE" | tail -1) + 1))"
      wait $APP_PID && echo went on; grep -o 'another machine' "$S/why"; before=$(cat "$DATA/Documents/tick")
      sleep 0.3; [ "$(cat "$DATA/Documents/tick")" = "$before" ] && echo quiet
      """, "another machine\nquiet\n", as: RunFixture.root)
  }

  /// An app of the same identifier by somebody else gets nothing of the container, also where its store has
  /// never heard of it.
  @Test func anotherTeamGetsNothingOfIt() throws {
    let two = try Two()
    _ = try two.shell("run sh -c 'echo secret >Documents/place'")
    let third = try RunFixture()
    let result = try third.mounted.run([
      "user", "add", two.first.run.user.name, "--home", two.first.source, "--store", third.mounted.store,
    ])
    #expect(result.status == 0, "\(result)")
    try two.expect(
      """
      "$INSULA" run --store '\(third.mounted.point)' "$APP" -- cat Documents/place >"$H/said" 2>&1
      grep -o -e team -e secret "$H/said" | head -1
      """, "team\n")
  }
}
