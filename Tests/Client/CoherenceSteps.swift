// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

// What is done. Whether it may be done is known beforehand, and it must end accordingly.

extension Coherence {
  /// Does one thing through one view, and looks at it, and at something else, through all.
  mutating func step() throws(Stale) {
    let view = pick(roots.count)
    switch pick(100) {
    case 0..<14: try make(view)
    case 14..<20: try makeDirectory(view)
    case 20..<23: try makeSymlink(view)
    case 23..<35: try remove(view)
    case 35..<47: try rename(view)
    case 47..<52: try link(view)
    case 52..<58: try changeMode(view)
    case 58..<63: try truncate(view)
    case 63..<68: try setAttribute(view)
    case 68..<71: try setTimes(view)
    case 71..<77: try open(view)
    case 77..<89: try write()
    case 89..<92: try closeOne()
    case 92..<96: try lockWhole()
    default: try lockRange()
    }
    let other = somePlace()
    try look(pick(roots.count), at: other.path, other.item)
    if !handles.isEmpty { try look(at: handles[pick(handles.count)]) }
  }

  /// Looks at what has just been changed, through all views but the one, and through that one too.
  private mutating func lookEverywhere(at path: String, _ item: Item?) throws(Stale) {
    let first = pick(roots.count)
    for offset in roots.indices { try look((first + offset) % roots.count, at: path, item) }
    guard oneIn(3), let slash = path.lastIndex(of: "/") else { return }
    // The directory it is in; the root is found by its path too.
    let above = String(path[..<slash])
    if let directory = find(above) { try look(pick(roots.count), at: above, directory) }
  }

  private func find(_ path: String) -> Item? {
    var item: Item? = root
    for name in path.split(separator: "/") { item = item?.children[String(name)] }
    return item
  }

  /// Throws unless a call ended as it should.
  private mutating func check(_ what: String, _ result: Int, _ expected: Int32) throws(Stale) {
    let found = result < 0 ? errno : 0
    count(expected == 0 ? what : "\(what) refused")
    if found != expected { throw Stale("\(what) ended with \(found), not \(expected)") }
  }

  private mutating func make(_ view: Int) throws(Stale) {
    let place = somePlace()
    now = "making \(place.path) in \(view)"
    let exclusive = oneIn(2)
    let flags = O_RDWR | O_CREAT | (exclusive ? O_EXCL : O_TRUNC)
    let file = clx_open(roots[view] + place.path, flags | O_NOFOLLOW, 0o644)
    let expected: Int32 =
      switch place.item?.kind {
      case nil: 0
      case _ where exclusive: EEXIST
      case .file: 0
      case .directory: EISDIR
      case .symlink: ELOOP
      }
    try check("create", Int(file), expected)
    guard file >= 0 else { return }
    let item = place.item ?? Item(.file, mode: 0o644)
    if place.item != nil { item.data = [] }
    place.directory.children[place.name] = item
    keep(Handle(file: file, view: view, item: item, canWrite: true))
    try lookEverywhere(at: place.path, item)
  }

  /// Keeps something open, and closes something else for it; or closes it.
  private mutating func keep(_ handle: Handle) {
    if handles.count >= 12 || oneIn(2) {
      close(handle.file)
    } else {
      handles.append(handle)
    }
  }

  private mutating func makeDirectory(_ view: Int) throws(Stale) {
    let place = somePlace(taken: false)
    now = "making directory \(place.path) in \(view)"
    try check("mkdir", Int(mkdir(roots[view] + place.path, 0o755)), place.item == nil ? 0 : EEXIST)
    let item = place.item ?? Item(.directory, mode: 0o755)
    place.directory.children[place.name] = item
    try lookEverywhere(at: place.path, item)
  }

  private mutating func makeSymlink(_ view: Int) throws(Stale) {
    let place = somePlace(taken: false)
    now = "making link \(place.path) in \(view)"
    let target = "target\(pick(1000))"
    try check("symlink", Int(symlink(target, roots[view] + place.path)), place.item == nil ? 0 : EEXIST)
    guard place.item == nil else { return }
    let item = Item(.symlink, mode: 0o777)
    item.target = target
    place.directory.children[place.name] = item
    try lookEverywhere(at: place.path, item)
  }

  private mutating func remove(_ view: Int) throws(Stale) {
    let place = somePlace(taken: true)
    now = "removing \(place.path) in \(view)"
    let path = roots[view] + place.path
    if let item = place.item, item.kind == .directory {
      try check("rmdir", Int(rmdir(path)), item.children.isEmpty ? 0 : ENOTEMPTY)
      if !item.children.isEmpty { return }
    } else {
      try check("unlink", Int(unlink(path)), place.item == nil ? ENOENT : 0)
    }
    place.item?.names -= 1
    place.directory.children[place.name] = nil
    try lookEverywhere(at: place.path, nil)
  }

  /// Removes directories of the root's, with all that is in them, until no more than so many names are left.
  mutating func thin(to size: Int) throws(Stale) {
    for name in root.children.keys.sorted() where root.size > size {
      if let tree = root.children[name], tree.kind == .directory {
        try removeTree(tree, name, from: root, at: "")
      }
    }
  }

  /// Each name through another view.
  private mutating func removeTree(
    _ item: Item, _ name: String, from directory: Item, at above: String
  ) throws(Stale) {
    let path = above + "/" + name
    for below in item.children.keys.sorted() {
      if let child = item.children[below] { try removeTree(child, below, from: item, at: path) }
    }
    let view = pick(roots.count)
    now = "removing \(path) in \(view), with all above it"
    if item.kind == .directory {
      try check("rmdir", Int(rmdir(roots[view] + path)), 0)
    } else {
      try check("unlink", Int(unlink(roots[view] + path)), 0)
    }
    item.names -= 1
    directory.children[name] = nil
    try lookEverywhere(at: path, nil)
  }

  private mutating func rename(_ view: Int) throws(Stale) {
    let from = somePlace(taken: true)
    let to = somePlace()
    let exchange = oneIn(4)
    now = "renaming \(from.path) to \(to.path) in \(view)\(exchange ? ", exchanging" : "")"
    let flags = exchange ? UInt32(CLX_RENAME_EXCHANGE) : 0
    let result = clx_renameat2(
      AT_FDCWD, roots[view] + from.path, AT_FDCWD, roots[view] + to.path, flags)
    guard let moved = from.item, !exchange || to.item != nil else {
      return try check("rename", Int(result), ENOENT)
    }
    // What the kernel finds wrong, it finds in an order of its own.
    let isCircle = moved.kind == .directory && moved.contains(to.directory)
    let isCircleBack = to.item?.kind == .directory && to.item?.contains(from.directory) == true
    let isSame = to.item === moved
    if isCircle || isCircleBack, !isSame {
      count("rename refused")
      if result == 0 { throw Stale("a directory went into itself") }
      return
    }
    if !exchange, let replaced = to.item, !isSame {
      if moved.kind == .directory, replaced.kind != .directory {
        return try check("rename", Int(result), ENOTDIR)
      }
      if moved.kind != .directory, replaced.kind == .directory {
        return try check("rename", Int(result), EISDIR)
      }
      if !replaced.children.isEmpty { return try check("rename", Int(result), ENOTEMPTY) }
      replaced.names -= 1
    }
    try check("rename", Int(result), 0)
    // Two names of one object: nothing happens.
    if !isSame {
      from.directory.children[from.name] = exchange ? to.item : nil
      to.directory.children[to.name] = moved
    }
    // The paths may lead elsewhere now.
    try lookEverywhere(at: from.path, find(from.path))
    try lookEverywhere(at: to.path, find(to.path))
  }

  private mutating func link(_ view: Int) throws(Stale) {
    let from = somePlace(taken: true)
    let to = somePlace(taken: false)
    now = "linking \(from.path) to \(to.path) in \(view)"
    guard let item = from.item, item.kind == .file else { return }
    let result = Glibc.link(roots[view] + from.path, roots[view] + to.path)
    try check("link", Int(result), to.item == nil ? 0 : EEXIST)
    guard to.item == nil else { return }
    item.names += 1
    to.directory.children[to.name] = item
    try lookEverywhere(at: to.path, item)
    try lookEverywhere(at: from.path, item)
  }

  private mutating func changeMode(_ view: Int) throws(Stale) {
    let place = somePlace(taken: true)
    guard let item = place.item, item.kind != .symlink else { return }
    let modes: [mode_t] =
      item.kind == .directory ? [0o700, 0o755, 0o777, 0o711] : [0o600, 0o644, 0o755, 0o400]
    let mode = modes[pick(modes.count)]
    now = "changing the mode of \(place.path) in \(view)"
    try check("chmod", Int(chmod(roots[view] + place.path, mode)), 0)
    item.mode = mode
    try lookEverywhere(at: place.path, item)
  }

  private mutating func truncate(_ view: Int) throws(Stale) {
    let size = pick(3) * pick(3000)
    func resize(_ item: Item) {
      if item.data.count > size {
        item.data.removeLast(item.data.count - size)
      } else {
        item.data += [UInt8](repeating: 0, count: size - item.data.count)
      }
    }
    if oneIn(2), let handle = handles.filter({ $0.canWrite }).randomElement(using: &random) {
      now = "truncating what is open in \(handle.view)"
      try check("ftruncate", Int(ftruncate(handle.file, off_t(size))), 0)
      resize(handle.item)
      return try lookAtHandles(of: handle.item)
    }
    let place = somePlace(taken: true)
    guard let item = place.item, item.kind == .file else { return }
    now = "truncating \(place.path) in \(view)"
    try check("truncate", Int(Glibc.truncate(roots[view] + place.path, off_t(size))), 0)
    resize(item)
    try lookEverywhere(at: place.path, item)
    try lookAtHandles(of: item)
  }

  private mutating func setAttribute(_ view: Int) throws(Stale) {
    let place = somePlace(taken: true)
    guard let item = place.item, item.kind == .file else { return }
    let name = oneIn(2) ? "user.a" : "user.b"
    let path = roots[view] + place.path
    now = "setting \(name) of \(place.path) in \(view)"
    if oneIn(3) {
      try check("removexattr", Int(removexattr(path, name)), item.attributes[name] == nil ? ENODATA : 0)
      item.attributes[name] = nil
    } else {
      let value = "value\(pick(1000))"
      try check("setxattr", Int(setxattr(path, name, value, value.utf8.count, 0)), 0)
      item.attributes[name] = value
    }
    try lookEverywhere(at: place.path, item)
  }

  private mutating func setTimes(_ view: Int) throws(Stale) {
    let place = somePlace(taken: true)
    guard let item = place.item else { return }
    now = "setting the times of \(place.path) in \(view)"
    let time = timespec(tv_sec: 1_000_000_000 + pick(1_000_000), tv_nsec: pick(1_000_000_000))
    let result = utimensat(AT_FDCWD, roots[view] + place.path, [time, time], AT_SYMLINK_NOFOLLOW)
    try check("utimensat", Int(result), 0)
    try lookEverywhere(at: place.path, item)
  }

  // MARK: What is open

  private mutating func open(_ view: Int) throws(Stale) {
    // Often what is open already: only there can locks be in each other's way.
    let again = handles.isEmpty || oneIn(2) ? nil : handles[pick(handles.count)].item
    let place = somePlace(taken: true)
    let path = again.flatMap { self.path(of: $0, in: root, "") } ?? place.path
    guard let item = find(path), item.kind != .symlink else { return }
    now = "opening \(path) in \(view)"
    let canWrite = item.kind == .file && !oneIn(3)
    let flags = item.kind == .directory ? O_RDONLY | O_DIRECTORY : canWrite ? O_RDWR : O_RDONLY
    let file = clx_open(roots[view] + path, flags, 0)
    try check("open", Int(file), 0)
    keep(Handle(file: file, view: view, item: item, canWrite: canWrite))
  }

  private mutating func write() throws(Stale) {
    guard let handle = handles.filter({ $0.canWrite }).randomElement(using: &random) else { return }
    let item = handle.item
    let offset = pick(2) * pick(5000)
    let bytes = (0..<(1 + pick(200))).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    now = "writing \(bytes.count) bytes at \(offset) in \(handle.view)"
    let end = offset + bytes.count
    if oneIn(4), end <= item.data.count, canMap {
      try store(bytes, at: offset, handle)
    } else {
      try check("write", pwrite(handle.file, bytes, bytes.count, off_t(offset)), 0)
      if end > item.data.count { item.data += [UInt8](repeating: 0, count: end - item.data.count) }
    }
    item.data.replaceSubrange(offset..<end, with: bytes)
    try lookAtHandles(of: item)
  }

  /// Writes through a memory map, which no call tells of.
  private mutating func store(_ bytes: [UInt8], at offset: Int, _ handle: Handle) throws(Stale) {
    let size = handle.item.data.count
    let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, handle.file, 0)
    guard let memory, memory != MAP_FAILED else { throw Stale("mmap: \(errno)") }
    count("store")
    (memory + offset).copyMemory(from: bytes, byteCount: bytes.count)
    munmap(memory, size)
  }

  /// Looks at an item through all that has it open, and by its names.
  private mutating func lookAtHandles(of item: Item) throws(Stale) {
    for handle in handles where handle.item === item { try look(at: handle) }
    if let path = path(of: item, in: root, "") { try lookEverywhere(at: path, item) }
  }

  private func path(of item: Item, in directory: Item, _ above: String) -> String? {
    for (name, child) in directory.children.sorted(by: { $0.key < $1.key }) {
      if child === item { return above + "/" + name }
      if child.kind == .directory, let found = path(of: item, in: child, above + "/" + name) { return found }
    }
    return nil
  }

  private mutating func closeOne() throws(Stale) {
    guard !handles.isEmpty else { return }
    var handle = handles.remove(at: pick(handles.count))
    // A release comes after the close has returned, so what is locked is released before.
    if handle.flock != LOCK_UN { try check("flock", Int(flock(handle.file, LOCK_UN)), 0) }
    if handle.ranges.contains(where: { $0 != F_UNLCK }) { try lock(&handle, F_UNLCK, 0..<8) }
    now = "closing in \(handle.view)"
    try check("close", Int(close(handle.file)), 0)
  }

  private mutating func lockWhole() throws(Stale) {
    let files = handles.indices.filter { handles[$0].item.kind == .file }
    guard !files.isEmpty else { return }
    let index = files[pick(files.count)]
    let handle = handles[index]
    let kind = [LOCK_SH, LOCK_EX, LOCK_UN][pick(3)]
    now = "flock \(kind) in \(handle.view)"
    let others = handles.indices.filter { $0 != index && handles[$0].item === handle.item }
    let isFree = others.allSatisfy { other in
      kind == LOCK_UN || handles[other].flock == LOCK_UN
        || (kind == LOCK_SH && handles[other].flock == LOCK_SH)
    }
    try check("flock", Int(flock(handle.file, kind | LOCK_NB)), isFree ? 0 : EAGAIN)
    // Who changes one gives the old one back first.
    handles[index].flock = isFree ? kind : LOCK_UN
  }

  private mutating func lockRange() throws(Stale) {
    let files = handles.indices.filter { handles[$0].canWrite }
    guard !files.isEmpty else { return }
    let index = files[pick(files.count)]
    let start = pick(8)
    let range = start..<(start + 1 + pick(8 - start))
    var handle = handles[index]
    let kind = [F_RDLCK, F_WRLCK, F_UNLCK][pick(3)]
    now = "locking \(range) as \(kind) in \(handle.view)"
    try lock(&handle, Int32(kind), range)
    handles[index] = handle
  }

  private mutating func lock(_ handle: inout Handle, _ kind: Int32, _ range: Range<Int>) throws(Stale) {
    var lock = Glibc.flock()
    lock.l_type = Int16(kind)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = off_t(range.lowerBound)
    lock.l_len = off_t(range.count)
    let file = handle.file
    let item = handle.item
    let isFree = handles.allSatisfy { other in
      other.file == file || other.item !== item
        || range.allSatisfy { byte in
          kind == F_UNLCK || other.ranges[byte] == F_UNLCK
            || (kind == F_RDLCK && other.ranges[byte] == F_RDLCK)
        }
    }
    let result = clx_fcntl_lock(handle.file, Int32(CLX_F_OFD_SETLK), &lock)
    try check("lock", Int(result), isFree ? 0 : EAGAIN)
    if isFree { for byte in range { handle.ranges[byte] = kind } }
  }
}

extension SplitMix: RandomNumberGenerator {}
