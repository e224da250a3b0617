// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// The files of a user's in which something that apps are told of may be, as they were when they were listed.
///
/// No link is followed, no other filesystem entered, and nothing opened but directories. What is there may be
/// anybody's making, so there are limits for everything.
struct ItemFiles {
  /// Below the home, name by name.
  private(set) var paths: [[[UInt8]]] = []

  struct Limits {
    var files = 100_000
    /// How many names are looked at.
    var names = 1_000_000
    var depth = 16
  }

  private let kind: PrivateItems
  private let limits: Limits
  /// Whether all of the Music folder is the media library.
  private let allMusic: Bool
  private var names = 0

  /// The home is open for reading.
  init(
    _ kind: PrivateItems, in home: FD, allMusic: Bool = false, _ limits: Limits = Limits()
  ) throws(Errno) {
    self.kind = kind
    self.allMusic = allMusic
    self.limits = limits
    let directory: OwnedFD
    do throws(Errno) {
      directory = try Self.directory(at: kind.directory.map { Array($0.utf8) }, in: home)
    } catch .ENOENT {
      // There are none yet.
      return
    }
    let above = kind.directory.map { Array($0.utf8) }
    try list(directory.fd, above, isPlace: true)
  }

  /// Opens a directory below another one for reading.
  static func directory(at names: some Sequence<[UInt8]>, in home: FD) throws(Errno) -> OwnedFD {
    var directory = try home.openDirectoryToExamine(Name.here)
    for name in names {
      directory = try name.withName { (name) throws(Errno) in
        guard name.isComponent else { throw .EINVAL }
        return try directory.fd.openDirectoryToExamine(name)
      }
    }
    return directory
  }

  private mutating func list(_ directory: FD, _ above: [[UInt8]], isPlace: Bool) throws(Errno) {
    let (kind, allMusic) = (kind, allMusic)
    let names = try directory.entries { name, type in
      guard self.names < limits.names else { return false }
      self.names += 1
      let bytes = Array(name.buffer)
      if isPlace, !kind.service.gives(bytes, allMusic: allMusic) { return false }
      return type == UInt8(DT_DIR) || kind.mayBe(inFileNamed: bytes)
    }
    for (name, type) in names.inOrder(by: { $0.name.lexicographicallyPrecedes($1.name) }) {
      guard paths.count < limits.files else { return }
      let path = above + [name]
      if type == UInt8(DT_REG) {
        paths.append(path)
      } else if type == UInt8(DT_DIR), above.count < kind.directory.count + limits.depth {
        // It may have gone, and what can't be read is left out.
        guard let inner = try? directory.openDirectoryToExamine(name) else { continue }
        try? list(inner.fd, path, isPlace: false)
      }
    }
  }

  /// Opens one of the files for reading, unless it is no regular file by now.
  static func open(_ path: [[UInt8]], in home: FD) throws(Errno) -> OwnedFD {
    guard let name = path.last else { throw .EINVAL }
    let directory = try directory(at: path.dropLast(), in: home)
    // Named first: pipes and devices are not even opened.
    let named = try directory.fd.child(name)
    guard try named.fd.status().isRegular else { throw .EINVAL }
    let file = try directory.fd.openToExamine(name)
    guard try file.fd.status().isRegular else { throw .EINVAL }
    return file
  }
}
