// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
@testable internal import Volume

/// A node table beside the simplest thing that could stand for it.
private final class Model {
  /// An object on disk; its size tells it from every other that ever was.
  final class Object {
    let serial: Int
    var names: [String]
    var id: NodeID?
    var lookups: UInt64 = 0
    /// It went behind the table's back, or may have lost its descriptor.
    var mayBeLost = false
    init(serial: Int, name: String) {
      self.serial = serial
      names = [name]
    }
  }
  private final class Held {
    let reference: NodeTable.Reference
    let object: Object
    init(_ reference: consuming NodeTable.Reference, _ object: Object) {
      self.reference = reference
      self.object = object
    }
  }

  let temporary: TemporaryDirectory
  let directory: OwnedFD
  let table: NodeTable
  var directories: [(path: String, id: NodeID)] = [("", .root)]
  var objects: [Object] = []
  var byName: [String: Object] = [:]
  var used: Set<NodeID> = [.root]
  var lastSerial = 0
  var evictions = 0
  var lost = 0
  private var held: [Held] = []
  private var random: SeededRandom

  init(seed: UInt64, handles: Bool, capacity: Int) throws {
    random = SeededRandom(seed: seed)
    temporary = try TemporaryDirectory()
    directory = try temporary.open()
    let root = try directory.fd.open(Name.here, O_DIRECTORY | pathOnly)
    table = try NodeTable(
      root: root, zone: .user, handleRoot: handles ? directory.fd : nil, share: DescriptorShare(capacity))
    // Deeper than the table has descriptors for, so that finding by names has to climb.
    for depth in 1...6 {
      for branch in 0..<6 {
        let parent = depth == 1 ? (path: "", id: NodeID.root) : directories[(depth - 2) * 6 + branch + 1]
        let path = parent.path + "d\(branch)/"
        try temporary.makeDirectory(path)
        directories.append((path, try intern(path: path, name: "d\(branch)", parent: parent.id)))
      }
    }
  }

  private func intern(path: String, name: String, parent: NodeID) throws(Errno) -> NodeID {
    let place = try table.reference(to: parent)
    return try name.withName { (name) throws(Errno) in
      let object = try place.fd.child(name)
      let status = try object.fd.status()
      return try table.intern(object, status, named: name, in: try table.reference(to: parent), zone: .user)
    }
  }

  func step() throws {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<15: try create()
    case 15..<45: try lookup()
    case 45..<60: try forget()
    case 60..<80: try hold()
    case 80..<84: unpin()
    case 84..<88: try link()
    case 88..<92: try move()
    case 92..<97: try remove(behind: false)
    default: try remove(behind: true)
    }
  }

  private func freeName() -> (name: String, parent: NodeID, path: String) {
    let place = directories[.random(in: 0..<directories.count, using: &random)]
    let name = "f\(Int.random(in: 0..<12, using: &random))"
    return (name, place.id, place.path + name)
  }

  private func create() throws {
    let free = freeName()
    guard byName[free.path] == nil, byName.count < 150 else { return }
    lastSerial += 1
    try temporary.write("", to: free.path)
    guard truncate(temporary.appending(free.path), off_t(lastSerial)) == 0 else { throw Errno.last }
    let object = Object(serial: lastSerial, name: free.path)
    objects.append(object)
    byName[free.path] = object
  }

  private func place(of path: String) -> (name: String, parent: NodeID) {
    let directory = directories.last {
      path.hasPrefix($0.path) && !path.dropFirst($0.path.count).contains("/")
    }
    return (String(path.dropFirst(directory?.path.count ?? 0)), directory?.id ?? .root)
  }

  private func lookup() throws {
    guard let (path, object) = byName.randomElement(using: &random) else { return }
    let place = place(of: path)
    let id = try intern(path: path, name: place.name, parent: place.parent)
    if let known = object.id {
      #expect(id == known)
    } else {
      #expect(used.insert(id).inserted, "an id was given out twice")
    }
    object.id = id
    object.lookups += 1
  }

  private func forget() throws {
    guard let object = objects.filter({ $0.lookups > 0 }).randomElement(using: &random), let id = object.id
    else { return }
    let count = UInt64.random(in: 1...object.lookups, using: &random)
    table.forget(id, count: count)
    object.lookups -= count
    expectGone(object, id)
  }

  private func unpin() {
    guard !held.isEmpty else { return }
    let object = held.remove(at: .random(in: 0..<held.count, using: &random)).object
    if let id = object.id { expectGone(object, id) }
  }

  /// Without lookups and references a node is gone.
  private func expectGone(_ object: Object, _ id: NodeID) {
    guard object.lookups == 0, !held.contains(where: { $0.object === object }) else { return }
    object.id = nil
    #expect(throws: Errno.ESTALE) { _ = try table.reference(to: id) }
    if object.names.isEmpty { objects.removeAll { $0 === object } }
  }

  private func hold() throws {
    guard let object = objects.filter({ $0.id != nil }).randomElement(using: &random), let id = object.id
    else { return }
    if table.with(id, { $0.descriptor < 0 }) == true { evictions += 1 }
    do throws(Errno) {
      let reference = try table.reference(to: id)
      #expect(try reference.fd.status().st_size == object.serial, "another object's descriptor")
      #expect(reference.id == id)
      if held.count < 8 { held.append(Held(reference, object)) }
    } catch {
      #expect(object.mayBeLost, "\(error) for an object that is there")
      #expect([.ESTALE, .ENOENT].contains(error))
      lost += 1
    }
  }

  private func link() throws {
    guard let (path, object) = byName.randomElement(using: &random) else { return }
    let free = freeName()
    guard byName[free.path] == nil else { return }
    guard Glibc.link(temporary.appending(path), temporary.appending(free.path)) == 0 else { throw Errno.last }
    object.names.append(free.path)
    byName[free.path] = object
  }

  private func move() throws {
    guard let (path, object) = byName.randomElement(using: &random) else { return }
    let free = freeName()
    guard byName[free.path] == nil else { return }
    let status = try self.status(path)
    guard Glibc.rename(temporary.appending(path), temporary.appending(free.path)) == 0 else {
      throw Errno.last
    }
    try free.name.withName { (name) throws(Errno) in
      guard let parent = table.with(free.parent, { $0.number }) else { throw .ESTALE }
      _ = table.moved(ObjectNumber(status), to: name, in: parent, zone: .user)
    }
    object.names = object.names.map { $0 == path ? free.path : $0 }
    byName[path] = nil
    byName[free.path] = object
  }

  private func status(_ path: String) throws(Errno) -> FileStatus {
    try temporary.appending(path).withName { (name) throws(Errno) in try FD.cwd.status(of: name) }
  }

  private func remove(behind: Bool) throws {
    guard let (path, object) = byName.randomElement(using: &random) else { return }
    let status = try self.status(path)
    if behind {
      object.mayBeLost = true
    } else {
      // As the operation does.
      let place = place(of: path)
      try place.name.withName { (name) throws(Errno) in
        table.hold(
          ObjectNumber(status), losing: name, in: place.parent, isLast: object.names.count == 1
        ) { () throws(Errno) in
          try temporary.appending(path).withName { (name) throws(Errno) in
            OwnedFD(owning: try check(clx_open(name.bytes, O_CLOEXEC | pathOnly, 0)))
          }
        }
      }
      if let id = object.id, table.with(id, { $0.flags.contains(.descriptorIsLastHold) }) == false {
        object.mayBeLost = true
      }
    }
    guard unlink(temporary.appending(path)) == 0 else { throw Errno.last }
    object.names.removeAll { $0 == path }
    byName[path] = nil
    if object.names.isEmpty, object.id == nil { objects.removeAll { $0 === object } }
    // A successor under the same name, often of the same number.
    if Bool.random(using: &random) {
      lastSerial += 1
      try temporary.write("", to: path)
      guard truncate(temporary.appending(path), off_t(lastSerial)) == 0 else { throw Errno.last }
      let next = Object(serial: lastSerial, name: path)
      objects.append(next)
      byName[path] = next
    }
  }

  /// Gives everything back.
  func finish() {
    held = []
    for object in objects {
      if let id = object.id, object.lookups > 0 { table.forget(id, count: object.lookups) }
    }
    #expect(table.counts.nodes == directories.count)
    for directory in directories.dropFirst().reversed() { table.forget(directory.id, count: 1) }
    #expect(table.counts.nodes == 1 && table.counts.descriptors == 1)
  }

  func expectCounts(capacity: Int) {
    let live = objects.count { $0.id != nil }
    // A reference may keep what has been forgotten.
    #expect(
      table.counts.nodes >= directories.count && table.counts.nodes <= directories.count + live + held.count
    )
    #expect(table.counts.descriptors <= 2 * capacity + held.count + 1)
  }
}

struct NodeTableTests {
  @Test(arguments: [1, 2, 3] as [UInt64], [false, true])
  func agreesWithTheModel(seed: UInt64, handles: Bool) throws {
    guard !handles || Program.isRoot else { return Skip.say("opening by handle needs root") }
    let model = try Model(seed: seed, handles: handles, capacity: 16)
    for step in 0..<4000 {
      try model.step()
      if step % 100 == 0 { model.expectCounts(capacity: 16) }
    }
    #expect(model.evictions > 100 && model.lost > 0)
    model.finish()
  }

  @Test(arguments: [false, true])
  func replacedObjectIsStaleAndItsSuccessorIsAnother(handles: Bool) throws {
    guard !handles || Program.isRoot else { return Skip.say("opening by handle needs root") }
    let temporary = try TemporaryDirectory()
    let directory = try temporary.open()
    let table = try NodeTable(
      root: try directory.fd.open(Name.here, O_DIRECTORY | pathOnly), zone: .user,
      handleRoot: handles ? directory.fd : nil, share: DescriptorShare(16))
    func intern() throws(Errno) -> (NodeID, UInt64) {
      try "file".withName { (name) throws(Errno) in
        let object = try directory.fd.child(name)
        let status = try object.fd.status()
        return (
          try table.intern(object, status, named: name, in: try table.reference(to: .root), zone: .user),
          UInt64(status.st_ino)
        )
      }
    }
    var reused = 0
    for _ in 0..<50 {
      try temporary.write("first", to: "file")
      let (first, inode) = try intern()
      table.releaseDescriptors(100)
      #expect(unlink(temporary.appending("file")) == 0)
      // A program that another test starts just now has the descriptor too, until it runs.
      _ = eventually {
        table.releaseDescriptors(100)
        return (try? table.reference(to: first).id) == nil
      }
      #expect(throws: (any Error).self) { _ = try table.reference(to: first) }
      try temporary.write("second", to: "file")
      #expect(throws: Errno.ESTALE) { _ = try table.reference(to: first) }
      let (second, nextInode) = try intern()
      if inode == nextInode { reused += 1 }
      #expect(first != second)
      #expect(try table.reference(to: second).id == second)
      #expect(throws: Errno.ESTALE) { _ = try table.reference(to: first) }
      table.forget(first, count: 1)
      table.forget(second, count: 1)
      #expect(unlink(temporary.appending("file")) == 0)
    }
    #expect(table.counts.nodes == 1)
    if reused == 0 { Skip.say("the filesystem never used a number again, so that part was not tested") }
  }

  /// Moved behind the daemon, two directories may seem to be in one another.
  @Test(arguments: [1, 2, 3, 7])
  func circleOfParentsEnds(length: Int) throws {
    let temporary = try TemporaryDirectory()
    let directory = try temporary.open()
    let table = try NodeTable(
      root: try directory.fd.open(Name.here, O_DIRECTORY | pathOnly), zone: .user, handleRoot: nil,
      share: DescriptorShare(16))
    var nodes = [NodeID.root]
    func intern(_ name: String, in parent: NodeID) throws(Errno) -> NodeID {
      try name.withName { (name) throws(Errno) in
        let object = try directory.fd.child(name)
        let status = try object.fd.status()
        return try table.intern(object, status, named: name, in: try table.reference(to: parent), zone: .user)
      }
    }
    for number in 0..<length {
      try temporary.makeDirectory("d\(number)")
      nodes.append(try intern("d\(number)", in: nodes[number]))
    }
    #expect(try intern("d0", in: nodes[length]) == nodes[1])
    table.releaseDescriptors(100)
    for node in nodes.dropFirst() { #expect(throws: Errno.ESTALE) { _ = try table.reference(to: node) } }
  }

  @Test(arguments: [false, true])
  func directoryThatMovesTakesItsDomainAlong(handles: Bool) throws {
    guard Program.isRoot else { return Skip.say("what all domains hold is root's") }
    let tree = try Tree { $0.fileHandles = handles }
    let view = tree.view
    for name in ["dir", "dir/sub", "dir/sub/Shared", "beside"] { try view.makeDirectory("Users/" + name) }
    let inside = [try view.node("Users/dir/sub"), try view.make("Users/dir/sub/Shared/file")]
    let beside = try view.node("Users/beside")
    func zones() throws -> [Zone] { try inside.map { try view.nodes.reference(to: $0).zone } }
    #expect(try zones() == [.user, .user])
    try view.rename("Users/dir", to: "Library/Mine")
    #expect(
      try zones() == [.local, .local]
        && view.nodes.reference(to: try view.node("Library/Mine")).zone == .local)
    #expect(try view.nodes.reference(to: beside).zone == .home)
    try view.rename("Library/Mine", to: "Network/theirs")
    #expect(try zones() == [.network, .network])
    // Changed places: each belongs to where it is.
    try view.rename("Network/theirs", to: "Users/beside", flags: 2)
    #expect(try zones() == [.user, .user] && view.nodes.reference(to: beside).zone == .network)
  }

  @Test func directoryMovesQuicklyBesideManyKnownOnes() throws {
    let tree = try Tree()
    for name in ["dir", "beside"] { try tree.view.makeDirectory("Users/" + name) }
    for number in 0..<3000 { try tree.view.makeDirectory("Users/beside/\(number)") }
    let began = monotonicNanoseconds()
    try tree.view.rename("Users/dir", to: "Library/dir")
    #expect(monotonicNanoseconds() - began < 500_000_000)
  }

  @Test func idsThatWereNeverGivenOutFindNothing() throws {
    let temporary = try TemporaryDirectory()
    let directory = try temporary.open()
    let table = try NodeTable(
      root: try directory.fd.open(Name.here, O_DIRECTORY | pathOnly), zone: .top, handleRoot: nil,
      share: DescriptorShare(16))
    var random = SeededRandom(seed: 5)
    let ids =
      [0, 2, 3, .max, 1 << 32, 1 << 32 | 1, UInt64(UInt32.max)] + (0..<10_000).map { _ in random.next() }
    for raw in ids {
      #expect(throws: Errno.ESTALE) { _ = try table.reference(to: NodeID(raw)) }
      table.forget(NodeID(raw), count: 1)
    }
    // The root is the mount's for as long as it is there.
    table.forget(.root, count: .max)
    #expect(try table.reference(to: .root).zone == .top)
  }
}

/// Says in the log what was not tested, and why.
enum Skip {
  static func say(_ reason: String) { print("not tested: \(reason)") }
}
