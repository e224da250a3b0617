// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// A filesystem that notes what it was asked, and answers as the test wants.
final class FakeFiles: FileSystem {
  struct Call: Equatable {
    let name: String
    var node: UInt64 = 0
    var text = ""
    var number: Int64 = 0
  }

  private let noted = Mutex<[Call]>([])
  private let errno = Mutex<Errno?>(nil)
  private let link = Mutex<(any Connection)?>(nil)
  private let parking = Mutex<[ParkedReply]>([])
  /// Called within each operation; may wait.
  let during: @Sendable (String) -> Void
  let parks: Bool
  /// What is in every directory.
  let listed: [String]
  let served: ServedPlace?
  private let given = Mutex(0)

  init(
    parks: Bool = false, listed: [String] = ["one", "two"], served: ServedPlace? = nil,
    during: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.parks = parks
    self.listed = listed
    self.served = served
    self.during = during
  }

  var calls: [Call] { noted.withLock { $0 } }
  var names: [String] { calls.map(\.name) }
  func clear() { noted.withLock { $0 = [] } }
  func fail(with error: Errno?) { errno.withLock { $0 = error } }
  var connection: (any Connection)? { link.withLock { $0 } }
  var parked: [ParkedReply] { parking.withLock { $0 } }

  func note(_ name: String, _ node: NodeID? = nil, _ text: String = "", _ number: Int64 = 0) {
    noted.withLock { $0.append(Call(name: name, node: node?.raw ?? 0, text: text, number: number)) }
    during(name)
  }
  func ask(_ name: String, _ node: NodeID? = nil, _ text: String = "", _ number: Int64 = 0) throws(Errno) {
    note(name, node, text, number)
    if let error = errno.withLock({ $0 }) { throw error }
  }

  static let status: FileStatus = {
    var status = FileStatus()
    status.st_ino = 4242
    status.st_mode = S_IFREG | 0o640
    status.st_size = 1 << 33 + 7
    return status
  }()
  static var entry: Entry {
    Entry(node: NodeID(0x7_0000_0005), attributes: Attributes(status, validity: 1.5), validity: 3)
  }
  static var opened: Opened {
    Opened(handle: HandleID(0x9_0000_0001), mode: [.passthrough, .noFlush], backing: 6)
  }

  func park(_ place: ParkingPlace?) -> LockOutcome {
    guard parks, let place else { return .done }
    let reply = place.park()
    parking.withLock { $0.append(reply) }
    return .parked
  }

  func started(_ connection: any Connection) {
    link.withLock { $0 = connection }
    note("started", nil, "", connection.passthrough ? 1 : 0)
  }

  func gaveUp(_ request: RefusedRequest) {
    given.withLock { $0 += 1 }
    during("gaveUp")
  }
  /// How many requests were not served because workers had died by them.
  var givenUp: Int { given.withLock { $0 } }

  func answeredEarly() { note("answeredEarly") }

  func ended() { link.withLock { $0 = nil } }
}

extension FakeFiles {
  func lookup(_ name: Name, in parent: NodeID, by caller: Caller) throws(Errno) -> Entry {
    try ask("lookup", parent, name.text, Int64(caller.uid))
    return Self.entry
  }
  /// A directory in which renames take long, and one that nobody may change.
  static let longDirectory = NodeID(77), othersDirectory = NodeID(78)
  func isLongRename(from parent: NodeID, to newParent: NodeID) -> Bool { parent == Self.longDirectory }
  func mayHaveChanged(_ node: NodeID, handle: HandleID?, _ caller: Caller) -> Bool {
    node != Self.othersDirectory
  }
  func isLongAttribute(_ name: Name) -> Bool { name.text == "system.long" }
  func forget(_ node: NodeID, count: UInt64) { note("forget", node, "", Int64(clamping: count)) }
  func attributes(of node: NodeID, handle: HandleID?, by caller: Caller) throws(Errno) -> Attributes {
    try ask("attributes", node, "", Int64(clamping: handle?.raw ?? 0))
    return Attributes(Self.status, validity: 2.25)
  }
  func extendedStatus(
    of node: NodeID, handle: HandleID?, into bytes: UnsafeMutableRawPointer, by caller: Caller
  ) throws(Errno) -> Double {
    try ask("extendedStatus", node, "", Int64(clamping: handle?.raw ?? 0))
    bytes.storeBytes(of: 0x1234_5678, as: UInt32.self)
    bytes.storeBytes(of: 0x77, toByteOffset: 255, as: UInt8.self)
    return 4.5
  }
  func setAttributes(
    of node: NodeID, handle: HandleID?, to change: AttributeChange, by caller: Caller
  ) throws(Errno) -> Attributes {
    let parts = [
      change.mode.map { "mode \($0)" }, change.uid.map { "uid \($0)" }, change.gid.map { "gid \($0)" },
      change.size.map { "size \($0)" }, change.clearsSetID ? "kill" : nil, handle.map { "handle \($0.raw)" },
    ]
    try ask("setAttributes", node, parts.compactMap { $0 }.joined(separator: ", "))
    return Attributes(Self.status, validity: 0)
  }
  func access(_ node: NodeID, mask: Int32, by caller: Caller) throws(Errno) {
    try ask("access", node, "", Int64(mask))
  }
  func readLink(_ node: NodeID, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    try ask("readLink", node)
    buffer.copyBytes(from: Array("there".utf8))
    return 5
  }
  func makeSymlink(
    _ name: Name, in parent: NodeID, to target: UnsafePointer<CChar>, by caller: Caller
  ) throws(Errno) -> Entry {
    try ask("makeSymlink", parent, name.text + " -> " + String(cString: target))
    return Self.entry
  }
  func makeNode(
    _ name: Name, in parent: NodeID, mode: mode_t, device: UInt64, by caller: Caller
  ) throws(Errno) -> Entry {
    try ask("makeNode", parent, name.text + (device == 0 ? "" : " \(device)"), Int64(mode))
    return Self.entry
  }
  func makeDirectory(_ name: Name, in parent: NodeID, mode: mode_t, by caller: Caller) throws(Errno) -> Entry
  {
    try ask("makeDirectory", parent, name.text, Int64(mode))
    return Self.entry
  }
  func link(_ node: NodeID, as name: Name, in parent: NodeID, by caller: Caller) throws(Errno) -> Entry {
    try ask("link", node, name.text, Int64(bitPattern: parent.raw))
    return Self.entry
  }
  func remove(_ name: Name, in parent: NodeID, directory: Bool, by caller: Caller) throws(Errno) {
    try ask("remove", parent, name.text, directory ? 1 : 0)
  }
  func rename(
    _ name: Name, in parent: NodeID, to newName: Name, in newParent: NodeID, flags: UInt32, by caller: Caller
  ) throws(Errno) {
    try ask("rename", parent, "\(name.text) -> \(newName.text) in \(newParent.raw)", Int64(flags))
  }
}
