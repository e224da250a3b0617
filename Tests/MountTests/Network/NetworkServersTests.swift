// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The computers of the network, in `/Network/Servers`.
@Suite(
  .enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"),
  .enabled(if: WebDAVServer.isPossible, "rclone is not installed"), .mayTake(seconds: 300))
struct NetworkServersTests {
  /// A store whose file names a server of this machine.
  private final class Network: VolumeFixture {
    let run: RunFixture
    let server: WebDAVServer
    let file: String

    /// `lines` are what the file says; `URL` in them is the server's.
    convenience init(rootless: Bool = false, _ lines: String...) throws {
      try self.init(rootless: rootless, lines)
    }

    init(rootless: Bool = false, _ lines: [String]) throws {
      run = try RunFixture(rootless: rootless)
      let temporary = run.mounted.temporary
      server = try WebDAVServer(in: temporary)
      let script = "cd \"$0\" && mkdir music books && echo one >music/a && echo two >books/b"
      try #require(try Program.run(["sh", "-c", script, server.directory]).status == 0)
      file = temporary.appending("network.conf")
      try write(lines)
      try #require(try run.mounted.unmount().status == 0)
      try run.mounted.mount(options: "servers=\(file)")
    }

    var daemonLog: String? { run.mounted.daemonLog }

    func write(_ lines: [String], mode: FileMode = 0o644) throws {
      let text = lines.map { $0.replacing("URL", with: server.url) + "\n" }.joined()
      try run.mounted.temporary.write(text, to: "network.conf")
      let user = run.mounted.owner
      try #require(chown(file, user?.uid ?? 0, user?.gid ?? 0) == 0 && chmod(file, mode) == 0)
    }

    func shell(_ script: String, as account: Account?) throws -> ProgramResult {
      try run.shell(
        """
        N="$POINT/Network/Servers"; S='\(server.directory)'
        network() { timeout 60 "$INSULA" network "$@" --store "$POINT"; }
        volume() { timeout 60 "$INSULA" volume "$@" --store "$POINT"; }
        \(script)
        """, as: account)
    }
  }

  private static let root = Account(name: "root", uid: 0, gid: 0, home: "/root")

  @Test(arguments: [false, true])
  func whatIsSharedIsThereForWhoeverLooks(rootless: Bool) throws {
    let network = try Network(rootless: rootless, "nas music URL/music", "nas books URL/books read-only")
    try network.expect(
      """
      ls $N $N/nas; cat $N/nas/music/a; echo new >$N/nas/music/n; ls $N/nas/music
      volume list | grep -c music; cat $N/nas/books/b; echo x 2>&1 >$N/nas/books/x | grep -c Read-only
      ls $N/nas/none 2>&1 | grep -c 'No such'; ls $N/other 2>&1 | grep -c 'No such'
      volume eject nas/music; ls $N/nas
      for i in $(seq 100); do [ -s $S/music/n ] && break; sleep 0.1; done; cat $S/music/n
      """,
      """
      \(network.run.mounted.path("Network/Servers")):
      nas

      \(network.run.mounted.path("Network/Servers/nas")):
      books
      music
      one
      a
      n
      1
      two
      1
      1
      1
      books
      music
      new

      """)
  }

  /// Each user has a mount of their own, which is served by a program of theirs; one for all is root's.
  @Test func eachUserHasTheirOwn() throws {
    let network = try Network("nas mine URL/music", "nas ours URL/books all")
    let other = try TemporaryAccount()
    let look = "cat $N/nas/mine/a; stat -c %u $N/nas/mine/a; cat $N/nas/ours/b"
    let programs = "ps -C rclone -o uid= -o args= | grep ' mount ' | awk '{ print $1 }' | sort -u | grep -x"
    try network.expect(
      "\(look); \(programs) $(id -u); volume list | wc -l",
      "one\n\(network.run.user.uid)\ntwo\n\(network.run.user.uid)\n3\n")
    try network.expect(
      "\(look); \(programs) $(id -u); volume list | wc -l",
      "one\n\(other.account.uid)\ntwo\n\(other.account.uid)\n3\n", as: other.account)
    // Both go on, whoever looked last.
    try network.expect("cat $N/nas/mine/a; ls $N/nas", "one\nmine\nours\n")
    // Root has one of its own, and not what one of them has.
    try network.expect("cat $N/nas/mine/a; volume list | grep -c nas/", "one\n4\n", as: Self.root)
  }

  /// There are tens of thousands for each account, whose shares would leave none for others.
  @Test func additionalIDsHaveNone() throws {
    let network = try Network("nas mine URL/music", "nas ours URL/books all")
    let other = try TemporaryAccount()
    guard let first = other.firstAdditionalID else {
      return print("skipped: this machine gives accounts no additional IDs")
    }
    for id in [first, first + 1] {
      let additional = Account(name: "additional", uid: id, gid: id, home: "/")
      try network.expect(
        "cat $N/nas/mine/a 2>&1 | grep -c 'No such'; cat $N/nas/ours/b", "1\ntwo\n", as: additional)
    }
    try network.expect("volume list | grep -c nas/", "1\n", as: Self.root)
    try network.expect("cat $N/nas/mine/a; volume list | grep -c nas/", "one\n2\n", as: other.account)
  }

  /// The daemon alone says who is there, for root too.
  @Test func nobodyElseMakesNames() throws {
    let network = try Network("nas music URL/music")
    let attempts = """
      cd $N; cat nas/music/a; mkdir new nas/new; rmdir nas nas/music; mv nas other; mv nas/music nas/x
      touch f nas/f; ln -s nas l; ln nas/music/a nas/hard; rm -r nas/music; cd /; rmdir $N; mv $N $N.old
      ls $N $N/nas
      """
    for account in [network.run.user, Self.root] {
      let result = try network.shell("(\(attempts)) 2>/dev/null; cat $S/music/a", as: account)
      let point = network.run.mounted.path("Network/Servers")
      let shown = "\(point):\nnas\n\n\(point)/nas:\nmusic\n"
      // What is on the server is theirs to remove.
      #expect(result.output.hasPrefix("one\n\(shown)") || result.output.hasPrefix(shown), "\(result)")
      _ = try Program.run(["sh", "-c", "echo one >\(network.server.directory)/music/a"])
    }
  }

  @Test func theFileIsReadAgain() throws {
    let network = try Network("nas music URL/music")
    try network.expect("ls $N; cat $N/nas/music/a; ls $N/new 2>&1 | grep -c such", "nas\none\n1\n")
    try network.write(["new books URL/books", "# a comment", "", "  spaced   music   URL/music  "])
    try network.expect(
      "network list >/dev/null; ls $N; cat $N/new/books/b; cat $N/spaced/music/a",
      // What is mounted stays until it is ejected.
      "nas\nnew\nspaced\ntwo\none\n")
    try network.expect("volume eject nas/music; network list >/dev/null; ls $N", "nas\nnew\nspaced\n")
  }

  /// What was granted of a share is not for another one that gets its name.
  @Test func grantsAreOfTheirShare() throws {
    let network = try Network("nas music URL/music", "nas other URL/books")
    let app = "insula run $APP -- cat $N/nas/music/a $N/nas/music/b $N/nas/other/b 2>/dev/null || true"
    func remount() throws {
      try #require(try network.run.mounted.unmount().status == 0)
      try network.run.mounted.mount(options: "servers=\(network.file)")
    }
    try network.expect(
      """
      ls $N/nas/music $N/nas/other >/dev/null; insula grant $APP $N/nas/music >/dev/null
      insula grant $APP $N/nas/other >/dev/null; \(app)
      """, "one\ntwo\n")
    // The same shares come back as what they were.
    try remount()
    try network.expect("ls $N/nas/music $N/nas/other >/dev/null; \(app)", "one\ntwo\n")
    try network.write(["nas music URL/books", "nas other URL/books"])
    try remount()
    try network.expect(
      """
      ls $N/nas/music $N/nas/other; \(app)
      insula grants | grep -c nas/other; insula grants | grep -c nas/music || true
      """,
      """
      \(network.run.mounted.path("Network/Servers/nas/music")):
      b

      \(network.run.mounted.path("Network/Servers/nas/other")):
      b
      two
      1
      0

      """)
  }

  @Test func whatCantBeUsedIsTold() throws {
    let network = try Network(
      "nas music URL/music", "short line", "a/b c URL/x", "x y http://no/", "nas music URL/again",
      "n o URL/x often", "n o nfs://h/x each")
    let result = try network.shell("network list; ls $N", as: Self.root)
    let told = result.errors + result.output
    for words in [
      "line 2: it needs a host, a name and a URL", "line 3: a name begins with a dot", "line 4: 'http://no/'",
      "line 5: nas/music is there twice", "line 6: 'often' is not known", "line 7: each user can't have nfs",
    ] { #expect(told.contains(words), "\(told); the daemon's log: \(network.daemonLog ?? "")") }
    #expect(told.contains("nas/music  each user  file"), "\(told)")
    try network.write(["evil music URL/music"], mode: 0o666)
    let refused = try network.shell("network list 2>&1; ls $N", as: Self.root)
    #expect(refused.output.contains("does not count") && !refused.output.contains("evil"), "\(refused)")
  }

  /// A server that is not there costs who looks for it a moment, and nobody else anything.
  @Test func aServerThatIsAwayHoldsNobody() throws {
    let network = try Network("nas music URL/music", "away data dav://192.0.2.1:9/x")
    let began = ContinuousClock.now
    let looks = try network.shell(
      "for i in 1 2; do ls $N/away/data >/dev/null 2>&1 || echo 1; done; cat $N/nas/music/a")
    #expect(looks.output == "1\n1\none\n", "\(looks)")
    #expect(ContinuousClock.now - began < .seconds(20))
  }

  /// What somebody uses stays, be it only as a working directory; and nobody has more than eight.
  @Test func whatIsUsedStays() throws {
    let lines = (0..<10).map { "nas n\($0) URL/music" }
    let network = try Network(lines)
    let result = try network.shell(
      """
      cd $N/nas/n0; exec 3<$N/nas/n1/a; for i in 2 3 4 5 6 7; do cat $N/nas/n$i/a >/dev/null; done
      (cd /; timeout 60 "$INSULA" volume eject nas/n0 --store "$POINT" 2>&1) | grep -c 'in use'
      (cd /; timeout 60 "$INSULA" volume eject nas/n1 --store "$POINT" 2>&1) | grep -c 'in use'
      for i in $(seq 100); do cat $N/nas/n8/a 2>/dev/null && break; sleep 0.1; done
      cat a <&3; cat a; volume list | grep -c nas/
      """)
    #expect(result.output == "1\n1\none\none\none\n8\n", "\(result)")
  }

  /// Another worker goes on with what is mounted.
  @Test func anotherWorkerTakesOver() throws {
    let network = try Network("nas music URL/music")
    try network.expect("exec 3<$N/nas/music/a; cat $N/nas/music/a", "one\n")
    let worker = try network.run.mounted.count("pid")
    #expect(kill(Int32(worker), SIGKILL) == 0)
    try network.expect("cat $N/nas/music/a; volume list | grep -c read-write", "one\n1\n")
  }

  /// A computer may be called like the directory of homes, and what it shares like a home.
  ///
  /// Neither passes for the other. What each of two users has from one computer is named by whose it is.
  @Test func aShareIsTakenForNoHome() throws {
    let eva = try TemporaryAccount()
    let name = eva.account.name
    let network = try Network("Users \(name) URL/music", "nas mine URL/books")
    let homes = try network.run.mounted.temporary.makeDirectory("homes", mode: 0o700)
    try network.expect("cat $N/Users/\(name)/a $N/nas/mine/b", "one\ntwo\n")
    try network.expect("cat $N/nas/mine/b", "two\n", as: eva.account)
    let user = "user() { timeout 60 \"$INSULA\" user \"$@\" --store \"$POINT\" >/dev/null; echo $?; }"
    try network.expect(
      """
      \(user); user add \(name) --home '\(homes)'; volume list | grep -c Users/\(name)
      volume eject Users/\(name) >/dev/null; echo $?; volume list | grep -o 'Network/Servers/Users/\(name)'
      volume eject Users/\(name) 2>&1 | grep -c 'there is no volume'; ls '\(homes)'
      volume eject nas/mine 2>&1 | grep -o 'nas/mine of [^;,]*' | sort
      user add \(name) --home '\(homes)'; user remove \(name) --delete-home; ls '\(homes)'
      volume eject Network/Servers/Users/\(name) --user \(network.run.user.name) >/dev/null; echo $?
      """,
      """
      0
      2
      0
      Network/Servers/Users/\(name)
      1
      \(name)
      \(["nas/mine of \(name)", "nas/mine of \(network.run.user.name)"].sorted().joined(separator: "\n"))
      0
      0
      0

      """, as: Self.root)
    // Hers has gone with her home; the other one is its user's to eject.
    try network.expect("volume eject nas/mine >/dev/null; echo $?", "0\n")
  }
}
