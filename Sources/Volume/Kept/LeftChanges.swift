// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

// What another worker has done of a change that it has noted, as the disk tells it.

extension FD {
  /// How many of these bytes, from the first on, have come to a file since it was so long.
  func lengthAppended(of bytes: UnsafeRawBufferPointer, since size: Int64) throws(Errno) -> Int {
    let length = Int64(try status().st_size) &- size
    // As much as a few clients can have written at once.
    guard size >= 0, length > 0, length <= 64 << 20 else { return 0 }
    // Who may only append to it can't look; then that it has grown must do.
    guard let reader = try? reopened(O_RDONLY) else { return min(Int(length), bytes.count) }
    let found = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(length), alignment: 16)
    defer { found.deallocate() }
    var count = 0
    while count < found.count {
      let part = UnsafeMutableRawBufferPointer(rebasing: found[count...])
      let read = try reader.fd.read(into: part, at: size + Int64(count))
      if read == 0 { break }
      count += read
    }
    // A worker that is killed may have written a part.
    if found.prefix(min(count, bytes.count)).elementsEqual(bytes.prefix(count)) {
      return min(count, bytes.count)
    }
    // Somebody else was there first, past the daemon.
    guard let start = found.baseAddress, let wanted = bytes.baseAddress else { return 0 }
    return clx_memmem(start, count, wanted, bytes.count) == nil ? 0 : bytes.count
  }
}

// Of the request that a change is for.
extension DirectoryChange {
  /// Whether it has made what has a name now: nothing had it before.
  func hasAdded(_ name: Name) -> Bool {
    guard let left, let object = try? from.fd.child(name) else { return false }
    return left.isDone != 0 || !intents.isNew(object.fd)
  }

  /// Whether it has given an object a name.
  func hasLinked(_ object: ObjectNumber, as name: Name) -> Bool {
    left?.object == object && number(of: name, in: from) == object
  }

  /// Whether it has removed a name.
  func hasRemoved(_ name: Name) -> Bool {
    guard let left else { return false }
    if left.isDone != 0 { return true }
    do throws(Errno) {
      let object = try from.fd.child(name)
      if ObjectNumber(try object.fd.status()) != left.object { return true }
      // Something new may have got the number of what was removed.
      return try object.fd.creationTime().map { $0.nanoseconds > left.before } ?? false
    } catch {
      return error == .ENOENT
    }
  }

  /// Whether it has renamed an object.
  func hasRenamed(_ name: Name, to newName: Name) -> Bool {
    guard let left else { return false }
    return number(of: newName, in: to) == left.object && number(of: name, in: from) != left.object
  }

  /// Whether it has also done what follows from the change.
  var isDone: Bool { left.map { $0.isDone != 0 } ?? false }

  private func number(of name: Name, in directory: Directory) -> ObjectNumber? {
    (try? directory.fd.status(of: name)).map { ObjectNumber($0) }
  }
}
