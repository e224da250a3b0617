// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// A path of the tree, resolved as far as it exists.
struct ResolvedPath {
  /// A name in a directory; where case makes no difference, all spellings of it are one.
  struct Step: Hashable, Sendable {
    let directory: ObjectNumber
    let name: [UInt8]
    private let key: [UInt8]

    init(_ name: [UInt8], in directory: ObjectNumber, ignoringCase: Bool = false) {
      self.directory = directory
      self.name = name
      key = ignoringCase ? TreeNames.folded(name) : name
    }

    static func == (one: Step, other: Step) -> Bool {
      one.directory == other.directory && one.key == other.key
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(directory)
      hasher.combine(key)
    }
  }

  /// What is at the end.
  struct Found {
    let status: FileStatus
    let identity: ObjectIdentity
    var number: ObjectNumber { ObjectNumber(status) }
  }

  /// The names on the way, spelled as they are there.
  var steps: [Step] = []
  /// Nil if nothing is there, or that can't be told.
  var found: Found?
  /// Whether it leads to a volume that may not answer: what is granted there is granted by its path.
  var isOnServer = false
  /// Whether nothing is there, which is more than that it could not be found.
  var isMissing = false
  /// Whether it leads to a volume of any kind; what is granted there stays with its path.
  var isOnVolume = false
  /// Whether something is there, as far as that can be told.
  var isThere: Bool { found != nil || isOnServer }

  /// The path that was looked along, spelled as it is there.
  func spelled(_ path: [[UInt8]]) -> [[UInt8]] { steps.map(\.name) + path.dropFirst(steps.count) }

  /// It leads to something.
  mutating func end(at object: FD, _ status: FileStatus) {
    found = Found(status: status, identity: ObjectIdentity(status, of: object))
  }
}

extension Volume {
  /// Looks along a path, name by name.
  ///
  /// Only `user` has volumes of their own on the way; nil stands for anyone who has one there.
  func resolvedPath(along names: [[UInt8]], for user: UInt32?) -> ResolvedPath {
    guard let root = try? tree.open(Name.here, O_DIRECTORY | pathOnly) else { return ResolvedPath() }
    return resolvedPath(from: root, along: names[...], for: user)
  }

  /// The same from something that is there.
  func resolvedPath(
    from start: consuming OwnedFD, along names: ArraySlice<[UInt8]>, for user: UInt32?
  ) -> ResolvedPath {
    var resolved = ResolvedPath()
    var directory = start
    guard var status = try? directory.fd.status() else { return resolved }
    for name in names {
      guard let next = step(to: name, from: directory.fd, status, for: user, &resolved),
        let found = try? next.fd.status()
      else { return resolved }
      directory = next
      status = found
    }
    resolved.end(at: directory.fd, status)
    return resolved
  }

  /// One name further; nil if nothing is there, or that can't be told.
  func step(
    to name: [UInt8], from directory: FD, _ status: FileStatus, for user: UInt32?,
    _ resolved: inout ResolvedPath
  ) -> OwnedFD? {
    typealias Step = ResolvedPath.Step
    guard status.isDirectory else {
      resolved.isMissing = true
      return nil
    }
    let number = ObjectNumber(status)
    let ignoresCase = settings.ignoresCase && !resolved.isOnVolume
    let volume = attached.find(name, in: number, for: user, ignoringCase: settings.ignoresCase)
    resolved.steps.append(Step(volume?.record.name ?? name, in: number, ignoringCase: ignoresCase))
    if let volume {
      resolved.isOnVolume = true
      resolved.isOnServer = volume.engine.queue != nil
      if resolved.isOnServer { return nil }
    }
    do throws(Errno) { return try child(name, of: directory, number, for: user) } catch {
      if error == .ENOENT, ignoresCase, !attached.arePlacedAlone(in: number),
        let other = otherSpelling(of: name, in: directory, number),
        let found = try? directory.child(other)
      {
        resolved.steps[resolved.steps.count - 1] = Step(other, in: number, ignoringCase: true)
        return found
      }
      resolved.isMissing = error == .ENOENT
      return nil
    }
  }

  /// What has a name in a directory; where volumes are, a volume's root.
  func child(
    _ name: [UInt8], of directory: FD, _ number: ObjectNumber, for user: UInt32?
  ) throws(Errno) -> OwnedFD {
    guard attached.arePlaced(in: number) else { return try directory.child(name) }
    if let found = attached.find(name, in: number, for: user, ignoringCase: settings.ignoresCase) {
      return try found.open()
    }
    if attached.arePlacedAlone(in: number) { throw .ENOENT }
    return try directory.child(name)
  }

  /// Where a directory of the tree is now; nil if that can't be found out, or no path is long enough for it.
  func path(of directory: FD) -> [[UInt8]]? {
    guard let status = try? directory.status() else { return nil }
    // It may be moved while we look.
    for _ in 0..<8 {
      guard let names = kernelPath(of: directory) else { return nil }
      let found = resolvedPath(along: names, for: nil).found
      if found?.number == ObjectNumber(status) { return names }
    }
    return nil
  }

  /// The names by which the kernel knows an object; not for long, since it may be moved.
  func kernelPath(of object: FD) -> [[UInt8]]? {
    guard let path = try? object.ownPath() else { return nil }
    if let names = attached.names(of: object, at: path) { return names }
    // What is sealed is on another mount, whose root is the tree's.
    for root in [tree, noatimeTree].compactMap({ $0 }) {
      guard let root = try? root.ownPath() else { continue }
      let base = root == [UInt8(ascii: "/")] ? [] : root
      guard path.starts(with: base) else { continue }
      let rest = path.dropFirst(base.count)
      if rest.isEmpty || rest.first == UInt8(ascii: "/") { return GrantPath.names(Array(rest)) }
    }
    return nil
  }
}
