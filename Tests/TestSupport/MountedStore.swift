// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
package import LinuxIO

/// A store and a mount point for tests that run the program itself; what is still mounted goes away at the
/// end.
package final class MountedStore: Sendable {
  package let temporary: TemporaryDirectory
  /// Whose it is; nil for root's.
  package let owner: Account?
  package let store: String
  package var point: String { temporary.appending("point") }

  /// Whether this machine lets us mount at all.
  package static let isPossible: Bool = Program.isRoot && deviceIsForEveryone()

  /// Lets everyone use /dev/fuse, as udev's own rule does: a machine without udev has it for root alone, and
  /// some tests mount as ordinary users.
  ///
  /// False where there is no such device.
  private static func deviceIsForEveryone() -> Bool {
    var status = FileStatus()
    guard stat("/dev/fuse", &status) == 0 else { return false }
    if status.st_mode & 0o666 == 0o666 { return true }
    print("/dev/fuse was for root only; it now has the mode 0666, which udev gives it")
    return chmod("/dev/fuse", 0o666) == 0
  }

  /// As root, or as the ordinary user `nobody`.
  package convenience init(asNobody: Bool = false) throws {
    try self.init(owner: asNobody ? Account(name: "nobody", uid: 65534, gid: 65534, home: "/") : nil)
  }

  /// As someone, with the store at a place of its own if one is given.
  package init(owner: Account?, store: String? = nil, initOptions: [String] = []) throws {
    self.owner = owner
    // Where others may write, but not put another store in this one's place.
    temporary = try TemporaryDirectory(mode: 0o1777)
    self.store = store ?? temporary.appending("store")
    let made = try run(["init", self.store] + initOptions)
    guard made.status == 0 else { throw Failure(words: made.errors) }
    try temporary.makeDirectory("point", mode: 0o777)
  }

  /// Makes a store and mounts it.
  package static func mounted(
    owner: Account? = nil, options: String? = nil, before: [String] = [], store: String? = nil
  ) throws -> MountedStore {
    let mounted = try MountedStore(owner: owner, store: store)
    try mounted.mount(options: options, before: before)
    return mounted
  }

  /// Mounts it; `before` goes before the program's name, to run it in another way.
  package func mount(options: String? = nil, before: [String] = []) throws {
    let result = try run(["mount", store, point] + (options.map { ["-o", $0] } ?? []), before: before)
    guard result.status == 0 else { throw Failure(words: result.errors) }
  }

  /// Takes the mount away.
  ///
  /// What this test had open, a program that another test starts at this moment has too, until it runs.
  package func unmount() throws -> ProgramResult {
    var result = try run(["unmount", point])
    _ = try eventually {
      guard result.status == 3 else { return true }
      usleep(100_000)
      result = try run(["unmount", point])
      return false
    }
    return result
  }

  package func run(_ words: String...) throws -> ProgramResult { try run(words) }

  package func run(_ words: [String], before: [String] = []) throws -> ProgramResult {
    let arguments = before + [Program.insula] + words
    let environment = ["HOME": temporary.appending("home"), "XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": ""]
    guard let owner else { return try Program.run(arguments, environment: environment) }
    let become = ["setpriv", "--reuid=\(owner.uid)", "--regid=\(owner.gid)", "--clear-groups"]
    return try Program.run(become + arguments, environment: environment)
  }

  /// A path in the mounted tree.
  package func path(_ name: String) -> String { point + "/" + name }

  /// The same place in the backing directory.
  package func backing(_ name: String) -> String { store + "/tree/" + name }

  /// One of the numbers that `status` tells.
  package func count(_ key: String) throws -> Int {
    guard let number = try status()[key] as? Int else {
      throw Failure(words: "status has no number '\(key)'")
    }
    return number
  }

  /// One of the properties that `status` tells.
  package func flag(_ key: String) throws -> Bool { try status()[key] as? Bool ?? false }

  private func status() throws -> [String: Any] {
    // By its store: a look at the mount point may cost requests, which some tests count.
    let result = try run("status", store, "--json")
    let fields = try? JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
    guard let fields else { throw Failure(words: result.output + result.errors) }
    // The counts lie in the same object, or in one of their own.
    return (fields["counts"] as? [String: Any] ?? [:]).merging(fields) { counted, _ in counted }
  }

  /// The daemon's number, as the program tells it.
  package func daemon() throws -> Int32? { (try? count("pid")).map(Int32.init) }

  /// The process that replaces the daemon when it dies; nil where there is none.
  package func keeper() throws -> Int32? {
    guard let daemon = try daemon(), let status = FD.text(of: "/proc/\(daemon)/status", limit: 1 << 16),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("PPid:\t") }),
      let parent = Int32(line.dropFirst(6)), parent > 1,
      FD.text(of: "/proc/\(parent)/cmdline", limit: 4096)?.contains("mount") == true
    else { return nil }
    return parent
  }

  /// Ends the daemon in a way that leaves its mount dead.
  package func killDaemon() throws {
    guard let daemon = try daemon() else { throw Failure(words: "there is no daemon") }
    let keeper = try keeper()
    for process in [keeper, daemon].compactMap({ $0 }) {
      guard kill(process, SIGKILL) == 0 else { throw Failure(words: "there is no process \(process)") }
    }
    for process in [daemon, keeper].compactMap({ $0 }) where try !Program.waitForEnd(process) {
      throw Failure(words: "process \(process) does not end")
    }
  }

  /// Has another process serve: the last one is killed, or replaced as after an upgrade.
  package func replaceWorker(byRestart isRestart: Bool) throws {
    guard let before = try daemon() else { throw Failure(words: "there is no daemon") }
    if isRestart {
      let result = try run("restart", store)
      guard result.status == 0 else { throw Failure(words: "restart: \(result.output)\(result.errors)") }
    } else {
      guard kill(before, SIGKILL) == 0 else { throw Failure(words: "there is no process \(before)") }
    }
    guard try Program.waitForEnd(before) else { throw Failure(words: "process \(before) does not end") }
    guard try eventually({ try daemon().map { $0 != before } ?? false }) else {
      throw Failure(words: "no process follows \(before)")
    }
  }

  /// How many descriptors the daemon has open.
  package func descriptors() throws -> Int {
    guard let daemon = try daemon() else { throw Failure(words: "there is no daemon") }
    return try FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon)/fd").count
  }

  /// Root's socket of its daemon: it is named by the store's directory.
  package func socket() throws -> String {
    let (device, inode) = (try count("device"), try count("inode"))
    return "/run/insula/\(String(device, radix: 16))-\(String(inode, radix: 16)).sock"
  }

  /// The store's own number.
  package func uuid() throws -> String {
    guard let uuid = try status()["uuid"] as? String else { throw Failure(words: "status has no uuid") }
    return uuid
  }

  /// Whether something is mounted there.
  package var isMounted: Bool { (try? MountTable.current().top(at: point)) != nil }

  /// What did not work, in the words of the program.
  package struct Failure: Error, CustomStringConvertible {
    private let words: String
    package init(words: String) { self.words = words }
    package var description: String { words }
  }
}
