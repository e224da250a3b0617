// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Updates from a server of files, as root and as ordinary users.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct SourceUpdateMountTests {
  /// A server of files that ends with this object.
  private final class Server {
    let address: String
    private let process: Process

    init(_ directory: String, _ log: String) throws {
      let script = """
        import functools, http.server, os, sys, threading
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        print(server.server_port, flush=True)
        server.serve_forever()
        """
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = ["python3", "-c", script, directory]
      // It ends when nobody has the other end any more.
      process.standardInput = Pipe()
      let output = Pipe()
      process.standardOutput = output
      _ = FileManager.default.createFile(atPath: log, contents: nil)
      process.standardError = FileHandle(forWritingAtPath: log)
      try process.run()
      self.process = process
      var line = ""
      while !line.hasSuffix("\n") {
        let more = output.fileHandleForReading.availableData
        if more.isEmpty { break }
        line += String(decoding: more, as: UTF8.self)
      }
      let port = try #require(Int(line.dropLast()), "the server does not start")
      address = "http://127.0.0.1:\(port)"
    }

    deinit {
      kill(process.processIdentifier, SIGKILL)
    }
  }

  private struct Shop {
    let fixture: RunFixture
    let server: Server
    var mounted: MountedStore { fixture.mounted }

    init(rootless: Bool) throws {
      fixture = try RunFixture(rootless: rootless)
      let served = try fixture.mounted.temporary.makeDirectory("served", mode: 0o777)
      chmod(served, 0o777)
      server = try Server(served, fixture.mounted.temporary.appending("server.log"))
    }

    /// Puts a version of the app where the server shows it, with a new index.
    func publish(_ version: String) throws {
      let place = "store/Notes-made/Notes.app"
      let text = try #require(mounted.temporary.text(of: "\(place)/Contents/Info.plist"))
      var lines = text.components(separatedBy: "\n")
      for index in lines.indices.dropLast()
      where lines[index].contains("<key>CFBundleVersion<")
        || lines[index].contains("<key>CFBundleShortVersionString<")
      {
        lines[index + 1] = "\t<string>\(version)</string>"
      }
      try mounted.temporary.write(lines.joined(separator: "\n"), to: "\(place)/Contents/Info.plist")
      let path = mounted.temporary.appending(place)
      try fixture.succeed("sign", path, "--force", "--identity", "tester")
      // Its root must be trusted by whoever packs.
      _ = try mounted.run("trust", "add", mounted.temporary.appending("store/root.pem"))
      let package = mounted.temporary.appending("served/Notes \(version) ä.tar")
      try fixture.succeed("pack", path, "-o", package)
      try fixture.succeed("index", mounted.temporary.appending("served"), "--identity", "tester")
    }

    func update(_ options: String...) throws -> ProgramResult {
      try mounted.run(["update", "--all", server.address, "--store", mounted.store] + options)
    }
  }

  @Test(arguments: [false, true]) func appsComeFromAServer(rootless: Bool) throws {
    let shop = try Shop(rootless: rootless)
    try shop.publish("7.5")
    let plan = try shop.update("--dry-run")
    #expect(plan.status == 0 && plan.output.contains("7.5"), "\(plan)")
    let done = try shop.update()
    #expect(done.status == 0 && done.output.contains("Updated \(RunFixture.identifier)"), "\(done)")
    let seen = try shop.fixture.shell("grep -A1 CFBundleVersion $BUNDLE/Contents/Info.plist")
    #expect(seen.output.contains("7.5"), "\(seen)")
    // One that runs waits.
    try shop.publish("7.6")
    let begun = try shop.fixture.shell(
      "\"$INSULA\" run --store \"$POINT\" \"$APP\" -- sleep 300 > /dev/null 2>&1 & running 1")
    try #require(begun.status == 0, "\(begun.errors)")
    let busy = try shop.update()
    #expect(busy.status == 1 && busy.errors.contains("--when-closed"), "\(busy)")
    let waits = try shop.update("--when-closed", "--json")
    #expect(waits.status == 0 && waits.output.contains(#""result" : "waits""#), "\(waits)")
    #expect(try shop.update("--when-closed").output.contains("up to date"), "what waits is not fetched again")
    try shop.fixture.succeed("kill", RunFixture.identifier, "--store", shop.mounted.store)
    #expect(
      try eventually {
        try shop.fixture.shell("cat $BUNDLE/Contents/Info.plist").output.contains("7.6")
      })
    // Nothing there, or not what it was.
    let missing = try shop.mounted.run(
      "update", "--all", shop.server.address + "/none", "--store", shop.mounted.store)
    #expect(missing.status == 1 && missing.errors.contains("404"), "\(missing)")
    let closed = try shop.mounted.run("update", "--all", "http://127.0.0.1:1", "--store", shop.mounted.store)
    #expect(closed.status == 1 && closed.errors.contains("can't fetch"), "\(closed)")
  }

  /// Somebody who may not read the store asks the daemon whom it trusts; everyone's apps stay as they are.
  @Test func userUpdatesTheirOwnApps() throws {
    let shop = try Shop(rootless: false)
    let bundle = shop.mounted.temporary.appending("store/Notes-made/Notes.app")
    let copied = try Program.run(["cp", "-r", bundle, shop.mounted.temporary.appending("Notes.app")])
    #expect(copied.status == 0)
    chmod(shop.mounted.temporary.path, 0o755)
    let home = try shop.mounted.temporary.makeDirectory("home-of-user", mode: 0o1777)
    chown(home, shop.fixture.user.uid, shop.fixture.user.gid)
    let installed = try shop.fixture.shell("insula install \(shop.mounted.temporary.appending("Notes.app"))")
    #expect(installed.status == 0 && installed.output.contains("for yourself"), "\(installed)")
    try shop.publish("7.5")
    let updated = try shop.fixture.shell("HOME=\(home) insula update --all \(shop.server.address)")
    #expect(updated.status == 0 && updated.output.contains("of \(shop.fixture.user.name)"), "\(updated)")
    let apps = try shop.mounted.run("apps", "--store", shop.mounted.store).output
    #expect(apps.split(separator: "\n").count { $0.contains("7.5") } == 1, "\(apps)")
    // What root fetches, root's programs do not fetch as root, nor with what the caller has set.
    let log = shop.mounted.temporary.appending("curl.log")
    try shop.mounted.temporary.write("output = \(log)\n", to: "home/.curlrc")
    let root = try shop.update()
    #expect(root.status == 0, "\(root)")
    #expect(access(log, F_OK) == -1)
  }
}
