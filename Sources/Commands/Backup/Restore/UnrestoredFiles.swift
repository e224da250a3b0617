// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// What restic could not bring back of a backup, as it complains of it.
///
/// A file that it could not write to its end lies there all the same, and would take the place of a whole
/// one. So whatever a complaint may be about goes, and what an app has comes back as a whole or not at all.
struct UnrestoredFiles {
  /// Paths in the snapshot.
  ///
  /// A complaint is a path and a reason with a colon between them, and there may be colons in either.
  private var paths: Set<[UInt8]> = []
  private var words: [String] = []
  private(set) var count = 0

  private static let beginning = Array("ignoring error for ".utf8)
  private static let mostNames = 20
  /// An app can make as many files as it likes, and perhaps have each of them fail.
  private static let most = 100_000

  /// Takes a line that restic complains by.
  mutating func take(_ line: [UInt8]) {
    guard line.starts(with: Self.beginning) else { return }
    count += 1
    guard count <= Self.most else { return }
    let rest = line.dropFirst(Self.beginning.count)
    for index in rest.indices.dropLast() where rest[index] == UInt8(ascii: ":") {
      if rest[index + 1] == UInt8(ascii: " ") { paths.insert(Array(rest[..<index])) }
    }
    if words.count < Self.mostNames { words.append("  \(String(decoding: rest, as: UTF8.self).sanitized)") }
  }

  /// Whether restic has brought back all else.
  func areAll(of outcome: Restic.Outcome) -> Bool {
    outcome.end == .exited(1) && (1...Self.most).contains(count)
      && outcome.complaints.contains { $0.includes("There were ") && $0.includes(" error") }
  }

  /// Takes it out of what was brought back, which lies in a directory that had this path.
  func remove(from directory: FD, at top: String) throws(Errno) {
    guard count > 0 else { return }
    for path in paths {
      guard path.starts(with: Array("\(top)/".utf8)) else { continue }
      let names = path.dropFirst(top.utf8.count + 1).split { $0 == UInt8(ascii: "/") }.map { Array($0) }
      if let container = Self.container(in: names) {
        try remove(container, from: directory, isTree: true)
      } else {
        try remove(names, from: directory)
      }
    }
    // A complaint about such a name is several lines, by which nobody can tell what it is about.
    var unclear: [[[UInt8]]] = []
    try DeepWalk.through(directory) { (entry) throws(Errno) in
      guard entry.name.contains(UInt8(ascii: "\n")) else { return true }
      unclear.append(entry.path)
      return false
    }
    for names in unclear { try remove(Self.container(in: names) ?? names, from: directory, isTree: true) }
  }

  /// Says what is missing.
  func tell(_ console: Console) {
    guard count > 0 else { return }
    let more = count > words.count ? ["  and \(count - words.count) more"] : []
    console.note(
      "restic could not bring back this, so it was not restored, nor any of an app's data where some of them "
        + "are missing; 'restic restore' and '--from' restore what there is:", words + more)
  }

  /// The container that something is in, if it is in one.
  private static func container(in names: [[UInt8]]) -> [[UInt8]]? {
    guard names.count > 3, names[0] == Array(BackupManifest.treeName.utf8), names[1] == Array("Users".utf8)
    else { return nil }
    for kind in ContainerKind.allCases {
      let place = ContainerLayout.directory(of: kind).parts(between: "/").map { Array($0.utf8) }
      if names.count > 3 + place.count, names.dropFirst(3).starts(with: place) {
        return Array(names[...(3 + place.count)])
      }
    }
    return nil
  }

  /// A directory stays, as its owner's alone: what has protected it may be what is missing.
  private func remove(_ names: [[UInt8]], from directory: FD, isTree: Bool = false) throws(Errno) {
    guard let name = names.last else { return }
    do throws(Errno) {
      let parent = try directory.openDirectory(at: names.dropLast())
      if isTree { return try parent.fd.removeTree(name) }
      if try parent.fd.status(of: name).isDirectory {
        let directory = try parent.fd.openDirectory(name)
        try directory.fd.changeMode(0o700)
        try? directory.fd.removeAttribute(ClosedMode.attribute)
      } else {
        try parent.fd.remove(name, directory: false)
      }
    } catch {
      // It was not brought back at all, or its name is no name.
      guard error == .ENOENT || error == .ENOTDIR || error == .EINVAL || error == .ENAMETOOLONG else {
        throw error
      }
    }
  }
}
