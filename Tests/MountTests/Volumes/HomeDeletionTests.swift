// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// Homes outside of the store are refused, deleted and lost, as a whole or not at all.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HomeDeletionTests {
  private static let root = RunFixture.root
  private static let registry = """
    registry() { python3 -c '
    import sqlite3, sys
    db = sqlite3.connect(sys.argv[1]); print(*[row[0] for row in db.execute(sys.argv[2])]); db.commit()
    ' "$STORE/state/insula.db" "$1"; }

    """
  /// A deletion that was begun here: the registry says so, and the machine's note.
  private static let beginsDeletion =
    registry + """
      registry 'UPDATE volumes SET options = options | 64'
      python3 -c '
      import glob, os, sys
      path = b"x" + os.fsencode(sys.argv[1]).hex().encode()
      for file in glob.glob(os.environ["INSULA_MACHINE_STATE"] + "/volumes/*"):
        with open(file, "r+b") as notes:
          lines = [line.split() for line in notes if path in line.split()]
          for line in lines:
            notes.write(b" ".join(line[:-1] + [b"%d" % (int(line[-1]) | 64)]) + b"\\n"); print("noted")
      ' "$S"
      mv "$S/$NAME" "$(echo "$S"/.insula/*-*)/.$NAME.removed-999999"

      """

  /// Whoever is refused to delete a home keeps the apps in it; with the home they are forgotten.
  @Test func whatIsRefusedChangesNothing() throws {
    let homes = try HomeVolumeTests.Homes()
    let made = homes.run.mounted.temporary.appending("made")
    try homes.run.mounted.temporary.makeDirectory("made", mode: 0o777)
    try homes.run.succeed("new-app", "Own", made)
    try homes.run.succeed("sign", "\(made)/Own.app", "--identity", "tester")
    try homes.expect(
      """
      insula install \(made)/Own.app --user $NAME >/dev/null; ls $H/Applications
      "$INSULA" run --store "$POINT" org.example.own -- true
      """, "Own.app\n")
    try homes.expect(
      Self.registry + """
        (cd $H; exec sleep 100) &
        until [ "$(readlink /proc/$!/cwd)" = "$H" ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.01; done
        user remove "$NAME" --delete-home 2>&1 | grep -o 'in use'; kill $!; wait 2>/dev/null
        ls $H/Applications; insula apps | grep -c own; touch "$S/.insula/leases/$NAME/stray"
        user remove "$NAME" --delete-home | grep -o Removed; insula apps | grep own
        registry 'SELECT count(*) FROM containers'
        user add "$NAME" --home "$S" >/dev/null; ls $H/Applications
        """, "in use\nOwn.app\n1\nRemoved\n0\n", as: Self.root)
    try homes.expect(
      "insula install \(made)/Own.app --user $NAME >/dev/null; ls $H/Applications", "Own.app\n")
  }

  /// A process that was stopped when the home had just left its place: the next one ends that.
  @Test func whatWasBegunIsEnded() throws {
    let homes = try HomeVolumeTests.Homes()
    _ = try homes.shell("run true")
    _ = try homes.run.mounted.unmount()
    try homes.expect(
      Self.beginsDeletion, "\nnoted\n", as: Self.root)
    try homes.run.mounted.mount()
    try homes.expect(
      Self.registry + """
        volume list; ls $POINT/Users; registry 'SELECT count(*) FROM containers'
        left() { find "$S/.insula" -name '*.removed-*'; }
        until [ -z "$(left)" ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
        left
        user add "$NAME" --home "$S" | grep -o 'has the home'; stat -c %U $H | sed "s/$NAME/me/"
        """, "There are no volumes.\nShared\n0\nhas the home\nme\n", as: Self.root)
  }

  /// What was removed from a home and could be restored is deleted with it, and nothing that others have.
  @Test(arguments: [false, true]) func removedContainersGoWithTheHome(isStopped: Bool) throws {
    let homes = try HomeVolumeTests.Homes()
    // An app that is everyone's leaves a container of the user's, which is held beside the home.
    _ = try homes.shell("run true")
    try homes.expect(
      """
      insula uninstall "$APP" >/dev/null; R=$(echo "$S"/.insula/*-*/removed)
      ls "$R" | wc -l; mkdir "$R/of-another-home"
      """, "1\n", as: Self.root)
    if isStopped {
      _ = try homes.run.mounted.unmount()
      try homes.expect(
        Self.beginsDeletion, "\nnoted\n", as: Self.root)
      try homes.run.mounted.mount()
    } else {
      // Past the command, which deletes what was removed beforehand.
      try homes.expect(
        Self.registry + """
          registry 'UPDATE removed SET user = user + 1'; user remove "$NAME" --delete-home | grep -o Removed
          """, "\nRemoved\n", as: Self.root)
    }
    try homes.expect(
      Self.registry + """
        R=$(echo "$S"/.insula/*-*/removed)
        until [ "$(ls "$R" | wc -l)" = 1 ] || [ $((w+=1)) -gt 3000 ]; do sleep 0.02; done
        ls "$R"; registry 'SELECT count(*) FROM removed WHERE deleting = 0'
        """, "of-another-home\n0\n", as: Self.root)
  }

  /// The daemon refuses a deletion that the command has found nothing against: what was removed from the home
  /// can be restored still.
  @Test func whatIsRefusedByTheDaemonHasDeletedNothing() throws {
    let homes = try HomeVolumeTests.Homes()
    let group = "group.org.example.pals"
    try homes.run.install(
      "Pal",
      entitlements: "<key>com.apple.security.application-groups</key><array><string>\(group)</string></array>"
    )
    _ = try homes.shell(
      """
      run sh -c 'echo precious >Documents/note'; "$INSULA" run --store "$POINT" org.example.pal -- true
      """)
    try homes.expect(
      """
      removed() { verb=$1; shift; "$INSULA" removed "$verb" --store "$POINT" "$@"; }
      insula uninstall "$APP" >/dev/null; insula uninstall org.example.pal >/dev/null
      lease="$S/.insula/leases/$NAME/group-elsewhere/lease"; mkdir -p -m 700 "$lease"
      echo x >"$lease/00000000000000000099"
      (while sleep 0.3; do echo x >>"$lease/00000000000000000099"; done) &
      said=$(user remove "$NAME" --delete-home 2>&1); echo $?; kill $!; wait 2>/dev/null
      echo "$said" | grep -o 'nothing was changed'; removed list | grep -c org.example
      rm -r "$S/.insula/leases/$NAME/group-elsewhere"
      for number in $(removed list --json | grep -o '"number"[^,]*' | grep -o '[0-9]*'); do
        removed restore "$number" >/dev/null || echo "$number"
      done
      cat "$DATA/Documents/note"; removed list
      """, "3\nnothing was changed\n3\nprecious\nThere are no removed containers.\n", as: Self.root)
  }

  /// What was removed from a home, and what only waits for that, comes back with it; on a disk, too.
  @Test(arguments: [(HomeVolumeTests.Source.directory, false), (.disk, false), (.directory, true)])
  func removedContainersComeBackWithTheHome(source: HomeVolumeTests.Source, isRootless: Bool) throws {
    let homes = try HomeVolumeTests.Homes(source, rootless: isRootless)
    let owner = isRootless ? nil : Self.root
    _ = try homes.shell("run sh -c 'echo data >Documents/note'")
    try homes.expect(
      "insula uninstall \"$APP\" >/dev/null; volume eject \"Users/$NAME\" 2>/dev/null; ls $POINT/Users",
      "Shared\n", as: owner)
    _ = try homes.run.mounted.unmount()
    // A row whose container is nowhere is forgotten by the worker that begins.
    try homes.expect(
      Self.registry + """
        registry "INSERT INTO removed (id, uuid, kind, identifier, user, path, removed)
          VALUES (-1, 'nowhere', 'data', 'org.example.x', 0, 'x', 1)"
        """, "\n", as: owner)
    try homes.run.mounted.mount()
    try homes.expect(
      Self.registry + """
        until [ "$(registry 'SELECT count(*) FROM removed WHERE id = -1')" = 0 ] || [ $((w+=1)) -gt 600 ]; do
          sleep 0.05
        done
        registry 'SELECT count(*) FROM removed'; "$INSULA" removed list --store "$POINT" | grep -c "$APP"
        insula purge --dry-run --to 99% 2>/dev/null | grep -c 'removed containers: '
        user add "$NAME" --home "$S" >/dev/null
        insula purge --dry-run --to 99% 2>/dev/null | grep -c 'removed containers: '
        """, "1\n1\n0\n1\n", as: owner)
    try homes.expect(
      """
      N=$("$INSULA" removed list --json --store "$POINT" | sed -n 's/.*"number"[ :]*\\([0-9]*\\).*/\\1/p')
      [ -e "$DATA" ] || echo none
      "$INSULA" removed restore $N --store "$POINT" >/dev/null; cat "$DATA/Documents/note"
      """, "none\ndata\n")
  }

  /// Where a home must not be, nothing is made.
  @Test func whatOverlapsIsNotEvenMade() throws {
    let homes = try HomeVolumeTests.Homes()
    try homes.expect(
      """
      add() { user add "$NAME" --home "$1" 2>&1 | grep -o "$2"; ls -A "$1"; }
      volume eject "Users/$NAME" 2>/dev/null; umask 077
      mkdir -p "$S/v/homes"; volume add "$S/v" >/dev/null; add "$S/v/homes" 'overlaps with the volume v'
      mkdir "$S/.insula/x"; add "$S/.insula/x" "is the daemon's"
      mkdir "$STORE/x"; add "$STORE/x" 'lies in it'; rmdir "$STORE/x"
      """,
      "overlaps with the volume v\nis the daemon's\nlies in it\n", as: Self.root)
  }

  /// A link to a home of which the list of volumes says nothing is found; the home comes back with its data.
  @Test func linksWithoutVolumesAreFound() throws {
    let homes = try HomeVolumeTests.Homes()
    try homes.expect("echo mine >$H/Documents/a", "")
    _ = try homes.run.mounted.unmount()
    try homes.expect(
      Self.registry + """
        "$INSULA" check "$STORE" >/dev/null && echo whole
        registry 'DELETE FROM volumes'
        "$INSULA" check "$STORE" | grep -o "insula user add $NAME --home $S" | wc -l
        "$INSULA" check --repair "$STORE" >/dev/null; "$INSULA" check "$STORE" >/dev/null && echo whole
        """, "whole\n\n1\nwhole\n", as: Self.root)
    try homes.run.mounted.mount()
    try homes.expect(
      "ls $POINT/Users; user add \"$NAME\" --home \"$S\" >/dev/null; cat $H/Documents/a", "Shared\nmine\n",
      as: Self.root)
  }
}
