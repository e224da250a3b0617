// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport

/// A store and a mount point for tests that run the program itself; what is still mounted goes away at the end.
final class MountedStore: Sendable {
  let temporary: TemporaryDirectory
  let asNobody: Bool
  var store: String { temporary.appending("store") }
  var point: String { temporary.appending("point") }

  /// Whether this machine lets us mount at all.
  static var isPossible: Bool { Program.isRoot && FileManager.default.fileExists(atPath: "/dev/fuse") }

  /// As root, or as the ordinary user `nobody`.
  init(asNobody: Bool = false) throws {
    self.asNobody = asNobody
    temporary = try TemporaryDirectory(mode: 0o777)
    _ = try run("init", store)
    try temporary.makeDirectory("point", mode: 0o777)
  }

  func run(_ words: String...) throws -> ProgramResult {
    let arguments = [Program.insula] + words
    let environment = ["HOME": temporary.appending("home"), "XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": ""]
    return asNobody
      ? try Program.runAsNobody(arguments, environment: environment)
      : try Program.run(arguments, environment: environment)
  }

  /// The daemon's number, as the program tells it.
  func daemon() throws -> Int32? {
    let json = try run("status", point, "--json").output
    let fields = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
    return (fields?["pid"] as? Int).map(Int32.init)
  }

  /// Whether something is mounted there.
  var isMounted: Bool { (try? MountTable.current().top(at: point)) != nil }

  /// Waits until a process has ended.
  static func waitForEnd(_ pid: Int32, milliseconds: Int32 = 10_000) throws -> Bool {
    guard let process = try? ProcessID.open(pid) else { return true }
    return try process.fd.waitUntilReadable(milliseconds: milliseconds)
  }
}
