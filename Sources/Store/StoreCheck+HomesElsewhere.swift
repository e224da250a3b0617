// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

// Homes that lie elsewhere are no part of the store's tree. Those in directories of this machine are checked
// where they are. Only the daemon reaches disks and servers, so homes there are not checked, and the check
// says so.

extension StoreCheck {
  mutating func checkHomesElsewhere() {
    let volumes = (try? Registry.existing(of: store)?.volumes()) ?? []
    let homes = volumes.filter { home in
      home.place == .users && home.options.isDisjoint(with: [.unfinished, .doomed])
    }
    let notes = VolumeNotes(of: store)
    var (unseen, unconfirmed): ([VolumeRecord], [VolumeRecord]) = ([], [])
    for home in homes {
      guard notes.has(home) else {
        unconfirmed.append(home)
        continue
      }
      do throws(Errno) { try check(home, in: home.openSource()) } catch { unseen.append(home) }
    }
    foundUnseen(unseen)
    foundUnconfirmed(unconfirmed)
  }

  private mutating func foundUnconfirmed(_ homes: [VolumeRecord]) {
    guard !homes.isEmpty else { return }
    found(
      .warning, "\(store.path)/tree/Users",
      "has homes elsewhere that were not added on this machine, so they are away and nothing in them was "
        + "checked: " + named(homes),
      "once the store is mounted, 'insula volume confirm Users/NAME' shows where one is and lets it be there")
  }

  private mutating func check(_ home: VolumeRecord, in source: borrowing OwnedFD) throws(Errno) {
    let root = try source.fd.openDirectory(home.name)
    let name = String(decoding: home.name, as: UTF8.self)
    let place = CheckedPlace(
      path: "\(String(decoding: home.path, as: UTF8.self))/\(name)", treePath: home.treePath)
    checkSecurity(of: root.fd, in: place) { [] }
    try DeepWalk.through(root.fd) { (entry) throws(Errno) in
      checkSecurity(of: entry, in: place)
      return entry.type == UInt8(DT_DIR)
    }
    countBackingACLs(in: place)
  }

  private mutating func foundUnseen(_ homes: [VolumeRecord]) {
    guard !homes.isEmpty else { return }
    found(
      .warning, "\(store.path)/tree/Users",
      "has homes elsewhere that can't be reached from here, so nothing in them was checked: "
        + named(homes),
      "where such a home can be reached as a directory, 'getfacl -R -s -p DIRECTORY' lists what has a POSIX "
        + "ACL in it")
  }

  private func named(_ homes: [VolumeRecord]) -> String {
    let named = homes.prefix(Self.maxUnseenNamed).map { home in
      let (name, source) = (
        String(decoding: home.name, as: UTF8.self).sanitized,
        String(decoding: home.path, as: UTF8.self).sanitized
      )
      return "\(name) (\(source))"
    }
    let more = homes.count > named.count ? " and \(homes.count - named.count) more" : ""
    return named.joined(separator: ", ") + more
  }

  /// A network can have thousands of homes.
  private static let maxUnseenNamed = 10
}

extension VolumeRecord {
  /// Opens the directory of this machine that it is about; no link leads to it.
  ///
  /// ENOMEDIUM for a disk or a server, ESTALE if another directory is there by now.
  fileprivate func openSource() throws(Errno) -> OwnedFD {
    guard kind == .directory, !isEncrypted else { throw .ENOMEDIUM }
    let opened = try path.withName { (path) throws(Errno) in
      try FD.cwd.openWithoutLinks(path, O_DIRECTORY | pathOnly)
    }
    guard ObjectIdentity(try opened.fd.status(), of: opened.fd) == identity else { throw .ESTALE }
    return opened
  }
}
