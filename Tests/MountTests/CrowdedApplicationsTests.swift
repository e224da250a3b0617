// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// A user fills their directory of apps, and nobody's memory.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 240))
struct CrowdedApplicationsTests {
  @Test func installationTakesNoMemoryForNames() throws {
    let shop = try AppShop()
    let anna = try TemporaryAccount()
    try shop.succeed("user", "add", anna.account.name)
    let first = try shop.make("First", version: "1")
    let second = try shop.make("Second", version: "1", in: "more")
    #expect(try shop.run(as: anna, "install", first).ending == .ok)
    let home = "Users/\(anna.account.name)"
    let filled = try Program.run([
      "python3", "-c",
      """
      import os, sys
      os.chdir(sys.argv[1])
      open("file", "w").close()
      source = "file"
      for number in range(80000):
          if number % 20000 == 0:
              source = f"file{number}"
              open(source, "w").close()
          os.link(source, f"{number:0200}")
      """, shop.mounted.backing("\(home)/Applications"),
    ])
    try #require(filled.status == 0, "\(filled.errors)")
    let daemon = try #require(try shop.mounted.daemon())
    func kilobytes() throws -> Int {
      let words = try #require(ProcessID.field("VmHWM", of: "\(daemon)")).split(separator: " ")
      return try #require(words.first.flatMap { Int($0) })
    }
    let before = try kilobytes()
    let installed = try shop.run(as: anna, "install", second)
    #expect(installed.ending == .ok, "\(installed.errors)")
    // The names alone have sixteen thousand.
    #expect(try kilobytes() - before < 8000)
    #expect(try shop.mounted.unmount().ending == .ok)
  }
}
