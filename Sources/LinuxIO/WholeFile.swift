// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

// Small files as a whole.

extension FD {
  /// Reads from where the descriptor stands to the end, and at most `limit` bytes.
  package func readToEnd(limit: Int) throws(Errno) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16384)
    while bytes.count < limit {
      let wanted = min(chunk.count, limit - bytes.count)
      let count = try retrying { Glibc.read(raw, &chunk, wanted) }
      if count == 0 { break }
      bytes += chunk[..<count]
    }
    return bytes
  }

  /// Writes all of `bytes` at the descriptor's own position.
  package func writeAll(_ bytes: some Sequence<UInt8>) throws(Errno) {
    let all = Array(bytes)
    var done = 0
    while done < all.count {
      done += try retrying {
        all.withUnsafeBytes { Glibc.write(raw, $0.baseAddress.map { $0 + done }, $0.count - done) }
      }
    }
  }

  /// Writes all of `bytes` at a place in the file, whatever the descriptor's own position.
  package func writeAll(_ bytes: [UInt8], at offset: Int64) throws(Errno) {
    var done = 0
    while done < bytes.count {
      let count = try retrying {
        bytes.withUnsafeBytes {
          pwrite(raw, $0.baseAddress.map { $0 + done }, $0.count - done, off_t(offset) + off_t(done))
        }
      }
      guard count > 0 else { throw .EIO }
      done += count
    }
  }

  /// What is in the file from its start, and at most `limit` bytes, whatever the descriptor's own position.
  package func contents(limit: Int) throws(Errno) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: limit)
    let count = try retrying { pread(raw, &bytes, limit, 0) }
    return Array(bytes.prefix(count))
  }

  /// The contents of a child that is a regular file.
  package func contents(of name: String, limit: Int) throws(Errno) -> [UInt8] {
    // O_NONBLOCK: a pipe that someone put in the file's place must not stop us.
    let file = try open(name, O_RDONLY | O_NONBLOCK)
    guard try file.fd.status().isRegular else { throw .EINVAL }
    return try file.fd.readToEnd(limit: limit)
  }

  /// Replaces a child's contents in one step: written beside it, forced to disk, renamed over it.
  ///
  /// Whoever looks, also after a loss of power, finds either all of the old or all of the new.
  package func replaceContents(
    of name: String, with bytes: some Sequence<UInt8>, mode: UInt32
  ) throws(Errno) {
    // Threads that replace the same child would take each other's new one away.
    pthread_mutex_lock(replacing)
    defer { pthread_mutex_unlock(replacing) }
    let beside = ".\(name).new"
    try beside.withName { (beside) throws(Errno) in
      do throws(Errno) {
        try remove(beside, directory: false)
      } catch {
        guard error == .ENOENT else { throw error }
      }
      let file = try open(beside, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
      do throws(Errno) {
        try file.fd.writeAll(bytes)
        try file.fd.synchronize(dataOnly: false)
        try name.withName { (name) throws(Errno) in try rename(beside, to: self, name, flags: 0) }
      } catch {
        try? remove(beside, directory: false)
        throw error
      }
    }
    try synchronize(dataOnly: false)
  }
}

extension FD {
  /// A name in this directory of the object with a number; nil if it has none.
  package func name(ofInode inode: UInt64) throws(Errno) -> [UInt8]? {
    let listing = try reopened(O_RDONLY | O_DIRECTORY)
    var name: [UInt8]?
    try listing.fd.readPortions { (entries) throws(Errno) in
      while name == nil, let entry = entries.next() {
        if entry.inode == inode, entry.name.isComponent { name = Array(entry.name.buffer) }
      }
      return name == nil
    }
    return name
  }

  /// Reads a directory from its start, and shows a portion at a time; until `body` has seen enough.
  private func readPortions(_ body: (inout DirectoryEntries) throws(Errno) -> Bool) throws(Errno) {
    _ = try seek(0, SEEK_SET)
    _ = try readOn(body)
  }

  /// The same from where the descriptor stands; whether the end has been read.
  private func readOn(_ body: (inout DirectoryEntries) throws(Errno) -> Bool) throws(Errno) -> Bool {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 32768, alignment: 8)
    defer { buffer.deallocate() }
    while true {
      let count = try readDirectory(into: buffer)
      if count == 0 { return true }
      var entries = DirectoryEntries(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      if try !body(&entries) { return false }
    }
  }

  /// Some of the next names in a directory with their types, from where the descriptor stands, and whether
  /// these are the last.
  ///
  /// Most directories come as a whole. Of others, however many names they have, few take memory at once.
  package func nextEntries() throws(Errno) -> (entries: [(name: [UInt8], type: UInt8)], isEnd: Bool) {
    var found: [(name: [UInt8], type: UInt8)] = []
    let isEnd = try readOn { (entries) throws(Errno) in
      while let entry = entries.next() {
        if entry.name.isComponent { found.append((Array(entry.name.buffer), entry.type)) }
      }
      return found.count < Self.fewEntries
    }
    return (found, isEnd)
  }

  private static let fewEntries = 256

  /// The names in a directory with their types, some `size` of them at a time, so that few take memory at
  /// once; those of a portion in the order of their inodes, in which a disk has them together.
  ///
  /// Those of a portion may be removed or moved meanwhile. What is new may be shown or not.
  package func inPortions(
    of size: Int, _ body: (_ entries: [(name: [UInt8], type: UInt8)]) throws(Errno) -> Void
  ) throws(Errno) {
    var found: [(name: [UInt8], type: UInt8, inode: UInt64)] = []
    func show() throws(Errno) {
      found = found.inOrder { $0.inode < $1.inode }
      let entries = found.map { (name: $0.name, type: $0.type) }
      found = []
      try body(entries)
    }
    try readPortions { (entries) throws(Errno) in
      while let entry = entries.next() {
        guard entry.name.isComponent else { continue }
        found.append((Array(entry.name.buffer), entry.type, entry.inode))
      }
      if found.count >= size { try show() }
      return true
    }
    if !found.isEmpty { try show() }
  }

  /// The names in a directory as bytes, each with its `DT_*` type, without `.` and `..`; only those that are
  /// wanted, so that others take no memory.
  ///
  /// The descriptor must be open for reading and is read from the start. EOVERFLOW where there are more than
  /// `limit`: another program's filesystem can list names without end.
  package func entries(
    atMost limit: Int = .max, where isWanted: (_ name: Name, _ type: UInt8) -> Bool = { _, _ in true }
  ) throws(Errno) -> [(name: [UInt8], type: UInt8)] {
    var found: [(name: [UInt8], type: UInt8)] = []
    try readPortions { (entries) throws(Errno) in
      while let entry = entries.next() {
        guard entry.name.isComponent, isWanted(entry.name, entry.type) else { continue }
        guard found.count < limit else { throw .EOVERFLOW }
        found.append((Array(entry.name.buffer), entry.type))
      }
      return true
    }
    return found
  }

  /// The first name in a directory that is wanted, in the order that it has them; nil if none is.
  ///
  /// However many there are, they take no memory.
  package func firstEntry(
    where isWanted: (_ name: Name, _ type: UInt8) -> Bool = { _, _ in true }
  ) throws(Errno) -> (name: [UInt8], type: UInt8)? {
    var found: (name: [UInt8], type: UInt8)?
    try readPortions { (entries) throws(Errno) in
      while found == nil, let entry = entries.next() {
        if entry.name.isComponent, isWanted(entry.name, entry.type) {
          found = (Array(entry.name.buffer), entry.type)
        }
      }
      return found == nil
    }
    return found
  }

  /// The names in a directory that are directories, or may be some where a filesystem does not say.
  package func possibleDirectories(atMost limit: Int = .max) throws(Errno) -> [[UInt8]] {
    try entries(atMost: limit) { _, type in type == UInt8(DT_DIR) || type == UInt8(DT_UNKNOWN) }
      .map(\.name)
  }

  /// Opens a child directory for reading its entries; never a link, never another filesystem's root.
  package func openDirectory(_ name: Name) throws(Errno) -> OwnedFD {
    let named = try child(name)
    do throws(Errno) {
      let opened = try named.fd.reopened(O_RDONLY | O_DIRECTORY)
      if RedirectedNames.isOthers(name, in: self) { throw .ENOMEDIUM }
      return opened
    } catch {
      // A link, by whichever name the kernel refuses it.
      guard error == .ELOOP || error == .ENOTDIR, let target = RedirectedNames.target(of: name, in: self)
      else { throw error }
      return try target.root.use { (root) throws(Errno) in
        try root.open(Name.here, O_RDONLY | O_DIRECTORY)
      }
    }
  }
}

extension FD {
  /// Opens by a path that a person gave, links followed.
  ///
  /// Corresponds to `openat(2)` with `O_CLOEXEC`.
  package func openFollowing(_ path: Name, _ flags: Int32) throws(Errno) -> OwnedFD {
    OwnedFD(owning: try retrying { clx_openat(raw, path.bytes, flags | O_CLOEXEC, 0) })
  }
}

extension FD {
  /// What is in a file that a program of ours may read whole; nil where it can't be read.
  package static func text(of path: String, limit: Int) -> String? {
    let bytes = try? path.withName { (name) throws(Errno) in
      let file = try cwd.openFollowing(name, O_RDONLY)
      return try file.fd.readToEnd(limit: limit)
    }
    return bytes.map { String(decoding: $0, as: UTF8.self) }
  }
}

extension [UInt8] {
  /// Lends bytes from a directory as a name.
  package func withName<Result: ~Copyable>(
    _ body: (Name) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let bytes = UnsafeMutablePointer<CChar>.allocate(capacity: count + 1)
    defer { bytes.deallocate() }
    for (index, byte) in enumerated() { bytes[index] = CChar(bitPattern: byte) }
    bytes[count] = 0
    return try body(Name(bytes))
  }
}

nonisolated(unsafe) private let replacing: UnsafeMutablePointer<pthread_mutex_t> = {
  let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  pthread_mutex_init(mutex, nil)
  return mutex
}()
