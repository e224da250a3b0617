// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import LinuxIO
internal import Policy

/// What every system domain has: the standard directories, with their modes, and the store's owner's.
enum SystemSkeleton {
  /// Relative to the top, which is the first.
  private static let directories: [(path: String, mode: UInt32, isOptional: Bool)] =
    DomainTree.directories.compactMap {
      $0.path == "System"
        ? ("", $0.mode, false)
        : $0.path.begins(with: "System/")
          ? (String($0.path.dropFirst("System/".count)), $0.mode, $0.isOptional) : nil
    }

  /// Makes what is missing in a tree that is to be signed; nothing that is there is changed.
  static func complete(_ top: FD) throws(SystemFailure) {
    for directory in directories where !directory.path.isEmpty {
      try attempting("make", directory.path) { () throws(Errno) in
        try top.withParent(of: directory.path) { (parent, name) throws(Errno) in
          do throws(Errno) {
            try parent.makeDirectory(name, mode: directory.mode)
          } catch .EEXIST {
            return
          }
          let made = try parent.openDirectory(name)
          try made.fd.changeMode(directory.mode)
        }
      }
    }
  }

  /// Makes sure that a seal has all of it.
  static func check(_ seal: SystemSeal, _ path: String) throws(SystemFailure) {
    for directory in directories {
      let name = directory.path.isEmpty ? "." : directory.path
      func refuse(_ what: String) -> SystemFailure { .skeleton(path: path, directory: name, what: what) }
      let found = seal.entry(at: Array(directory.path.utf8))
      if found == nil, directory.isOptional { continue }
      guard let entry = found, entry.kind == .directory else {
        throw refuse("is missing or not a directory")
      }
      let mode = String(directory.mode, radix: 8)
      guard entry.mode == directory.mode else {
        throw refuse("has mode \(String(entry.mode, radix: 8)); change it to \(mode) with chmod")
      }
      guard entry.uid == 0, entry.gid == 0 else { throw refuse("must belong to root") }
    }
  }
}
