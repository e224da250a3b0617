// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport

/// Files outside of a view that nobody in it may read, change or find: each in a directory of its own, and
/// with the same secret.
final class Prizes {
  /// What all of them hold; no attempt is told.
  let secret = "prize-\(UUID().uuidString)"
  /// By the variables in which attempts are told where they are.
  private(set) var paths: [String: String] = [:]
  private var directories: [String] = []

  deinit {
    for directory in directories { try? FileManager.default.removeItem(atPath: directory) }
  }

  /// Makes one, in a new directory below one of the machine's that goes away with this object.
  func make(_ variable: String, below parent: String, mode: mode_t = 0o777, owner: uid_t = 0) throws {
    var template = Array("\(parent)/insula-prize-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Errno.last }
    let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    directories.append(directory)
    try note(variable, in: directory)
    guard chmod(directory, mode) == 0, chown(directory, owner, owner) == 0,
      chmod(directory + "/secret", mode & 0o666) == 0, chown(directory + "/secret", owner, owner) == 0
    else { throw Errno.last }
  }

  /// Puts one into a directory that is there, by the way past all rules.
  func note(_ variable: String, in directory: String) throws {
    paths[variable] = directory + "/secret"
    try Data(secret.utf8).write(to: URL(fileURLWithPath: directory + "/secret"))
  }

  /// The same prize by another path, which is where it is looked after.
  func alias(_ variable: String, _ path: String) { paths[variable] = path }

  /// What has become of them, in words; they are then as they were.
  func restore(_ watched: [String]) -> [String] {
    var changes: [String] = []
    for variable in watched {
      guard let path = paths[variable] else { continue }
      let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
      let names = Set((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? [])
      // A standard directory of a home has the marker of its name.
      for name in names.subtracting(["secret", ".localized"]) where !name.hasPrefix(".com.apple.") {
        changes.append("\(variable): \(name) has come")
        try? FileManager.default.removeItem(atPath: "\(directory)/\(name)")
      }
      if FD.text(of: path, limit: 1 << 16) != secret {
        changes.append("\(variable): another one")
        var before = FileStatus()
        let isThere = lstat(path, &before) == 0
        var around = FileStatus()
        _ = lstat(directory, &around)
        unlink(path)
        try? Data(secret.utf8).write(to: URL(fileURLWithPath: path))
        chmod(path, isThere ? before.st_mode & 0o777 : 0o666)
        chown(path, around.st_uid, around.st_gid)
      }
    }
    return changes
  }
}
