// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Volume

/// Something that was taken for something else.
struct Mistaken: Error { let what: String }

/// What a worker leaves that has served for a while.
final class Left {
  private struct File {
    let number: Int
    let name: String
    let node: NodeID
    let inode: UInt64
    let handle: HandleID
  }
  private static let count = 24
  private static let way = ["Users", "Users/Shared"]
  private static let data: [UInt8] = Array("what an app was started as".utf8)
  private let caller = Caller(uid: ProcessID.user, gid: ProcessID.group, pid: 0)
  private let tree: OwnedFD
  private let kept: KeptState
  private let view: View
  private var files: [File] = []
  private var places: [(kind: KeptState.Kind, view: UInt32, number: Int32)] = []
  private let place: NodeID
  private var directory: (node: NodeID, inode: UInt64, handle: HandleID)
  private var listing: OwnedFD
  private let held: [SharedMemory]

  init(in directory: String) throws {
    tree = try directory.withName { (name) throws(Errno) in
      try FD.cwd.open(name, O_RDONLY | O_DIRECTORY)
    }
    for path in Self.way { try FD.cwd.makeDirectory("\(directory)/\(path)", mode: 0o755) }
    kept = try KeptState(layout: 1)
    kept.keep(FD(0), as: .keepers)
    view = try View(Self.volume(tree.fd, kept))
    let (view, caller) = (view, caller)
    let place = try Self.place(in: view, by: caller)
    self.place = place
    let made = try "inner".withName { (name) throws(Errno) in
      try view.makeDirectory(name, in: place, mode: 0o755, by: caller.sending(900))
    }
    let inner = made.node ?? .root
    let opened = try view.openDirectory(inner, by: caller.sending(901))
    self.directory = (inner, UInt64(made.attributes.status.st_ino), opened.handle)
    listing = try FD.cwd.open("/dev/fuse", O_RDWR)
    held = [try kept.keep(Self.data, as: .appLaunch, view: 7)]
    for number in 0..<Self.count { try make(number) }
    try keepDescriptors()
    kept.serves()
  }

  /// The directory in which all is, as the kernel finds it.
  private static func place(in view: View, by caller: Caller) throws(Errno) -> NodeID {
    var node = NodeID.root
    for name in ["Users", "Shared"] {
      let found = try name.withName { (name) throws(Errno) in try view.lookup(name, in: node, by: caller) }
      guard let next = found.node else { throw .ENOENT }
      node = next
    }
    return node
  }

  private static func volume(_ tree: FD, _ kept: KeptState) -> Volume {
    var settings = VolumeSettings()
    settings.isSystem = ProcessID.user == 0
    settings.fileHandles = ProcessID.user == 0
    return Volume(tree: tree, settings: settings, kept: kept)
  }

  private func make(_ number: Int) throws {
    let name = "file \(number)"
    let request = caller.sending(UInt64(1000 + number))
    let (entry, opened) = try name.withName { (name) throws(Errno) in
      try view.create(
        name, in: parent(number), flags: O_RDWR | O_CREAT, mode: 0o644, by: request)
    }
    guard let node = entry.node else { throw Errno.EIO }
    files.append(
      File(
        number: number, name: name, node: node, inode: UInt64(entry.attributes.status.st_ino),
        handle: opened.handle))
    try write(Self.text(number), files[number], view, at: 0)
    if number % 3 == 0 {
      let range = LockRange(kind: .write, first: Int64(number), last: 100, pid: 1)
      _ = try view.setLock(
        node, handle: opened.handle, owner: LockOwner(UInt64(number)), to: range, parking: nil, by: caller)
    }
    // What has no name any more is held by its descriptor alone.
    if number % 5 == 4 {
      try name.withName { (name) throws(Errno) in
        try view.remove(name, in: parent(number), directory: false, by: caller.sending(UInt64(2000 + number)))
      }
    }
  }

  private func parent(_ number: Int) -> NodeID { number % 2 == 0 ? place : directory.node }
  private static func text(_ number: Int) -> [UInt8] { Array("text of \(number)".utf8) }

  private func keepDescriptors() throws {
    let socket = try check(Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
    let process = try ProcessID.open(ProcessID.own).release()
    kept.keep(listing.fd, as: .connection, view: 1)
    kept.keep(process, as: .appProcess, view: 7)
    kept.keep(FD(socket), as: .listener)
    places = [
      (.connection, 1, listing.fd.raw), (.appProcess, 7, process.raw), (.listener, 0, socket),
      (.keepers, 0, 0),
    ]
  }

  private func write(_ text: [UInt8], _ file: File, _ view: View, at offset: Int64) throws(Errno) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: text.count, alignment: 1)
    defer { buffer.deallocate() }
    buffer.copyBytes(from: text)
    _ = try view.write(
      file.node, handle: file.handle, at: offset, from: UnsafeRawBufferPointer(buffer), [], by: caller)
  }

  // MARK: The next worker

  /// Takes it over, uses all of it, and ends; with `isWhole` all of it must be there.
  func takeOver(isWhole: Bool) throws {
    let next = KeptState(inheriting: kept)
    guard next.hasPredecessor || !isWhole else { throw Mistaken(what: "nobody has served") }
    for place in places {
      let found = next.descriptor(place.kind, view: place.view)?.raw
      guard found == place.number || found == nil && !isWhole else {
        throw Mistaken(what: "descriptor \(place.kind) is \(found ?? -1)")
      }
    }
    let data = next.data(.appLaunch, view: 7)?.bytes
    guard data == Self.data || data == nil && !isWhole else { throw Mistaken(what: "other data") }
    let view = try View(Self.volume(tree.fd, next), takingOver: 1)
    _ = view.firstMessage
    for file in files { try use(file, view, isWhole) }
    try useDirectory(view, isWhole)
    for file in files where file.number % 5 != 4 { try find(file, view) }
    // Whoever has written through a file that was open has written to that one.
    for file in files where file.number % 5 != 4 { try look(file) }
    try change(view)
    for file in files {
      view.release(file.node, handle: file.handle, flockOwner: nil)
      view.forget(file.node, count: 1)
    }
    view.releaseDirectory(directory.node, handle: directory.handle)
    view.volume.tookOver()
    view.ended()
  }

  private func use(_ file: File, _ view: View, _ isWhole: Bool) throws {
    do throws(Errno) {
      let found = try view.attributes(of: file.node, handle: nil, by: caller).status.st_ino
      if UInt64(found) != file.inode { throw .EXDEV }
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 1)
      defer { buffer.deallocate() }
      let count = try view.read(file.node, handle: file.handle, at: 0, into: buffer)
      if !buffer[..<min(count, Self.text(file.number).count)].elementsEqual(Self.text(file.number)) {
        throw .EXDEV
      }
      try write(Array("mark \(file.number) ".utf8), file, view, at: 200)
    } catch {
      // Refused is not mistaken.
      if isWhole || error == .EXDEV { throw Mistaken(what: "\(file.name): \(error)") }
    }
    let wanted = LockRange(kind: .write, first: 0, last: 10, pid: 0)
    _ = try? view.conflictingLock(file.node, handle: file.handle, owner: LockOwner(99), wanted: wanted)
  }

  private func useDirectory(_ view: View, _ isWhole: Bool) throws {
    do throws(Errno) {
      let found = try view.attributes(of: directory.node, handle: nil, by: caller).status.st_ino
      if UInt64(found) != directory.inode { throw .EXDEV }
      try view.synchronizeDirectory(directory.node, handle: directory.handle, dataOnly: false)
    } catch {
      if isWhole || error == .EXDEV { throw Mistaken(what: "the directory: \(error)") }
    }
  }

  /// What was lost is found again.
  private func find(_ file: File, _ view: View) throws {
    let place = try Self.place(in: view, by: caller)
    let inner = try "inner".withName { (name) throws(Errno) in
      try view.lookup(name, in: place, by: caller)
    }
    guard let parent = file.number % 2 == 0 ? place : inner.node else { throw Mistaken(what: "no directory") }
    let found = try file.name.withName { (name) throws(Errno) in
      try view.lookup(name, in: parent, by: caller)
    }
    guard UInt64(found.attributes.status.st_ino) == file.inode else { throw Mistaken(what: file.name) }
  }

  private func look(_ file: File) throws {
    let path = "Users/Shared/" + (file.number % 2 == 0 ? file.name : "inner/" + file.name)
    let opened = try path.withName { (name) throws(Errno) in try tree.fd.openWithoutLinks(name, O_RDONLY) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 300, alignment: 1)
    defer { buffer.deallocate() }
    let count = try opened.fd.read(into: buffer, at: 0)
    guard count > 200 else { return }
    let mark = Array("mark \(file.number) ".utf8)
    guard count == 200 + mark.count, buffer[200..<count].elementsEqual(mark) else {
      throw Mistaken(what: "something else was written to \(file.name)")
    }
  }

  /// Requests that are sent again: once they were answered or not, something is there once.
  private func change(_ view: View) throws {
    let place = try Self.place(in: view, by: caller)
    let again = caller.sending(900 | 1 << 63)
    _ = try? "inner".withName { (name) throws(Errno) in
      try view.makeDirectory(name, in: place, mode: 0o755, by: again)
    }
    _ = try? "new".withName { (name) throws(Errno) in
      try view.makeDirectory(name, in: place, mode: 0o755, by: caller.sending(5000))
    }
    try? "new".withName { (name) throws(Errno) in
      try view.remove(name, in: place, directory: true, by: caller.sending(5001))
    }
    try? "file 0".withName { (name) throws(Errno) in
      try view.rename(name, in: place, to: name, in: place, flags: 0, by: caller.sending(5002))
    }
  }
}

extension Caller {
  fileprivate func sending(_ request: UInt64) -> Caller {
    Caller(uid: uid, gid: gid, pid: pid, request: RequestID(request))
  }
}
