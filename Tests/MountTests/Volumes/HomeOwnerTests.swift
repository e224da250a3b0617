// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// Whoever has a disk or server can write any owner there: whose a home is, root has said.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HomeOwnerTests {
  private static let root = RunFixture.root
  /// Gives a home away where it lies; a disk must not be in use for that.
  private static let own = """
    own() {
      if [ -d "$S" ]; then chown "$1" "$S/$NAME"; return; fi
      until [ -z "$(/sbin/losetup -j "$S")" ] || [ $((w+=1)) -gt 600 ]; do sleep 0.1; done
      /sbin/debugfs -w -R "sif /$NAME uid $1" "$S" 2>/dev/null >/dev/null
    }

    """

  private static func expectAway(
    _ homes: HomeVolumeTests.Homes, from owner: UInt32, noted: String, as others: [Account]
  ) throws {
    try homes.expect(
      """
      ls $H 2>&1 | grep -o 'No medium'; user list | grep -c "^$NAME .*away"
      volume info Users/$NAME | tr -s ' \\n' ' ' | grep -o "belongs to uid \(owner), and not to [^;,]*"
      """, "No medium\n1\nbelongs to uid \(owner), and not to \(noted)\n", as: root)
    // Neither root nor whoever's number it is has a home by that.
    for account in others {
      try homes.expect(
        "run sh -c 'echo mine >Documents/mine' 2>&1 | grep -o 'there is no home'", "there is no home\n",
        as: account)
    }
  }

  @Test(arguments: [HomeVolumeTests.Source.directory, .disk])
  func aHomeIsTheirsForWhomRootHasAddedIt(source: HomeVolumeTests.Source) throws {
    let homes = try HomeVolumeTests.Homes(source)
    let ben = try TemporaryAccount()
    let user = homes.run.user
    try homes.expect("run sh -c 'echo data >Documents/note'; cat $DATA/Documents/note", "data\n")
    for owner in [ben.account.uid, 0] {
      _ = try homes.run.mounted.unmount()
      try homes.expect(Self.own + "own \(owner)", "", as: Self.root)
      try homes.run.mounted.mount()
      try Self.expectAway(
        homes, from: owner, noted: "uid \(user.uid)", as: [ben.account, Self.root])
    }
    _ = try homes.run.mounted.unmount()
    try homes.expect(Self.own + "own \(user.uid)", "", as: Self.root)
    try homes.run.mounted.mount()
    try homes.expect(
      """
      until ls $H >/dev/null 2>&1 || [ $((w+=1)) -gt 100 ]; do sleep 0.1; done
      cat "$DATA/Documents/note"; [ -e "$H/Documents/mine" ] || echo none
      """, "data\nnone\n", as: Self.root)
    try homes.expect("run cat Documents/note", "data\n")
  }

  /// An earlier version did not note whose it was.
  @Test func whatIsNotNotedIsTheAccountsOfItsName() throws {
    let (homes, ben) = (try HomeVolumeTests.Homes(), try TemporaryAccount())
    let user = homes.run.user
    let registry = homes.run.mounted.store + "/state/insula.db"
    for owner in [ben.account.uid, user.uid] {
      _ = try homes.run.mounted.unmount()
      try homes.expect(
        Self.own + "sqlite3 \(registry) 'DELETE FROM home_owners'; own \(owner)", "", as: Self.root)
      try homes.run.mounted.mount()
      let noted = "sqlite3 \(registry) 'SELECT owner FROM home_owners'"
      if owner == user.uid {
        try homes.expect("run echo there; ls -d $H | wc -l", "there\n1\n")
        try homes.expect(noted, "\(user.uid)\n", as: Self.root)
      } else {
        try Self.expectAway(homes, from: owner, noted: "the account \(user.name)", as: [ben.account])
        try homes.expect(noted, "", as: Self.root)
      }
    }
  }

  /// As a server can do it.
  @Test func aHomeThatIsGivenAwayWhileItIsThereIsNobodys() throws {
    let (homes, ben) = (try HomeVolumeTests.Homes(), try TemporaryAccount())
    let made = try homes.run.mounted.temporary.makeDirectory("made", mode: 0o777)
    try homes.run.succeed("new-app", "Own", made)
    try homes.run.succeed("sign", "\(made)/Own.app", "--identity", "tester")
    let owner = ben.account.uid
    try homes.expect(Self.own + "own \(owner); stat -c %u $H", "\(owner)\n", as: Self.root)
    try homes.expect("run true 2>&1 | grep -o 'there is no home'", "there is no home\n", as: ben.account)
    for account in [ben.account, Self.root] {
      try homes.expect(
        "insula install '\(made)/Own.app' --user $NAME 2>&1 | grep -o 'not there now'", "not there now\n",
        as: account)
    }
    try homes.expect(Self.own + "own \(homes.run.user.uid)", "", as: Self.root)
    try homes.expect("run echo ran", "ran\n")
  }

  /// Accounts have got other numbers, and root has given them their homes: root adds those anew, and nothing
  /// of them is lost.
  @Test func rootAddsHomesOfOtherNumbersAnew() throws {
    let homes = try HomeVolumeTests.Homes()
    let (cleo, dora) = (try TemporaryAccount(), try TemporaryAccount())
    let names = [cleo.account.name, dora.account.name]
    for account in [cleo, dora] {
      try homes.expect(
        "user add \(account.account.name) --home $S | grep -c 'has the home'", "1\n", as: Self.root)
      try homes.expect("run sh -c 'id -u >Documents/note' && echo ran", "ran\n", as: account.account)
    }
    _ = try homes.run.mounted.unmount()
    try cleo.exchangeNumbers(with: dora)
    let numbers = [dora.account.uid, cleo.account.uid]
    for (name, number) in zip(names, numbers) {
      try homes.expect("chown -R \(number) $S/\(name)", "", as: Self.root)
    }
    try homes.run.mounted.mount()
    for (name, number) in zip(names, numbers) {
      try homes.expect(
        """
        ls "$POINT/Users/\(name)" 2>&1 | grep -o 'No medium'
        volume eject Users/\(name) 2>/dev/null; user add \(name) --home $S | grep -c 'has the home'
        stat -c %u "$POINT/Users/\(name)"
        """, "No medium\n1\n\(number)\n", as: Self.root)
    }
    // By which each has the data that it had as the other number.
    for account in [cleo, dora] {
      let other = account === cleo ? dora : cleo
      try homes.expect("run cat Documents/note", "\(other.account.uid)\n", as: account.account)
    }
  }
}
