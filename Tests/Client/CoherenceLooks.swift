// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

// What is looked at, and what it must be.

extension Coherence {
  /// Looks at a place through one view.
  mutating func look(_ view: Int, at path: String, _ item: Item?) throws(Stale) {
    looks += 1
    let whole = roots[view] + path
    var status = Glibc.stat()
    let result = lstat(whole, &status)
    guard let item else {
      if result == 0 || errno != ENOENT {
        throw Stale("view \(view): \(path) is there, or not to be asked for (\(errno))")
      }
      return
    }
    if result != 0 { throw Stale("view \(view): \(path) is not there (\(errno))") }
    try compare(status, item, path: path, "view \(view)")
    if oneIn(3) { try lookInside(view, whole, path, item) }
  }

  private mutating func lookInside(_ view: Int, _ whole: String, _ path: String, _ item: Item) throws(Stale) {
    switch item.kind {
    case .directory:
      let names = try list(whole)
      if names != Set(item.children.keys) {
        throw Stale("view \(view): \(path) lists \(names.sorted()), not \(item.children.keys.sorted())")
      }
    case .symlink:
      var buffer = [CChar](repeating: 0, count: 256)
      let length = readlink(whole, &buffer, 255)
      let target = buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }
      if target != Array(item.target.utf8) { throw Stale("view \(view): \(path) leads elsewhere") }
    case .file:
      let file = clx_open(whole, O_RDONLY, 0)
      guard file >= 0 else { throw Stale("view \(view): \(path) can't be opened (\(errno))") }
      defer { close(file) }
      try compareData(file, item, "view \(view): \(path)")
      try compareAttributes(whole, item, "view \(view): \(path)")
    }
  }

  private func list(_ path: String) throws(Stale) -> Set<String> {
    guard let directory = opendir(path) else { throw Stale("\(path) can't be listed (\(errno))") }
    defer { closedir(directory) }
    var names: Set<String> = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.insert(name) }
    }
    return names
  }

  private func compareAttributes(_ path: String, _ item: Item, _ place: String) throws(Stale) {
    for name in ["user.a", "user.b"] {
      var buffer = [UInt8](repeating: 0, count: 64)
      let length = lgetxattr(path, name, &buffer, buffer.count)
      let value = length < 0 ? nil : String(decoding: buffer.prefix(length), as: UTF8.self)
      if value != item.attributes[name] { throw Stale("\(place) has \(value ?? "no") \(name)") }
    }
  }

  private func compareData(_ file: Int32, _ item: Item, _ place: String) throws(Stale) {
    var buffer = [UInt8](repeating: 0, count: item.data.count + 16)
    let count = pread(file, &buffer, buffer.count, 0)
    if count != item.data.count || !buffer.prefix(max(0, count)).elementsEqual(item.data) {
      let first = zip(buffer, item.data).enumerated().first { $0.element.0 != $0.element.1 }?.offset
      throw Stale(
        "\(place) has \(count) bytes in it, not \(item.data.count); "
          + "other from \(first.map { "\($0)" } ?? "the end")"
      )
    }
  }

  /// What the views tell must be what the model says; and what it can't say, such as times, what the
  /// filesystem below does.
  private func compare(
    _ status: Glibc.stat, _ item: Item, path: String?, _ place: String
  ) throws(Stale) {
    let place = "\(place): \(path ?? "what is open")"
    // As in inode(7); two modules here have the names.
    let kind: mode_t = item.kind == .file ? 0o100000 : item.kind == .directory ? 0o040000 : 0o120000
    if status.st_mode & 0o170000 != kind { throw Stale("\(place) is something else") }
    if item.kind != .symlink, status.st_mode & 0o7777 != item.mode {
      throw Stale(
        "\(place) has mode \(String(status.st_mode & 0o7777, radix: 8)), not \(String(item.mode, radix: 8))")
    }
    if item.kind == .file, status.st_size != off_t(item.data.count) {
      throw Stale("\(place) has size \(status.st_size), not \(item.data.count)")
    }
    if item.kind != .directory, status.st_nlink != nlink_t(item.names) {
      throw Stale("\(place) has \(status.st_nlink) names, not \(item.names)")
    }
    guard let path else { return }
    var real = Glibc.stat()
    guard lstat(truth + path, &real) == 0 else { throw Stale("\(place) is really not there") }
    func time(_ time: timespec) -> Int { time.tv_sec &* 1_000_000_000 &+ time.tv_nsec }
    if status.st_ino != real.st_ino || status.st_nlink != real.st_nlink || status.st_uid != real.st_uid
      || time(status.st_mtim) != time(real.st_mtim) || time(status.st_ctim) != time(real.st_ctim)
    {
      throw Stale(
        "\(place) is \(status.st_ino) \(status.st_nlink) \(time(status.st_mtim)) \(time(status.st_ctim)), "
          + "really \(real.st_ino) \(real.st_nlink) \(time(real.st_mtim)) \(time(real.st_ctim))")
    }
  }

  /// Looks at what is open.
  mutating func look(at handle: Handle) throws(Stale) {
    looks += 1
    let place = "view \(handle.view)"
    var status = Glibc.stat()
    guard fstat(handle.file, &status) == 0 else {
      throw Stale("\(place): what is open can't be looked at (\(errno))")
    }
    if handle.item.kind == .directory {
      if handle.item.names == 0, status.st_nlink != 0 {
        throw Stale("\(place): a removed directory has names")
      }
      let name = someName()
      let found = fstatat(handle.file, name, &status, AT_SYMLINK_NOFOLLOW)
      if (found == 0) != (handle.item.children[name] != nil) {
        throw Stale("\(place): \(name) in an open directory is \(found == 0 ? "" : "not ")there")
      }
      if let child = handle.item.children[name] { try compare(status, child, path: nil, place) }
      return
    }
    try compare(status, handle.item, path: nil, place)
    if oneIn(2) { try compareData(handle.file, handle.item, "\(place): what is open") }
  }

  /// Looks at all there is, through all views.
  mutating func compareAll() throws(Stale) {
    now = "comparing all"
    for view in roots.indices { try compareTree(view, root, "") }
    for handle in handles { try look(at: handle) }
  }

  private mutating func compareTree(_ view: Int, _ directory: Item, _ path: String) throws(Stale) {
    let names = try list(roots[view] + path)
    if names != Set(directory.children.keys) {
      throw Stale("view \(view): \(path) lists \(names.sorted()), not \(directory.children.keys.sorted())")
    }
    for (name, child) in directory.children {
      try look(view, at: path + "/" + name, child)
      if child.kind == .directory { try compareTree(view, child, path + "/" + name) }
    }
  }
}
