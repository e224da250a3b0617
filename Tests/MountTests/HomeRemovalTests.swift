// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A home that goes takes its owner's apps with it.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HomeRemovalTests {
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
