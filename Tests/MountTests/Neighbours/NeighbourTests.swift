// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What one user tries against another's apps, and against root's; each attempt is shown to succeed where it
/// is not Insula that is tried, or by who may.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct NeighbourTests {
  private static let program = Checkout.path("Tests/Neighbours/neighbour.py")

  /// A place of root's, in which a file holds what nobody else may read.
  private static let secret = "prize-\(UUID().uuidString)"

  private func words(_ fixture: RunFixture) throws -> String {
    """
    export CONTROL=\(try fixture.mounted.socket()) VICTIM=\(fixture.user.uid) NAME=\(fixture.user.name)
    export VICTIM_GROUP=\(fixture.user.gid) SECONDS_TO_TRY=3
    neighbour() { /usr/bin/python3 \(Self.program) "$@"; }
    as() { setpriv --reuid=$1 --regid=$(id -g $1) --clear-groups /usr/bin/python3 \(Self.program) "$2"; }

    """
  }

  /// What is root's comes to a user by root's `insula run --user`, from its first moment on.
  @Test(arguments: [
    "descriptors_by_number", "descriptors_in_proc", "environment", "working_directory", "memory_in_proc",
    "memory_by_number", "connection_to_the_daemon",
  ])
  func nothingOfRootsComesAlong(attempt: String) throws {
    let fixture = try RunFixture()
    let other = try TemporaryAccount()
    try fixture.succeed("user", "add", other.account.name, "--store", fixture.mounted.store)
    let place = try TemporaryDirectory(mode: 0o700)
    try place.makeDirectory("inner", mode: 0o755)
    chmod(try place.write(Self.secret, to: "inner/secret"), 0o644)
    func tried(_ command: String) throws -> ProgramResult {
      try fixture.shell(
        try words(fixture) + """
          export SEEN=\(other.account.uid); cd \(place.appending("inner")); \
          export SECRET=$(cat secret); exec 9<secret
          as $VICTIM \(attempt) & looking=$!
          sleep 0.5; \(command) >&2; wait $looking
          """, as: RunFixture.root)
    }
    // Whose app is running for root alone to see.
    let begun = try fixture.shell(
      "\"$INSULA\" run --store \"$POINT\" \"$APP\" -- sleep 60 > /dev/null 2>&1 & running 1",
      as: other.account)
    #expect(begun.status == 0)
    let naive = try tried("neighbour naive_command")
    #expect(isGain(naive, of: other), "where it should succeed: \(naive.output)\(naive.errors)")
    // Who talks on their own user's connections, disturbs what that user runs, for as long as they try.
    let run = "insula run $APP --user $NAME -- sh -c 'sleep 3; echo ran'"
    let ours = try tried("for i in $(seq 100); do \(run) && break; sleep 0.1; done")
    #expect(ours.errors.contains("ran"), "\(ours.errors)")
    #expect(!isGain(ours, of: other), "\(ours.output)\(ours.errors)")
  }

  private func isGain(_ result: ProgramResult, of other: TemporaryAccount) -> Bool {
    result.output.contains(Self.secret) || result.output.contains("obeyed")
  }

  /// By the socket itself, without the command.
  @Test(arguments: [
    "listing_of_anothers_apps", "signal_for_anothers_app", "end_of_anothers_app", "end_of_everybodys_app",
    "view_of_anothers_app",
  ])
  func appsAreTheirUsers(attempt: String) throws {
    let fixture = try RunFixture()
    let other = try TemporaryAccount()
    try fixture.succeed("user", "add", other.account.name, "--store", fixture.mounted.store)
    let begun = try fixture.shell(
      """
      "$INSULA" run --store "$POINT" "$APP" -- sh -c 'trap "" USR1; \
      while :; do sleep 0.1; done' > /dev/null 2>&1 &
      running 1
      """)
    #expect(begun.status == 0)
    let tried = try fixture.shell(
      words(fixture) + "as \(other.account.uid) \(attempt); insula ps | wc -l", as: RunFixture.root)
    #expect(tried.output == "\n2\n", "\(tried.output)\(tried.errors)")
    // Nobody asks for a view in another's name, not even root.
    guard attempt != "view_of_anothers_app" else { return }
    let root = try fixture.shell(words(fixture) + "neighbour \(attempt)", as: RunFixture.root)
    #expect(root.output == "obeyed\n", "\(root.output)\(root.errors)")
  }

  /// Whoever asks for its end: a process that waited for an app, and is root's by now, is not the user's to
  /// end.
  @Test(arguments: [
    "\"$INSULA\" kill --store \"$POINT\" $APP -s KILL", "\"$INSULA\" kill --store \"$POINT\" $APP",
    "neighbour signal_for_anothers_app", "neighbour end_of_anothers_app",
    "ROOT insula kill $APP --user $NAME -s KILL", "ROOT insula unmount --lazy",
  ])
  func whatIsRootsByNowIsNotSignalled(line: String) throws {
    let fixture = try RunFixture()
    let place = try TemporaryDirectory(mode: 0o755)
    let become = place.appending("become-root")
    try FileManager.default.copyItem(
      atPath: URL(fileURLWithPath: "/usr/bin/python3").resolvingSymlinksInPath().path, toPath: become)
    chmod(become, 0o4755)
    let byRoot = line.hasPrefix("ROOT ")
    let order =
      line.hasSuffix("--lazy")
      ? "\"$INSULA\" unmount --lazy \"$POINT\"" : String(line.dropFirst(byRoot ? 5 : 0))
    let asVictim =
      "setpriv --reuid=$VICTIM --regid=$VICTIM_GROUP --clear-groups sh -c '\(Self.helpers)\(order)'"
    let result = try fixture.shell(
      try words(fixture) + """
        export BECOME_ROOT=\(become) PROGRAM=\(Self.program)
        (exec setpriv --reuid=$VICTIM --regid=$VICTIM_GROUP --clear-groups /usr/bin/python3 $PROGRAM \
          waiting_process_that_is_roots_by_now >\(place.appending("said"))) & pid=$!
        until grep -q root \(place.appending("said")) || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
        \(byRoot ? order : asVictim) >&2
        # Ended, it would be there until it is waited for.
        grep -q ^State:.S /proc/$pid/status && echo lives; kill -KILL $pid; wait $pid 2>/dev/null
        """, as: RunFixture.root)
    #expect(result.output == "lives\n", "\(result.output)\(result.errors)")
  }

  private static let helpers = "neighbour() { /usr/bin/python3 $PROGRAM $1; }; "
}
