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
/// A run tries every fifth point, and prints with which it began. With INSULA_FAULTS=all it tries all.
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

  /// The file of points, and a mount whose daemon looks into it.
  private static func mount(_ mounted: MountedStore, _ options: String?) throws -> String {
    let order = mounted.temporary.appending("order")
    try mounted.temporary.write(String(repeating: "\0", count: 1 << 16), to: "order")
    try #require(chmod(order, 0o666) == 0)
    try mounted.mount(options: options, before: ["env", "INSULA_FAULTS=\(order)"])
    return order
  }

  private static func run(
    _ order: String, _ mounted: MountedStore, directory: String, work: [String] = []
  ) throws {
    let share = ["--share", "\(Int.random(in: 0..<5))/5"]
    let words =
      ["/usr/bin/python3", script, order, directory, Program.insula, mounted.store]
      + (isThorough ? ["--all"] : share) + work
    let result = try mounted.owner == nil ? Program.run(words) : Program.runAsNobody(words)
    print("\(isThorough ? "all" : share[1]): \(result.output)")
    #expect(result.status == 0, "\(words.joined(separator: " ")): \(result.output)\(result.errors)")
    #expect(try mounted.unmount().status == 0)
  }
}
