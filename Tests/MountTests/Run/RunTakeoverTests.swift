// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Apps run on when another worker takes over: each as what it was started as.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 180))
struct RunTakeoverTests {
  private static let group = "group.org.example.shared"

  /// Makes another version of the app, which is in a group; its path.
  private func makeCopy(_ fixture: RunFixture) throws -> String {
    let temporary = fixture.mounted.temporary
    let directory = try temporary.makeDirectory("copy", mode: 0o777)
    try fixture.succeed("new-app", "Notes", directory)
    let plist = "copy/Notes.app/Contents/Info.plist"
    var lines = try #require(temporary.text(of: plist)).components(separatedBy: "\n")
    for index in lines.indices.dropLast() where lines[index].contains("<key>CFBundleVersion<") {
      lines[index + 1] = "\t<string>2</string>"
    }
    try temporary.write(lines.joined(separator: "\n"), to: plist)
    let groups = "<array><string>\(Self.group)</string></array>"
    let rights = try temporary.write(
      "<plist version=\"1.0\"><dict><key>com.apple.security.application-groups</key>\(groups)</dict></plist>",
      to: "copy/rights")
    let bundle = "\(directory)/Notes.app"
    try fixture.succeed("sign", bundle, "--identity", "tester", "--entitlements", rights)
    return bundle
  }

  private func replaceWorker(_ mounted: MountedStore) throws {
    let worker = try #require(try mounted.daemon())
    #expect(kill(worker, SIGKILL) == 0)
    #expect(try eventually { try mounted.daemon().map { $0 != worker } ?? false })
  }

  /// Starts the app of a user, which says what it sees once its container has a file of that name.
  private func start(_ fixture: RunFixture, _ name: String, _ said: String, as account: Account? = nil) throws
  {
    let user = account ?? fixture.user
    let home = fixture.mounted.path("Users/\(user.name)")
    let begun = try fixture.shell(
      """
      { run sh -c 'echo begun
        until [ -e "$HOME/Documents/$1" ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
        cd "$2" && for place in "$3" Applications/Notes.app "Library/Group Containers"/*; do
          [ ! -d "$place" ] || echo "$place"
        done' sh '\(name)' '\(home)' "$BUNDLE"; echo "ended: $?"; } > '\(said)-\(name)' 2>&1 < /dev/null &
      until grep -q begun '\(said)-\(name)' || [ $((w+=1)) -gt 3000 ]; do sleep 0.02; done
      """, as: account)
    try #require(begun.status == 0, "\(begun)")
    try #require(FD.text(of: "\(said)-\(name)", limit: 4096) == "begun\n")
  }

  private func expectEnd(
    _ fixture: RunFixture, _ name: String, _ said: String, sees: [String], as account: Account? = nil
  ) throws {
    let user = account ?? fixture.user
    let documents = fixture.mounted.path(
      "Users/\(user.name)/Library/Containers/\(RunFixture.identifier)/Data/Documents")
    let told = try fixture.shell("touch '\(documents)/\(name)'", as: account)
    #expect(told.status == 0, "\(told)")
    #expect(eventually { FD.text(of: "\(said)-\(name)", limit: 4096)?.contains("ended: ") == true })
    let lines = (["begun"] + sees + ["ended: 0", ""]).joined(separator: "\n")
    #expect(FD.text(of: "\(said)-\(name)", limit: 4096) == lines)
  }

  /// The attack: everyone's app runs, its user installs a copy with other entitlements, and the worker dies.
  ///
  /// One copy must not become the other: neither by what it may, nor by what of it may be replaced.
  @Test(arguments: [false, true]) func eachCopyStaysWhatItIs(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let mounted = fixture.mounted
    let said = try mounted.temporary.makeDirectory("said", mode: 0o777) + "/said"
    let copy = try makeCopy(fixture)
    let neighbour = rootless ? nil : try TemporaryAccount()
    try start(fixture, "everyones", said)
    if let neighbour {
      try fixture.succeed("user", "add", neighbour.account.name, "--store", mounted.store)
      try start(fixture, "neighbours", said, as: neighbour.account)
    }
    let installed = try fixture.shell("insula install -u \(fixture.user.name) '\(copy)'")
    try #require(installed.status == 0, "\(installed)")
    try start(fixture, "own", said)
    for _ in 0..<2 { try replaceWorker(mounted) }
    let running = try mounted.run("ps", "--store", mounted.store).output
    #expect(
      running.split(separator: "\n").count { $0.contains(RunFixture.identifier) } == (rootless ? 2 : 3),
      "\(running)")
    // None of them is replaced while it runs.
    let update = try mounted.run(
      "update", copy, "--everyone", "--allow-downgrade", "--store", mounted.store)
    #expect(update.status == 3 && update.errors.contains("is running"), "\(update)")
    let uninstall = try fixture.shell("insula uninstall -u \(fixture.user.name) $APP")
    #expect(uninstall.status == 3 && uninstall.errors.contains("is running"), "\(uninstall)")
    try expectEnd(fixture, "everyones", said, sees: [fixture.bundle])
    try expectEnd(
      fixture, "own", said, sees: ["Applications/Notes.app", "Library/Group Containers/\(Self.group)"])
    if let neighbour {
      try expectEnd(fixture, "neighbours", said, sees: [fixture.bundle], as: neighbour.account)
    }
  }

  /// An app that is not any more what it was started as has no view after that: it is ended, and all that it
  /// has started, while others go on.
  @Test(arguments: [false, true]) func appThatCanNotGoOnIsEnded(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let mounted = fixture.mounted
    let said = try mounted.temporary.makeDirectory("said", mode: 0o777) + "/said"
    try fixture.install("Beside")
    try start(fixture, "notes", said)
    let begun = try fixture.shell(
      "\"$INSULA\" run --store \"$POINT\" org.example.beside -- sleep 300 > /dev/null 2>&1 & running 2")
    try #require(begun.status == 0, "\(begun)")
    // As if another one were in its place.
    let changed = try Program.run([
      "sqlite3", mounted.store + "/state/insula.db",
      "UPDATE apps SET root = x'03' WHERE identifier = '\(RunFixture.identifier)'",
    ])
    try #require(changed.status == 0, "\(changed.errors)")
    try replaceWorker(mounted)
    #expect(eventually { FD.text(of: said + "-notes", limit: 4096)?.contains("ended: 137\n") == true })
    let running = try mounted.run("ps", "--store", mounted.store).output
    #expect(running.contains("org.example.beside") && !running.contains(RunFixture.identifier), "\(running)")
    let log = try mounted.run("log", "--store", mounted.store).output
    #expect(log.contains("could not go on when the daemon was replaced"), "\(log)")
    try fixture.succeed("kill", "org.example.beside", "--store", mounted.store)
  }
}
