// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// An entry of an archive that has nothing in it which a bundle can't have.
///
/// Whatever else tar can say is refused, rather than left out: who has made the archive meant something by
/// it.
struct ArchiveEntry {
  enum Kind: Equatable {
    case directory
    case file(isExecutable: Bool)
    case symlink(target: [UInt8])
  }

  /// From the bundle's directory on, which is the first.
  let names: [[UInt8]]
  let kind: Kind
  let size: Int64
  let time: Int64

  init(_ header: TarHeader) throws(ArchiveFailure) {
    let path = header.path
    func failure(_ reason: ArchiveFailure.Reason) -> ArchiveFailure { ArchiveFailure(reason, path) }
    let isDirectory = header.kind == TarHeader.Kind.directory
    names = try Self.names(path, isDirectory: isDirectory)
    switch header.kind {
    case TarHeader.Kind.directory: kind = .directory
    case TarHeader.Kind.file, TarHeader.Kind.oldFile, TarHeader.Kind.contiguousFile:
      kind = .file(isExecutable: header.mode & 0o100 != 0)
    case TarHeader.Kind.symlink: kind = .symlink(target: try Self.target(header, depth: names.count))
    case TarHeader.Kind.hardLink: throw failure(.hardLink)
    case TarHeader.Kind.characterDevice, TarHeader.Kind.blockDevice: throw failure(.device)
    case TarHeader.Kind.fifo: throw failure(.fifo)
    default: throw failure(.unknownType(header.kind))
    }
    if header.mode & 0o6000 != 0 { throw failure(.setID) }
    if case .file = kind {
    } else if header.size != 0 {
      throw failure(.damaged("something that is not a file has contents"))
    }
    size = header.size
    time = header.time
  }

  private static func names(_ path: [UInt8], isDirectory: Bool) throws(ArchiveFailure) -> [[UInt8]] {
    func failure(_ reason: ArchiveFailure.Reason) -> ArchiveFailure { ArchiveFailure(reason, path) }
    if path.first == 0x2f { throw failure(.absolutePath) }
    // A directory's path may end in a slash.
    let plain = isDirectory && path.last == 0x2f ? path.dropLast() : path[...]
    let names = plain.split(separator: 0x2f, omittingEmptySubsequences: false).map { Array($0) }
    for name in names {
      if name.isEmpty || name == [0x2e] || name == [0x2e, 0x2e] { throw failure(.dots) }
      if name.count > 255 { throw failure(.badName("it is longer than 255 bytes")) }
      guard let text = String(validating: name, as: UTF8.self) else {
        throw failure(.badName("it is not valid UTF-8"))
      }
      if text.unicodeScalars.contains(where: \.isControl) {
        throw failure(.badName("it contains a control character"))
      }
    }
    return names
  }

  /// Only by its text: that a link through others does not lead out either, verification finds.
  private static func target(_ header: TarHeader, depth: Int) throws(ArchiveFailure) -> [UInt8] {
    let target = header.target
    func leadsOut() -> ArchiveFailure {
      ArchiveFailure(.linkLeadsOut(String(decoding: target, as: UTF8.self)), header.path)
    }
    guard !target.isEmpty, target.count < 4096, String(validating: target, as: UTF8.self) != nil else {
      throw ArchiveFailure(.badName("its target can't be one"), header.path)
    }
    if target.first == 0x2f { throw leadsOut() }
    // The directory that it is in has so many names, of which the first is the bundle's.
    var level = depth - 1
    for name in target.split(separator: 0x2f) {
      if name.elementsEqual([0x2e]) { continue }
      level += name.elementsEqual([0x2e, 0x2e]) ? -1 : 1
      if level < 1 { throw leadsOut() }
    }
    return target
  }
}
