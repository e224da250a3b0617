// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Bundles that nobody trusts, and what they cost the daemon, which is root's.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 300))
struct StrangersBundleTests {
  /// A number of KiB that the kernel tells of a process.
  private static func memory(_ key: String, of process: Int32) throws -> Int {
    let text = try #require(FD.text(of: "/proc/\(process)/status", limit: 1 << 16))
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("\(key):") })
    return try #require(Int(line.split(whereSeparator: \.isWhitespace)[1]))
  }

  /// How many KiB more than before a process has had at once while `body` ran.
  private static func peak(of process: Int32, _ body: () throws -> Void) throws -> Int {
    let reset = try FD.cwd.openFollowing("/proc/\(process)/clear_refs", O_WRONLY)
    try reset.fd.writeAll("5".utf8)
    let before = try memory("VmRSS", of: process)
    try body()
    return try memory("VmHWM", of: process) - before
  }

  /// How `insula verify` of bundles ends, and how much memory it has had at most.
  private static func peakOfVerifying(
    _ apps: [String], _ shop: AppShop
  ) throws -> (status: Int, kibibytes: Int) {
    let script = """
      import os, subprocess, sys
      process = subprocess.Popen([sys.argv[1], "verify", "--store"] + sys.argv[2:],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
      _, status, usage = os.wait4(process.pid, 0)
      print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
      """
    let result = try Program.run(
      ["/usr/bin/python3", "-c", script, Program.insula, shop.mounted.store] + apps)
    let numbers = result.output.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
    try #require(numbers.count == 2, "\(result)")
    return (numbers[0], numbers[1])
  }

  /// Signs an app under a root that nobody trusts.
  private static func signAsStranger(_ app: String, _ shop: AppShop) throws {
    let home = ["HOME": try shop.mounted.temporary.makeDirectory("stranger", mode: 0o755)]
    let words = [
      ["identity", "new", "s", "--team", "STRANGER01"], ["sign", app, "--identity", "s", "--force"],
    ]
    for words in words {
      let result = try Program.run([Program.insula] + words, environment: home)
      try #require(result.status == 0, "\(result)")
    }
  }

  enum Part: String, CaseIterable {
    case info = "Contents/Info.plist"
    case resources = "Contents/_CodeSignature/CodeResources"
    case entitlements = "Contents/_CodeSignature/CodeEntitlements"
  }

  /// A property list of 62 MiB costs next to nothing, wherever it stands.
  ///
  /// It is too long, or a stranger has signed it, or it is not what a trusted signer has signed. That holds
  /// for root's daemon when a user installs, and for root who verifies.
  @Test(arguments: Part.allCases, [true, false])
  func longListsCostNothing(part: Part, isStrangers: Bool) throws {
    let shop = try AppShop()
    let account = try TemporaryAccount()
    try shop.succeed("user", "add", account.account.name)
    let app = try shop.make("Thing", version: "1")
    if isStrangers { try Self.signAsStranger(app, shop) }
    let usual = try Self.peakOfVerifying([app], shop).kibibytes
    let list = """
      import sys
      part = sys.argv[1]
      with open(part, "w") as out:
          out.write('<?xml version="1.0" encoding="UTF-8"?>\\n<plist version="1.0"><dict>')
          for number in range(62 << 14):
              out.write(f"<key>{number:014}</key><string>{number:018}</string>\\n")
          out.write("</dict></plist>\\n")
      """
    let made = try Program.run(["/usr/bin/python3", "-c", list, "\(app)/\(part.rawValue)"])
    try #require(made.status == 0, "\(made.errors)")
    let daemon = try #require(try shop.mounted.daemon())
    // What the first one needs for good is there then.
    _ = try shop.run(as: account, "install", app)
    let more = try Self.peak(of: daemon) {
      let result = try shop.run(as: account, "install", app)
      #expect((1..<128).contains(result.status) && result.errors.contains("refused"), "\(result)")
    }
    #expect(more < 24 << 10, "\(more) KiB")
    let verified = try Self.peakOfVerifying([app], shop)
    // Each kind of finding has a status of its own; no signal has ended it.
    #expect(
      (1..<128).contains(verified.status) && verified.kibibytes - usual < 24 << 10, "\(verified), \(usual)")
  }

  /// 2,000 verifications of a bundle take no more memory than twenty: of one that is as it was signed, and of
  /// one that was changed, by those who are trusted and by others.
  @Test(arguments: [true, false], [true, false])
  func verificationsLeaveNothing(isTrusted: Bool, isChanged: Bool) throws {
    let shop = try AppShop()
    let app = try shop.make("Thing", version: "1")
    if !isTrusted { try Self.signAsStranger(app, shop) }
    if isChanged { try shop.mounted.temporary.write("more", to: "apps/Thing.app/Contents/added") }
    let few = try Self.peakOfVerifying(Array(repeating: app, count: 20), shop)
    let many = try Self.peakOfVerifying(Array(repeating: app, count: 2000), shop)
    #expect((few.status == 0) == (isTrusted && !isChanged) && many.status == few.status, "\(few), \(many)")
    // Less than 2 KiB for each.
    #expect(many.kibibytes - few.kibibytes < 4 << 10, "\(few), \(many)")
  }

  /// However often somebody tries, nothing is left behind.
  @Test func refusedBundlesLeaveNothing() throws {
    let shop = try AppShop()
    let account = try TemporaryAccount()
    try shop.succeed("user", "add", account.account.name)
    let app = try shop.make("Thing", version: "1")
    try Self.signAsStranger(app, shop)
    let daemon = try #require(try shop.mounted.daemon())
    func install(_ times: Int) throws {
      let script = """
        for i in $(seq "$3"); do "$0" install "$1" --store "$2" 2>/dev/null; [ $? = "$4" ] || exit 9; done
        """
      let status = try shop.run(as: account, "install", app).status
      #expect(status != 0)
      let result = try Program.run(
        [
          "setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)", "--clear-groups",
          "sh", "-c", script, Program.insula, app, shop.mounted.point, "\(times)", "\(status)",
        ])
      #expect(result.status == 0, "\(result)")
    }
    try install(20)
    let before = try Self.memory("VmRSS", of: daemon)
    try install(100)
    let after = try Self.memory("VmRSS", of: daemon)
    #expect(after - before < 4 << 10, "\(before) KiB, then \(after) KiB")
  }
}
