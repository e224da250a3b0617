// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The daemon dies in the middle of each kind of request, and nobody notices: `Fixtures/trapped.py` has them.
///
/// With INSULA_TRAPS=all it dies after each system call of each.
@Suite(.enabled(if: MountedStore.isPossible && isDebug, "needs root, /dev/fuse and a debug build"))
struct TrapTests {
  enum Way: CaseIterable {
    case throughDaemon, passthrough, rootless, withoutHandles

    var options: [String] {
      switch self {
      case .throughDaemon: ["nopassthrough"]
      case .passthrough, .rootless: []
      case .withoutHandles: ["nopassthrough", "nohandles"]
      }
    }
  }
  private static let script = Checkout.path("Tests/Fixtures/trapped.py")
  private static let isThorough = ProcessInfo.processInfo.environment["INSULA_TRAPS"] == "all"

  @Test(arguments: Way.allCases) func whoDiesInTheMiddleIsNotNoticed(way: Way) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let mounted = try MountedStore(asNobody: way == .rootless)
    let order = try Self.mount(mounted, way.options)
    let place = "Users/Shared/trapped"
    let words = [
      "/usr/bin/python3", Self.script, order, "\(try #require(try mounted.keeper()))", mounted.path(place),
      mounted.backing(place), Self.isThorough ? "--all" : way == .throughDaemon ? "" : "--few",
      way == .passthrough ? "" : "served",
    ].filter { !$0.isEmpty }
    let result = try mounted.owner == nil ? Program.run(words) : Program.runAsNobody(words)
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    // The kernel closes in the background.
    for key in ["openFiles", "openDirectories", "locks"] {
      #expect(try eventually { try mounted.count(key) == 0 }, "\(key)")
    }
    #expect(try mounted.unmount().status == 0)
  }

  private enum Point: UInt32 { case read = 1, done, noted, answering, answered }
  private static let inAnApp: [(operation: UInt32, point: Point, others: UInt32, script: String)] = [
    (9, .done, 0, "mkdir Documents/d && [ -z \"$(ls Documents/d)\" ] && rmdir Documents/d"),
    (11, .done, 0, "mkdir Documents/d; rmdir Documents/d && [ ! -e Documents/d ]"),
    (35, .done, 0, "echo text > Documents/a && [ \"$(cat Documents/a)\" = text ]"),
    (45, .done, 0, "touch Documents/b; mv Documents/b Documents/c && [ -e Documents/c -a ! -e Documents/b ]"),
    (10, .done, 0, "echo b > Documents/b; rm Documents/b && [ ! -e Documents/b ]"),
    (16, .done, 0, "echo a > Documents/l; echo a >> Documents/l && [ $(wc -l < Documents/l) = 2 ]"),
    (1, .answering, 5, "cp Documents/l Documents/e && cmp Documents/l Documents/e"),
  ]

  /// In the view of an app, which is served by the same daemon.
  @Test func anAppDoesNotNotice() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let fixture = try RunFixture(rootless: true)
    #expect(try fixture.mounted.unmount().status == 0)
    let file = try FD.cwd.open(try Self.mount(fixture.mounted, []), O_RDWR)
    for (operation, point, others, script) in Self.inAnApp {
      Self.order(operation, point, others: others, in: file.fd)
      let result = try fixture.inside(script)
      #expect(result.status == 0, "\(script): \(result.status) \(result.output)\(result.errors)")
      #expect(Self.deaths(in: file.fd) == 1, "\(script)")
    }
    #expect(try fixture.mounted.unmount().status == 0)
  }

  /// A kernel that remembers that there is no such app is told by the next worker.
  @Test func anInstallationIsSeenAtOnceThoughItsWorkerDies() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let shop = try AppShop()
    #expect(try shop.mounted.unmount().status == 0)
    let file = try FD.cwd.open(try Self.mount(shop.mounted, ["cache=3600"]), O_RDWR)
    let app = try shop.make("Thing", version: "1")
    let installed = shop.mounted.path("Applications/Thing.app")
    #expect(access(installed, F_OK) != 0)
    Self.order(0, .done, in: file.fd)
    let result = try shop.mounted.run("install", app, "--store", shop.mounted.store)
    #expect(result.ending == .failed && result.errors.contains("daemon"), "\(result)")
    #expect(Self.deaths(in: file.fd) == 1)
    #expect(eventually { access(installed, F_OK) == 0 })
    #expect(try shop.mounted.unmount().status == 0)
    try shop.expectNothingToComplainAbout()
  }

  /// Has the daemon die once.
  private static func order(_ operation: UInt32, _ point: Point, others: UInt32 = 0, in file: FD) {
    let words = [operation, point.rawValue, 1, others, 0]
    #expect(words.withUnsafeBytes { pwrite(file.raw, $0.baseAddress, $0.count, 0) } == 20)
  }

  /// How often it has died since it was told to.
  private static func deaths(in file: FD) -> UInt32 {
    var words = [UInt32](repeating: 0, count: 5)
    #expect(words.withUnsafeMutableBytes { pread(file.raw, $0.baseAddress, $0.count, 0) } == 20)
    return words[4]
  }

  /// Mounts a store whose daemon takes orders to die; gives the file in which they are given.
  static func mount(_ mounted: MountedStore, _ options: [String]) throws -> String {
    let order = mounted.temporary.appending("order")
    try mounted.temporary.write(String(repeating: "\0", count: 64), to: "order")
    #expect(chmod(order, 0o666) == 0)
    let options = (["restarts=100000"] + options).joined(separator: ",")
    try mounted.mount(options: options, before: ["env", "INSULA_TRAP=\(order)"])
    return order
  }
}

/// Whether the program that is tested can be told to die.
var isDebug: Bool {
  #if DEBUG
    true
  #else
    false
  #endif
}
