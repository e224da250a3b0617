// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// A path of the tree, resolved as far as it exists.
struct ResolvedPath {
  /// A name in a directory.
  struct Step: Hashable, Sendable {
    let directory: ObjectNumber
    let name: [UInt8]

    init(_ name: [UInt8], in directory: ObjectNumber) {
      self.directory = directory
      self.name = name
    }
  }

  /// What is at the end.
  struct Found {
    let status: FileStatus
    let identity: ObjectIdentity
    var number: ObjectNumber { ObjectNumber(status) }
  }

  var steps: [Step] = []
  /// Nil if nothing is there, or that can't be told.
  var found: Found?
  /// Whether it leads to a volume that may not answer: what is granted there is granted by its path.
  var isOnServer = false
  /// Whether something is there, as far as that can be told.
  var isThere: Bool { found != nil || isOnServer }
}

extension Volume {
  /// Looks along a path, name by name.
  ///
  /// Only `user` has volumes of their own on the way; 0 stands for root, who has all.
  func resolvedPath(along names: [[UInt8]], for user: UInt32) -> ResolvedPath {
    guard let root = try? tree.open(Name.here, O_DIRECTORY | pathOnly) else { return ResolvedPath() }
    return resolvedPath(from: root, along: names[...], for: user)
  }

  /// The same from something that is there.
  func resolvedPath(
    from start: consuming OwnedFD, along names: ArraySlice<[UInt8]>, for user: UInt32
  ) -> ResolvedPath {
    var resolved = ResolvedPath()
    var directory = start
    guard var status = try? directory.fd.status() else { return resolved }
    for name in names {
      guard status.isDirectory else { return resolved }
      let number = ObjectNumber(status)
      resolved.steps.append(ResolvedPath.Step(name, in: number))
      if attached.hasQueues, attached.arePlaced(in: number),
        attached.find(name, in: number, for: user)?.engine.queue != nil
      {
        resolved.isOnServer = true
        return resolved
      }
      guard let next = try? child(name, of: directory.fd, number, for: user),
        let found = try? next.fd.status()
      else { return resolved }
      directory = next
      status = found
    }
    resolved.found = ResolvedPath.Found(status: status, identity: ObjectIdentity(status, of: directory.fd))
    return resolved
  }

  /// What has a name in a directory; where volumes are, a volume's root.
  func child(
    _ name: [UInt8], of directory: FD, _ number: ObjectNumber, for user: UInt32
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
      let found = resolvedPath(along: names, for: 0).found
      if found?.number == ObjectNumber(status) { return names }
    }
    return nil
  }

  /// Where an object of the tree is; nil if it is not there any more, or can't be found.
  ///
  /// By its handle, which leads to it whatever its name is.
  func path(of identity: ObjectIdentity) -> [[UInt8]]? {
    guard settings.fileHandles, let handle = FileHandle(encoded: identity.handle),
      let object = try? tree.open(handle), let status = try? object.fd.status(), status.st_nlink > 0,
      ObjectIdentity(status, of: object.fd) == identity
    else { return nil }
    if status.isDirectory { return path(of: object.fd) }
    // The kernel knows a file's name only if it was looked up recently.
    if let names = kernelPath(of: object.fd), resolvedPath(along: names, for: 0).found?.identity == identity {
      return names
    }
    return search(for: status)
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

  /// The limit of the search, which is needed only after a machine stopped at a bad moment.
  private static var mostNamesToSearch: Int { 200_000 }

  /// Goes through the users' files for one of that number.
  private func search(for wanted: FileStatus) -> [[UInt8]]? {
    var waiting = [[Array("Users".utf8)]]
    var count = 0
    while let names = waiting.popLast() {
      guard let directory = try? tree.openDirectory(at: names), let entries = try? directory.fd.entries()
      else { continue }
      for entry in entries {
        count += 1
        guard count < Self.mostNamesToSearch else { return nil }
        guard let status = try? directory.fd.status(of: entry.name) else { continue }
        if status.isSameObject(as: wanted) { return names + [entry.name] }
        if status.isDirectory, GrantPath.isPath(names + [entry.name]) { waiting.append(names + [entry.name]) }
      }
    }
    return nil
  }
}
