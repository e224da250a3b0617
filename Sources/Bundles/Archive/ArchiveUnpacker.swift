// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// Takes the bundle out of an archive that nobody vouches for, while that is read.
///
/// - All is made in a directory of ours, by descriptors and single names; no link is followed, and nothing
///   that is there is opened again or replaced.
/// - The first thing that a bundle can't have ends it (``ArchiveEntry``). Who has called removes what there
///   is by then.
/// - What has come out is a bundle as good or bad as any: who signed it, and what, is asked afterwards.
package struct ArchiveUnpacker: ~Copyable {
  /// What bounds it; of files and directories, as many as can be installed.
  package struct Limits: Sendable {
    package var depth = 100
    package var entries = 1_000_000
    package var bytes: Int64 = 1 << 40
    package init() {}
  }

  /// Makes one change of the disk, or ends the attempt.
  package typealias Step = (() throws(ArchiveFailure) -> Void) throws(ArchiveFailure) -> Void

  private let directory: FD
  private let limits: Limits
  private let step: Step
  private let progress: (Int, Int64) -> Void
  private var bundle: [UInt8] = []
  private var count = 0
  private var bytes: Int64 = 0
  /// The directory that the last entry was in.
  private var parentNames: [[UInt8]] = []
  private var parent: OwnedFD?

  /// Takes the bundle out of an open file, into a directory; gives its name there.
  ///
  /// `progress` gets how many entries and bytes there are by then.
  package static func unpack(
    _ archive: FD, into directory: FD, limits: Limits = Limits(),
    progress: @escaping (Int, Int64) -> Void = { _, _ in },
    step: @escaping Step = { (body) throws(ArchiveFailure) in try body() }
  ) throws(ArchiveFailure) -> String {
    try unpack(into: directory, limits: limits, progress: progress, step: step) { (limit) throws(Errno) in
      try archive.readAvailable(limit: limit)
    }
  }

  /// The same, from what a function reads.
  static func unpack(
    into directory: FD, limits: Limits = Limits(), progress: @escaping (Int, Int64) -> Void = { _, _ in },
    step: @escaping Step = { (body) throws(ArchiveFailure) in try body() },
    _ read: @escaping (Int) throws(Errno) -> [UInt8]?
  ) throws(ArchiveFailure) -> String {
    var unpacker = ArchiveUnpacker(directory: directory, limits: limits, step: step, progress: progress)
    var reader = TarReader(read)
    while let header = try reader.next() { try unpacker.make(ArchiveEntry(header), header.path, &reader) }
    guard unpacker.count > 0 else { throw ArchiveFailure(.empty) }
    return String(decoding: unpacker.bundle, as: UTF8.self)
  }

  private init(directory: FD, limits: Limits, step: @escaping Step, progress: @escaping (Int, Int64) -> Void)
  {
    self.directory = directory
    self.limits = limits
    self.step = step
    self.progress = progress
  }

  private mutating func make(
    _ entry: ArchiveEntry, _ path: [UInt8], _ reader: inout TarReader
  ) throws(ArchiveFailure) {
    func failure(_ reason: ArchiveFailure.Reason) -> ArchiveFailure { ArchiveFailure(reason, path) }
    guard let name = entry.names.last, let top = entry.names.first else { throw failure(.dots) }
    if count == 0 { bundle = top }
    guard top == bundle else {
      throw failure(.severalBundles(String(decoding: bundle, as: UTF8.self)))
    }
    guard entry.names.count > 1 || entry.kind == .directory else { throw failure(.topIsNoDirectory) }
    guard entry.names.count <= limits.depth else { throw failure(.tooDeep(limits.depth)) }
    count += 1
    guard count <= limits.entries else { throw failure(.tooMany(limits.entries)) }
    guard entry.size <= limits.bytes - bytes else { throw failure(.tooLarge(limits.bytes)) }
    bytes += entry.size
    try enter(Array(entry.names.dropLast()), path)
    guard let parent = parent?.fd else { throw failure(.noDirectory) }
    switch entry.kind {
    case .directory:
      try change("create", path) { () throws(Errno) in try parent.makeDirectory(name, mode: 0o755) }
    case .symlink(let target):
      try change("create", path) { () throws(Errno) in try parent.makeSymlink(name, to: target) }
    case .file(let isExecutable):
      try makeFile(name, path, entry, mode: isExecutable ? 0o755 : 0o644, in: parent, &reader)
    }
    progress(count, bytes)
  }

  private func makeFile(
    _ name: [UInt8], _ path: [UInt8], _ entry: ArchiveEntry, mode: FileMode, in parent: FD,
    _ reader: inout TarReader
  ) throws(ArchiveFailure) {
    guard Self.hasRoom(for: entry.size, in: parent) else {
      throw ArchiveFailure(.failed(doing: "write", .ENOSPC), path)
    }
    var made: OwnedFD?
    try change("create", path) { () throws(Errno) in
      made = try parent.open(name, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
    }
    guard let made else { return }
    while let part = try reader.contents() {
      try change("write", path) { () throws(Errno) in try made.fd.writeAll(part) }
    }
    let time = FileTime(tv_sec: Int(entry.time), tv_nsec: 0)
    // No time is sealed, so one that a filesystem can't keep is no reason to refuse.
    try? made.fd.changeTimes(access: .set(time), modification: .set(time))
  }

  /// Whether so much can be written and leaves something to others: an archive is unpacked before anyone
  /// knows whose it is, and may say of a file what it likes.
  private static func hasRoom(for size: Int64, in directory: FD) -> Bool {
    guard let status = try? directory.filesystemStatus() else { return true }
    func bytes(_ blocks: fsblkcnt_t) -> Int64 {
      let product = UInt64(blocks).multipliedReportingOverflow(by: UInt64(status.f_frsize))
      return product.overflow ? .max : Int64(clamping: product.partialValue)
    }
    let reserve = min(bytes(status.f_blocks) / 20, 256 << 20)
    return size <= bytes(status.f_bavail) - reserve
  }

  /// Opens the directory that an entry is in, which an entry of its own must have made.
  private mutating func enter(_ names: [[UInt8]], _ path: [UInt8]) throws(ArchiveFailure) {
    if parent != nil, names == parentNames { return }
    parent = nil
    do throws(Errno) { parent = try directory.openDirectory(at: names) } catch {
      switch error {
      case .ENOENT, .ENOTDIR, .ELOOP, .EXDEV: throw ArchiveFailure(.noDirectory, path)
      default: throw ArchiveFailure(.failed(doing: "open the directory of", error), path)
      }
    }
    parentNames = names
  }

  private func change(
    _ doing: String, _ path: [UInt8], _ body: () throws(Errno) -> Void
  ) throws(ArchiveFailure) {
    try step { () throws(ArchiveFailure) in
      do throws(Errno) { try body() } catch {
        throw ArchiveFailure(error == .EEXIST ? .twice : .failed(doing: doing, error), path)
      }
    }
  }
}
