// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// What restic could not bring back of a backup, as it complains of it.
///
/// A file that it could not write to its end lies there all the same, with its whole size perhaps, or without
/// its ACL, and would take the place of a whole one. So what a complaint is about goes, and what an app has
/// comes back as a whole or not at all.
///
/// Whoever has a file gives it its name, and may have it fail. So a complaint is what restic writes at once,
/// whatever line breaks are in it, and begins with a path. What follows the path has that path in it as well,
/// in the place where it was to be.
struct UnrestoredFiles {
  /// Names in directories, by paths in the snapshot.
  private var paths: [[UInt8]: Set<[UInt8]>] = [:]
  /// Complaints that do not say where their path ends.
  private var unclear: [[UInt8]] = []
  private var isUnknown = false
  private var words: [String] = []
  private(set) var count = 0
  /// How many there were, as restic counts them.
  private var total: Int?

  private static let beginning = Array("ignoring error for ".utf8)
  private static let end = Array("Fatal: There were ".utf8)
  private static let place = Array(Restic.givenPath.utf8)
  private static let mostNames = 20

  /// Takes what restic has written at once.
  mutating func take(_ message: [UInt8]) {
    if message.starts(with: Self.end) {
      total = Int(String(decoding: message.dropFirst(Self.end.count).prefix { $0 != 32 }, as: UTF8.self))
    }
    guard message.starts(with: Self.beginning) else { return }
    count += 1
    let rest = Array(message.dropFirst(Self.beginning.count))
    let ends = Self.ends(in: rest)
    // Another version might write paths in another way.
    if rest.first != UInt8(ascii: "/") || ends.isEmpty { isUnknown = true }
    // A longer one that is no path begins with the path, and is its owner's doing.
    if let end = ends.last(where: { Self.isRepeated(rest[..<$0], in: rest[$0...]) }) {
      add(Array(rest[..<end]))
    } else {
      unclear.append(rest)
    }
    if words.count < Self.mostNames { words.append("  \(String(decoding: rest, as: UTF8.self).sanitized)") }
  }

  private mutating func add(_ path: [UInt8]) {
    let end = path.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
    paths[Array(path[..<end]), default: []].insert(Array(path[end...].dropFirst()))
  }

  /// Where a path may end: there is a colon between it and the reason, and there may be colons in either.
  private static func ends(in complaint: [UInt8]) -> [Int] {
    complaint.indices.dropLast().filter {
      complaint[$0] == UInt8(ascii: ":") && complaint[$0 + 1] == UInt8(ascii: " ")
    }
  }

  /// Whether a path is in what follows it, as a place.
  private static func isRepeated(_ path: ArraySlice<UInt8>, in rest: ArraySlice<UInt8>) -> Bool {
    let wanted = place + path
    guard wanted.count <= rest.count else { return false }
    return rest.withUnsafeBytes { rest in
      wanted.withUnsafeBytes { wanted in
        (0...(rest.count - wanted.count)).contains { begin in
          rest[begin] == wanted[0] && UnsafeRawBufferPointer(rebasing: rest[begin...]).starts(with: wanted)
        }
      }
    }
  }

  /// Whether restic has brought back all else.
  func areAll(of outcome: Restic.Outcome) -> Bool {
    outcome.end == .exited(1) && count > 0 && total == count && !isUnknown
  }

  /// Takes it out of what was brought back, which lies in a directory that had this path.
  func remove(from directory: FD, at top: String) throws(Errno) {
    for (parent, names) in paths {
      for name in names { try remove(parent + [UInt8(ascii: "/")] + name, from: directory, at: top) }
    }
    for complaint in unclear {
      for end in Self.ends(in: complaint) {
        try remove(Array(complaint[..<end]), from: directory, at: top)
      }
    }
  }

  private func remove(_ path: [UInt8], from directory: FD, at top: String) throws(Errno) {
    guard path.starts(with: Array("\(top)/".utf8)) else { return }
    let names = path.dropFirst(top.utf8.count + 1).split { $0 == UInt8(ascii: "/") }.map { Array($0) }
    if let container = Self.container(in: names) {
      try remove(container, from: directory, isTree: true)
    } else {
      try remove(names, from: directory)
    }
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
