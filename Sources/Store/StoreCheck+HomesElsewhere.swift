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
    var unseen: [VolumeRecord] = []
    for home in volumes where home.place == .users && home.options.isDisjoint(with: [.unfinished, .doomed]) {
      do throws(Errno) { try check(home, in: home.openSource()) } catch { unseen.append(home) }
    }
    foundUnseen(unseen)
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
    let named = homes.prefix(Self.maxUnseenNamed).map { home in
      let (name, source) = (
        String(decoding: home.name, as: UTF8.self).sanitized,
        String(decoding: home.path, as: UTF8.self).sanitized
      )
      return "\(name) (\(source))"
    }
    let more = homes.count > named.count ? [" and \(homes.count - named.count) more"] : []
    found(
      .warning, "\(store.path)/tree/Users",
      "has homes elsewhere that can't be reached from here, so nothing in them was checked: "
        + named.joined(separator: ", ") + more.joined(),
      "where such a home can be reached as a directory, 'getfacl -R -s -p DIRECTORY' lists what has a POSIX "
        + "ACL in it")
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
