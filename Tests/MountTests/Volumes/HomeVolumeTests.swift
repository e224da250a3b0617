// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// Homes that lie outside of the store: in directories of the machine and on disks.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HomeVolumeTests {
  enum Source { case directory, disk }

  struct Homes: VolumeFixture {
    let run: RunFixture

    init(_ source: Source = .directory, rootless: Bool = false) throws {
      run = try RunFixture(rootless: rootless) { temporary in
        try Self.option(source, rootless: rootless, in: temporary)
      }
    }

    /// Makes a place for homes, and gives the option that names it.
    static func option(
      _ source: Source, rootless: Bool = false, in temporary: TemporaryDirectory
    ) throws -> [String] {
      let place = temporary.appending("homes")
      switch source {
      case .directory:
        try temporary.makeDirectory("homes", mode: 0o700)
        if rootless { try succeed("chown 65534:65534 '\(place)'") }
      case .disk:
        try succeed("truncate -s 64M '\(place)' && mkfs.ext4 -qF '\(place)' >/dev/null")
      }
      return ["--home", place]
    }

    static func succeed(_ script: String) throws {
      let result = try Program.run(
        ["sh", "-c", script], environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
      try #require(result.status == 0, "\(result.errors)")
    }

    var source: String { run.mounted.temporary.appending("homes") }

    func shell(_ script: String, as account: Account?) throws -> ProgramResult {
      try run.shell(
        """
        volume() { verb=$1; shift; timeout 100 "$INSULA" volume "$verb" --store "$POINT" "$@"; }
        user() { verb=$1; shift; timeout 100 "$INSULA" user "$verb" --store "$STORE" "$@"; }
        STORE='\(run.mounted.store)'; NAME='\(run.user.name)'; H="$POINT/Users/$NAME"; S='\(source)'
        LC_ALL=C; export LC_ALL
        \(script)
        """, as: account)
    }
  }

  private static let root = RunFixture.root

  /// A home elsewhere is one as any other: apps have their containers in it, by the same rules.
  @Test(arguments: [(Source.directory, false), (.disk, false), (.directory, true)])
  func appsHaveTheirContainersThere(source: Source, isRootless: Bool) throws {
    let homes = try Homes(source, rootless: isRootless)
    try homes.expect(
      """
      stat -c '%F %U' $H | sed "s/$NAME/me/"; find $POINT/Users -maxdepth 1 -type d -name "$NAME" | wc -l
      echo mine >$H/Documents/a; cat $H/Documents/a
      run sh -c 'echo data >Documents/note; cat Documents/note; ls $HOME/../../../../Documents 2>/dev/null'
      stat -c %F "$DATA/Documents"; cat "$DATA/Documents/note"
      mkdir "$DATA/own" 2>&1 | grep -o 'not permitted'; rmdir "$DATA/Documents" 2>&1 | grep -o 'not permitted'
      mv "$H/Library/Containers" $H/Library/C 2>&1 | grep -o 'not permitted'
      mv $H/Documents $H/Docs 2>&1 | grep -o 'denied'
      stat -c %d $H $POINT/Users/Shared | uniq | wc -l
      """,
      """
      directory me
      1
      mine
      data
      directory
      data
      not permitted
      not permitted
      not permitted
      denied
      1

      """)
    // In the store there is nothing but a link that leads nowhere.
    try homes.expect(
      """
      case $(readlink "$STORE/tree/Users/$NAME") in insula-home:*) echo link;; esac
      [ -e "$STORE/tree/Users/$NAME" ] || echo nowhere
      [ -f "$S" ] || cat "$S/$NAME/Documents/a"
      user list | grep -c "^$NAME .*complete"
      volume list | grep -c "^Users/$NAME "
      """, "link\nnowhere\n" + (source == .directory ? "mine\n" : "") + "1\n1\n",
      as: isRootless ? nil : Self.root)
  }

  /// The first delivery makes the Inbox on the filesystem of the home.
  @Test(arguments: [(Source.directory, false), (.disk, false), (.directory, true)])
  func filesAreDeliveredThere(source: Source, isRootless: Bool) throws {
    let homes = try Homes(source, rootless: isRootless)
    try homes.expect(
      """
      run true; echo mine >$H/Documents/a; insula deliver "$APP" $H/Documents/a | sed 's/.*Data//'
      insula deliver "$APP" $H/Documents/a | sed 's/.*Data//'; cat "$DATA/Documents/Inbox/a"
      """, "/Documents/Inbox/a\n/Documents/Inbox/a-2\nmine\n")
  }

  /// What users install in it, update and remove is made on the same filesystem, so that it is whole at once.
  @Test func usersInstallAppsThere() throws {
    let homes = try Homes(.disk)
    let made = homes.run.mounted.temporary.appending("made")
    try homes.run.mounted.temporary.makeDirectory("made", mode: 0o777)
    try homes.run.succeed("new-app", "Own", made)
    try homes.run.succeed("sign", "\(made)/Own.app", "--identity", "tester")
    try homes.expect(
      """
      insula install \(made)/Own.app --user $NAME >/dev/null; ls $H/Applications
      echo x >$H/Applications/Own.app/x 2>/dev/null || echo sealed
      "$INSULA" run --store "$POINT" org.example.own -- sh -c 'echo data >Library/Caches/c; echo ran'
      insula purge org.example.own >/dev/null; ls "$H/Library/Containers/org.example.own/Data/Library/Caches"
      """, "Own.app\nsealed\nran\nCACHEDIR.TAG\n")
    // The next mount knows it, too.
    _ = try homes.run.mounted.unmount()
    try homes.run.mounted.mount()
    #expect(eventually { (try? homes.shell("ls $H/Applications").output) == "Own.app\n" })
    try homes.expect(
      """
      echo x >$H/Applications/Own.app/x 2>/dev/null || echo sealed
      "$INSULA" run --store "$POINT" org.example.own -- echo ran
      insula uninstall org.example.own --user $NAME >/dev/null; ls $H/Applications; ls $H/Library/Containers
      """, "sealed\nran\n")
    #expect(try homes.run.mounted.run(["check", homes.run.mounted.store]).status == 0)
  }

  /// What was sealed in a home that was ejected seals nothing in the next one, which may have its numbers.
  @Test func sealsEndWithTheHome() throws {
    let homes = try Homes()
    let next = try TemporaryAccount()
    let made = homes.run.mounted.temporary.appending("made")
    try homes.run.mounted.temporary.makeDirectory("made", mode: 0o777)
    try homes.run.succeed("new-app", "Own", made)
    try homes.run.succeed("sign", "\(made)/Own.app", "--identity", "tester")
    try homes.expect(
      """
      insula install \(made)/Own.app --user $NAME >/dev/null
      echo x >$H/Applications/Own.app/x 2>/dev/null || echo sealed
      """, "sealed\n")
    // The directory of apps, which knows of the app by its name, is the next user's.
    try homes.expect(
      """
      volume eject Users/$NAME 2>/dev/null; mv "$S/$NAME" "$S/$NEXT" && rm -r "$S/$NEXT/Applications/Own.app"
      chown -R "$NEXT:" "$S/$NEXT" && user add "$NEXT" --home "$S" >/dev/null && echo added
      """.replacing("$NEXT", with: next.account.name), "added\n", as: Self.root)
    try homes.expect(
      """
      cd "$POINT/Users/$(id -un)/Applications" && mkdir Own.app && echo x >Own.app/x && cat Own.app/x
      """, "x\n", as: next.account)
  }

  /// Its name is nobody's to change, and nothing moves between it and the rest of the tree but by copying.
  @Test(arguments: [false, true])
  func itsNameStays(isRootless: Bool) throws {
    let homes = try Homes(rootless: isRootless)
    try homes.expect(
      """
      mv $H $POINT/Users/other 2>&1 | grep -o busy
      rmdir $H 2>&1 | grep -o busy
      mkdir $H 2>&1 | grep -o exists
      echo y >$H/f; mkdir $POINT/Users/Shared/d
      ln $H/f $POINT/Users/Shared/d/f 2>&1 | grep -o cross-device
      mv $H/f $POINT/Users/Shared/d/f && cat $POINT/Users/Shared/d/f; [ -e $H/f ] || echo moved
      """, "busy\nbusy\nexists\ncross-device\ny\nmoved\n", as: isRootless ? nil : Self.root)
  }

  /// While its disk is away, so is the home, and nothing is made in its place; then it is there again.
  @Test func aHomeMayBeAway() throws {
    let homes = try Homes(.disk)
    _ = try homes.shell("run sh -c 'echo data >Documents/note'")
    _ = try homes.run.mounted.unmount()
    try homes.expect("mv \"$S\" \"$S.away\"; user list | grep -c \"^$NAME .*away\"", "1\n", as: Self.root)
    try homes.run.mounted.mount()
    try homes.expect(
      """
      ls $H 2>&1 | grep -o 'No medium'; mkdir $H 2>&1 | grep -o -e exists -e 'No medium'
      touch $H/x 2>&1 | grep -o 'No medium'
      user list | grep -c "^$NAME .*away"
      """,
      "No medium\nNo medium\nNo medium\n1\n", as: Self.root)
    try homes.expect(
      "run true 2>&1 | grep -o 'is on a disk or server that is not there'",
      "is on a disk or server that is not there\n")
    let made = homes.run.mounted.temporary.appending("made")
    try homes.run.mounted.temporary.makeDirectory("made", mode: 0o777)
    try homes.run.succeed("new-app", "Own", made)
    try homes.run.succeed("sign", "\(made)/Own.app", "--identity", "tester")
    try homes.expect(
      "insula install '\(made)/Own.app' 2>&1 | grep -o 'is on a disk or server that is not there'",
      "is on a disk or server that is not there\n")
    try homes.expect(
      """
      mv "$S.away" "$S"; n=0; until ls $H >/dev/null 2>&1 || [ $n = 100 ]; do n=$((n+1)); sleep 0.1; done
      cat "$DATA/Documents/note"
      """, "data\n", as: Self.root)
    try homes.expect("run cat Documents/note", "data\n")
  }

  /// An ejected home stays where it is; with the same command it comes back, and with another it is deleted.
  @Test func homesComeAndGo() throws {
    let homes = try Homes()
    try homes.expect(
      """
      run sh -c 'echo data >Documents/note'
      volume eject "Users/$NAME" 2>&1 | grep -o 'added by root'
      """, "added by root\n")
    try homes.expect(
      """
      (cd $H; exec sleep 100) &
      until [ "$(readlink /proc/$!/cwd)" = "$H" ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.01; done
      volume eject "Users/$NAME" 2>&1 | grep -o 'in use'; kill $!; wait 2>/dev/null
      volume eject "Users/$NAME" 2>/dev/null; ls $POINT/Users; ls "$S"
      ls -A "$S" | grep -c '^.insula$'; user list
      user add "$NAME" --home "$S" | grep -c "has the home"
      cat "$DATA/Documents/note"
      """,
      "in use\nShared\n\(homes.run.user.name)\n1\nThere are no homes yet; "
        + "'insula user add NAME' creates one.\n1\ndata\n", as: Self.root)
    try homes.expect(
      """
      for left in .x.removed-999999 .x.new-999999; do mkdir -p "$(echo "$S"/.insula/*-*)/$left/d"; done
      user remove "$NAME" --delete-home | grep -o Removed; ls $POINT/Users; ls "$S"; volume list
      ls -A "$S"/.insula/*-* | grep -v -e staging -e updates; true
      """, "Removed\nShared\nThere are no volumes.\n", as: Self.root)
  }

  /// What others could change is no place for a home, nor is what keeps no owners.
  @Test func placesMustBeSafe() throws {
    let homes = try Homes()
    try homes.expect(
      """
      add() { user add "$NAME" --home "$1" 2>&1 | grep -o "$2"; }
      add "$S" 'already exists'
      volume eject "Users/$NAME" 2>/dev/null
      umask 077; mkdir "$S/open" "$S/other"; chmod 755 "$S/open"; add "$S/open" 'can change or read'
      chown nobody "$S/other"; add "$S/other" 'can change or read'
      mkdir -p "$S/taken/$NAME"; add "$S/taken" 'belongs to uid 0'
      mkdir -p "$S/link"; ln -s /tmp "$S/link/$NAME"; add "$S/link" 'open the home'
      mkdir "$S/file"; mkdir -p "$S/file/$NAME"; touch "$S/file/$NAME/Library"
      chown -R "$NAME" "$S/file/$NAME"; add "$S/file" 'Library must be a directory'
      mkdir -m 755 -p "$S/own/.insula"; add "$S/own" 'can change or read'
      mkdir -p "$S/part/$NAME/Movies"; chown "$NAME" "$S/part/$NAME"; add "$S/part" 'Movies belongs to uid 0'
      add "$STORE" 'holds the store'
      add "$S/nothing" 'No such file'
      truncate -s 16M "$S/n"; /usr/sbin/mkfs.ntfs -q -F "$S/n" >/dev/null; add "$S/n" 'choose that with'
      chmod 600 "$S/n"
      user add "$NAME" --home "$S" --adopt 2>&1 | grep -o 'is for a home in the store'
      ls $POINT/Users; volume list
      """,
      """
      already exists
      can change or read
      can change or read
      belongs to uid 0
      open the home
      Library must be a directory
      can change or read
      Movies belongs to uid 0
      holds the store
      No such file
      choose that with
      is for a home in the store
      Shared
      There are no volumes.

      """, as: Self.root)
    // Users have none of their own choosing.
    try homes.expect(
      "user add \"$NAME\" --home /tmp 2>&1 | grep -o 'only root'", "only root\n")
  }

  /// A user's backup has what is in the home, and brings it back there.
  @Test func backupsContainIt() throws {
    let fixture = try BackupFixture { temporary in try Homes.option(.disk, in: temporary) }
    let said = try fixture.succeed(
      """
      H="$POINT/Users/$(id -un)"; echo mine >"$H/Documents/a"; echo data >"$DATA/Documents/b"
      init >/dev/null; backup now --store "$POINT" >/dev/null; rm "$H/Documents/a" "$DATA/Documents/b"
      bring "$SCRATCH/x"
      "$INSULA" backup restore --from "$SCRATCH/x$POINT" --to "$POINT" --replace >/dev/null
      cat "$H/Documents/a" "$DATA/Documents/b"
      """)
    #expect(said == "mine\ndata\n")
  }

  /// Another worker goes on with it, and so do apps that run.
  @Test(arguments: [Source.directory, .disk])
  func anotherWorkerGoesOn(source: Source) throws {
    let homes = try Homes(source)
    try homes.expect(
      """
      mkfifo /tmp/insula-home-$$; exec 3<>/tmp/insula-home-$$; rm /tmp/insula-home-$$
      run sh -c 'echo one >Documents/a; read x; cat Documents/a; echo two >Documents/b' <&3 >"$H/out" &
      running 1; until [ -s "$DATA/Documents/a" ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      exec 4>"$H/open"; echo before >&4
      "$INSULA" restart --store "$POINT" >/dev/null; echo after >&4; echo go >&3; wait
      cat $H/out $H/open "$DATA/Documents/b"
      """, "one\nbefore\nafter\ntwo\n")
  }
}
