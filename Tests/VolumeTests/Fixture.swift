// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization
internal import TestSupport
@testable internal import Volume

/// The kernel's end, which notes what it is told.
final class RecordingConnection: Connection {
  enum Event: Equatable {
    case attributes(NodeID)
    case entries
    case contents(NodeID)
    case drop([NodeID])
    case register(Int32)
    case unregister(Int32)
  }
  let passthrough: Bool
  var sharesDirectMaps: Bool { false }
  private let canWithdraw: Bool
  private let noted = Mutex<[Event]>([])
  /// Called with what it is told, before the call returns.
  let whenTold = Mutex<(@Sendable (Event) -> Void)?>(nil)
  private let last = Atomic<Int32>(0)
  /// Whether the kernel drops names that nobody uses.
  let canDrop = Atomic<Bool>(false)
  let used = Mutex<Set<NodeID>>([])

  init(passthrough: Bool, canWithdraw: Bool) {
    self.passthrough = passthrough
    self.canWithdraw = canWithdraw
  }

  /// What it has been told since the last time it was asked.
  func take() -> [Event] {
    noted.withLock { noted in
      defer { noted = [] }
      return noted
    }
  }
  private func note(_ event: Event) {
    noted.withLock { $0.append(event) }
    whenTold.withLock { $0 }?(event)
  }

  func attributesChanged(_ node: NodeID) { note(.attributes(node)) }
  func contentsChanged(_ node: NodeID) { note(.contents(node)) }
  func entriesChanged() -> Bool {
    note(.entries)
    return canWithdraw
  }
  func dropUnused(_ nodes: [NodeID]) -> Bool {
    guard canDrop.load(ordering: .relaxed) else { return false }
    note(.drop(nodes))
    return true
  }
  /// Those that are in use are not dropped.
  func knows(_ node: NodeID) -> Bool { used.withLock { $0.contains(node) } }
  func has(_ node: NodeID) -> Bool { knows(node) }
  var device: UInt32? { nil }
  func registerBacking(_ file: FD) throws(Errno) -> Int32 {
    let id = last.wrappingAdd(1, ordering: .relaxed).newValue
    note(.register(id))
    return id
  }
  func unregisterBacking(_ id: Int32) { note(.unregister(id)) }
}

/// A tree with the four domains in a temporary directory, and one view of it.
final class Tree: Sendable {
  static let admins: UInt32 = 54400

  let temporary: TemporaryDirectory
  private let root: OwnedFD
  /// Beside the tree, and empty whenever no request is served.
  let staging: TemporaryDirectory
  private let stagingDirectory: OwnedFD
  let volume: Volume
  let view: View
  let connection: RecordingConnection

  init(
    passthrough: Bool = false, canWithdraw: Bool = true, hasStaging: Bool = true,
    budget: Budget = Budget(Budget.Limits(descriptors: 1 << 14)), refusals: (any RefusalListener)? = nil,
    _ change: (inout VolumeSettings) -> Void = { _ in }
  ) throws {
    // As in the daemon: the modes that are asked for are those that the kernel has applied the caller's umask
    // to.
    umask(0)
    temporary = try TemporaryDirectory()
    for directory in DomainTree.directories {
      try temporary.makeDirectory(directory.path, mode: directory.mode)
      let gid = directory.group == .admin ? Self.admins : 0
      // The owner may take set-id bits away, never the mode that counts here.
      guard !Program.isRoot || chown(temporary.appending(directory.path), 0, gid) == 0 else {
        throw Errno.last
      }
    }
    root = try temporary.open()
    var settings = VolumeSettings()
    settings.isSystem = Program.isRoot
    settings.fileHandles = Program.isRoot
    change(&settings)
    // A test's thread has no more rights than whoever it makes something for.
    staging = try TemporaryDirectory(mode: 0o777)
    stagingDirectory = try staging.open()
    volume = Volume(
      tree: root.fd, staging: hasStaging ? stagingDirectory.fd : nil, settings: settings, budget: budget,
      refusals: refusals)
    view = try View(volume)
    connection = RecordingConnection(passthrough: passthrough, canWithdraw: canWithdraw)
    view.started(connection)
    _ = connection.take()
  }

  deinit { view.ended() }

  func path(_ name: String) -> String { temporary.appending(name) }
  var shared: String { path("Users/Shared") }
}

extension Caller {
  static let root = Caller(uid: 0, gid: 0, pid: 0)
  static let alice = Caller(uid: 54321, gid: 54321, pid: 0)
  static let bob = Caller(uid: 54322, gid: 54322, pid: 0)
  static let admin = Caller(uid: 54323, gid: Tree.admins, pid: 0)
  /// Whoever runs the tests.
  static var me: Caller { Caller(uid: ProcessID.user, gid: ProcessID.group, pid: 0) }
}

extension View {
  /// Walks a path as the kernel would, which remembers what lies on the way too.
  @discardableResult
  func find(_ path: String, by caller: Caller = .root) throws(Errno) -> Entry {
    var node = NodeID.root
    var entry: Entry?
    for part in path.split(separator: "/") {
      let parent = node
      let found = try String(part).withName { (name) throws(Errno) in try lookup(name, in: parent, by: caller)
      }
      guard let next = found.node else { throw .ENOENT }
      node = next
      entry = found
    }
    guard let entry else { throw .EINVAL }
    return entry
  }

  /// The node at a path.
  func node(_ path: String, by caller: Caller = .root) throws(Errno) -> NodeID {
    if path.isEmpty { return .root }
    guard let node = try find(path, by: caller).node else { throw .ENOENT }
    return node
  }

  /// Runs `body` with the parent's node and the last name of a path.
  func at<Result>(
    _ path: String, by caller: Caller = .root, _ body: (Name, NodeID) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let parts = path.split(separator: "/").map(String.init)
    let parent = try node(parts.dropLast().joined(separator: "/"), by: .root)
    return try (parts.last ?? "").withName { (name) throws(Errno) in try body(name, parent) }
  }

  @discardableResult
  func make(_ path: String, mode: mode_t = 0o644, by caller: Caller = .root) throws(Errno) -> NodeID {
    let (entry, opened) = try at(path) { (name, parent) throws(Errno) in
      try create(name, in: parent, flags: O_RDWR | O_CREAT, mode: mode, by: caller)
    }
    guard let node = entry.node else { throw .EIO }
    release(node, handle: opened.handle, flockOwner: nil)
    return node
  }

  @discardableResult
  func makeDirectory(_ path: String, mode: mode_t = 0o755, by caller: Caller = .root) throws(Errno) -> NodeID
  {
    let entry = try at(path) { (name, parent) throws(Errno) in
      try makeDirectory(name, in: parent, mode: mode, by: caller)
    }
    guard let node = entry.node else { throw .EIO }
    return node
  }

  func remove(_ path: String, directory: Bool = false, by caller: Caller = .root) throws(Errno) {
    try at(path) { (name, parent) throws(Errno) in
      try remove(name, in: parent, directory: directory, by: caller)
    }
  }

  func rename(_ path: String, to newPath: String, flags: UInt32 = 0, by caller: Caller = .root) throws(Errno)
  {
    try at(path) { (name, parent) throws(Errno) in
      try at(newPath) { (newName, newParent) throws(Errno) in
        try rename(name, in: parent, to: newName, in: newParent, flags: flags, by: caller)
      }
    }
  }

  func change(_ path: String, by caller: Caller = .root, _ body: (inout AttributeChange) -> Void)
    throws(Errno)
  {
    var change = AttributeChange()
    body(&change)
    _ = try setAttributes(of: try node(path), handle: nil, to: change, by: caller)
  }

  /// The errno that something ends with; nil if it succeeds.
  func errno<Result>(_ body: (View) throws(Errno) -> Result) -> Errno? {
    do throws(Errno) {
      _ = try body(self)
      return nil
    } catch {
      return error
    }
  }
}

extension Identity {
  /// What an object of this number has that can't be opened by a handle.
  static func numbered(_ inode: UInt64, device: UInt32) -> Identity {
    var status = FileStatus()
    status.st_ino = ino_t(inode)
    status.st_dev = dev_t(device)
    return Identity(status, of: FD(-1))
  }
}

/// Lends the bytes of a text; unlike the library's own call it knows which error is thrown.
func withBytes<Result>(
  _ text: String, _ body: (UnsafeRawBufferPointer) throws(Errno) -> Result
) throws(Errno) -> Result {
  try withRoom(text.utf8.count) { (room) throws(Errno) in
    room.copyBytes(from: Array(text.utf8))
    return try body(UnsafeRawBufferPointer(room))
  }
}

/// Lends room for bytes.
func withRoom<Result>(
  _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Errno) -> Result
) throws(Errno) -> Result {
  let room = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
  defer { room.deallocate() }
  return try body(room)
}

extension Entry {
  /// What kind of object it is.
  var kind: mode_t { attributes.status.st_mode & S_IFMT }
}

extension Attributes {
  var inode: UInt64 { UInt64(status.st_ino) }
}
