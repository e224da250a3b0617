// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Each system call of the daemon fails once (`Fixtures/faulted.py`): the next request succeeds, everything
/// is given back, and the unmount ends.
///
/// A run tries every fifth point of those for files and every twentieth of those for apps, and prints with
/// which it began. With INSULA_FAULTS=all it tries all.
@Suite(.enabled(if: MountedStore.isPossible && isDebug, "needs root, /dev/fuse and a debug build"))
struct FaultTests {
  enum Way: CaseIterable {
    case passthrough, throughDaemon, rootless, withoutHandles

    var options: String? {
      switch self {
      case .throughDaemon: "nopassthrough"
      case .passthrough, .rootless: nil
      case .withoutHandles: "nopassthrough,nohandles"
      }
    }
  }
  private static let script = Checkout.path("Tests/Fixtures/faulted.py")
  private static let isThorough = ProcessInfo.processInfo.environment["INSULA_FAULTS"] == "all"

  @Test(arguments: Way.allCases) func aFailedCallIsForgotten(way: Way) throws {
    let mounted = try MountedStore(asNobody: way == .rootless)
    let order = try Self.mount(mounted, way.options)
    let make = ["mkdir", mounted.path("Users/Shared/faulted")]
    #expect(try (way == .rootless ? Program.runAsNobody(make) : Program.run(make)).status == 0)
    try Self.run(order, mounted, directory: mounted.path("Users/Shared/faulted"))
  }

  /// What is done for an app: a grant, a start, a revocation, a delivery and a consent.
  ///
  /// First it takes back what the same work has left that something failed in.
  private static let appScript = """
    insula() { verb=$1; shift; "$INSULA" "$verb" --store "$POINT" "$@"; }
    consent() { verb=$1; shift; "$INSULA" consent "$verb" --store "$POINT" "$@"; }
    { insula revoke $APP --all; consent reset $APP photos; rm -rf "$INBOX"/*; } >/dev/null 2>&1 || :
    insula grant $APP "$PLACE/Documents/letter"
    seen=$(insula run $APP -- sh -c 'cat "$0"; echo new >~/Documents/new; cat ~/Documents/new' \
      "$PLACE/Documents/letter")
    echo "$seen"; test "$seen" = "dear
    new"
    insula revoke $APP "$PLACE/Documents/letter"
    insula deliver $APP "$PLACE/Documents/letter"
    test "$(cat "$INBOX/letter")" = dear; rm "$INBOX/letter"
    consent allow $APP photos
    seen=$(insula run $APP -- sh -c 'cat "$0"' "$PLACE/Pictures/All.photoslibrary/1")
    echo "$seen"; test "$seen" = photo
    consent reset $APP photos
    """

  @Test(arguments: [false, true]) func aFailedCallForAnAppIsForgotten(rootless: Bool) throws {
    let apps = try ConsentFixture(rootless: rootless)
    let (mounted, user) = (apps.fixture.mounted, apps.fixture.user)
    let letter = try apps.fixture.shell("echo dear >'\(apps.home)/Documents/letter'")
    try #require(letter.ending == .ok, "\(letter)")
    #expect(try mounted.unmount().ending == .ok)
    let order = try Self.mount(mounted, nil)
    let home = "\(apps.home)/Library/Containers/\(ConsentFixture.player)/Data"
    let variables = [
      "INSULA": Program.insula, "POINT": mounted.point, "APP": ConsentFixture.player, "PLACE": apps.home,
      "INBOX": home + "/Documents/Inbox", "HOME": mounted.temporary.path, "XDG_RUNTIME_DIR": "",
      "XDG_DATA_HOME": "",
    ]
    let script = try mounted.temporary.write(
      variables.map { "export \($0)='\($1)'\n" }.sorted().joined() + Self.appScript, to: "work.sh")
    let become = rootless ? "" : "setpriv --reuid=\(user.uid) --regid=\(user.gid) --clear-groups"
    let work = "case $- in *e*) strictly=-e ;; esac; exec \(become) sh $strictly '\(script)'"
    try Self.run(order, mounted, directory: mounted.point, oneOf: 20, work: ["--apps", work])
  }

  /// The file of points, and a mount whose daemon looks into it.
  private static func mount(_ mounted: MountedStore, _ options: String?) throws -> String {
    let order = mounted.temporary.appending("order")
    try mounted.temporary.write(String(repeating: "\0", count: 1 << 16), to: "order")
    try #require(chmod(order, 0o666) == 0)
    try mounted.mount(options: options, before: ["env", "INSULA_FAULTS=\(order)"])
    return order
  }

  private static func run(
    _ order: String, _ mounted: MountedStore, directory: String, oneOf parts: Int = 5, work: [String] = []
  ) throws {
    let chosen = ProcessInfo.processInfo.environment["INSULA_FAULT_SHARE"]
    let share = ["--share", chosen ?? "\(Int.random(in: 0..<parts))/\(parts)"]
    let words =
      ["/usr/bin/python3", script, order, directory, Program.insula, mounted.store]
      + (isThorough ? ["--all"] : share) + work
    let result = try mounted.owner == nil ? Program.run(words) : Program.runAsNobody(words)
    print("\(isThorough ? "all" : share[1]): \(result.output)")
    #expect(result.status == 0, "\(words.joined(separator: " ")): \(result.output)\(result.errors)")
    #expect(try mounted.unmount().status == 0)
  }
}
