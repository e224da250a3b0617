// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
package import LinuxIO
package import Policy
internal import Store
internal import Synchronization

// The view in which people find their documents by the names that they know: an app's Documents at the top,
// under what the app calls itself.
//
// Every node in it is that of an object in its own place in the tree, with the zone, the position and the
// directory that it has there, so all rules hold. Only the kernel is told other names at the top and in
// iCloud Drive. It may not keep these: they are looked up again each time, so an app that comes or goes is
// seen at once.

/// What a files view shows at its top and in iCloud Drive.
package final class FilesTop: Sendable {
  /// How closely is looked at what is to be shown.
  package enum Look: Sendable {
    /// At what is known.
    case known
    /// Once more at the home if something was made or removed there.
    case ifChanged
    /// At everything.
    case again
  }

  private struct State {
    var shown: FilesPlaces?
    /// The nodes on the way to each place: the kernel does not know them, but those below are found through
    /// them.
    var passages: [[[UInt8]]: [NodeID]] = [:]
  }

  private let source: @Sendable (Look) -> FilesPlaces?
  private let state = Mutex(State())

  /// `source` says what is to be shown, or nothing if that can't be told.
  package init(_ source: @escaping @Sendable (Look) -> FilesPlaces?) { self.source = source }

  /// What is in the view now; calls `changed` with what it has of the tree, if that is no longer the same.
  fileprivate func current(
    _ look: Look = .again, changed: ([ScopePlace], [ScopePlace]) -> Void = { _, _ in }
  ) -> FilesPlaces? {
    let places = source(look)
    return state.withLock { state in
      guard let places, places != state.shown else { return state.shown }
      changed(state.shown?.claims ?? [], places.claims)
      state.shown = places
      return places
    }
  }

  /// Keeps the nodes on the way to a place; those that were kept before are for the caller to forget.
  fileprivate func keep(_ nodes: [NodeID], to place: FilesPlace) -> [NodeID] {
    state.withLock { $0.passages.updateValue(nodes, forKey: place.path) ?? [] }
  }

  /// Keeps those no longer that lead to places that are not shown any more.
  fileprivate func drop() -> [NodeID] {
    state.withLock { state in
      let paths = Set(((state.shown?.top ?? []) + (state.shown?.cloud ?? [])).map(\.path))
      let gone = state.passages.filter { !paths.contains($0.key) }
      for path in gone.keys { state.passages[path] = nil }
      return gone.values.flatMap(\.self)
    }
  }
}

extension FilesPlaces {
  /// What of the tree is in the view.
  ///
  /// What is in iCloud Drive is there by the names that are shown alone.
  fileprivate var claims: [ScopePlace] {
    [ScopePlace([], .read, isSubtree: false)]
      + (top + cloud).filter { !$0.name.elementsEqual(Self.cloudDrive.utf8) }.map {
        ScopePlace($0.path, .everything)
      }
  }
}

extension Volume {
  /// Whether something in a directory is hidden from people, by its flags or by what Finder notes.
  package func isHidden(_ name: [UInt8], in directory: FD) -> Bool {
    guard let object = try? directory.child(name) else { return true }
    let flags = (try? metadata.security(of: object.fd).flags) ?? []
    var info = FinderInfo()
    withUnsafeTemporaryAllocation(byteCount: FinderInfo.size, alignment: 1) { buffer in
      let count = try? FinderInfo.attribute.withName { (name) throws(Errno) in
        try object.fd.attribute(name.bytes, into: buffer)
      }
      info = FinderInfo(Array(buffer[..<(count ?? 0)]))
    }
    return DisplayName.isHidden(name, flags, info)
  }

  /// A view of the documents of a user, whose rights hold in it as ever.
  package func filesView(
    _ files: FilesTop, user: UInt32, takingOver taken: UInt32? = nil
  ) throws(Errno) -> View {
    let scope = Scope(files.current()?.claims ?? [ScopePlace([], .read, isSubtree: false)])
    return try View(self, scope: scope, user: user, showing: files, takingOver: taken)
  }
}

extension View {
  /// What is shown in a directory of a files view instead of what is in it; nil for any other directory.
  func placesShown(in directory: NodeID, _ look: FilesTop.Look) -> [FilesPlace]? {
    guard let filesTop else { return nil }
    let isTop = directory == .root
    guard isTop || nodes.with(directory, { $0.zone }) == .cloudContainers else { return nil }
    var hasChanged = false
    let places = filesTop.current(look) { before, now in
      scope.change { scope in
        for claim in before where !now.contains(claim) { scope.withdraw(claim) }
        for claim in now { scope.admit(claim) }
      }
      hasChanged = true
    }
    if hasChanged { for node in filesTop.drop() { forget(node, count: 1) } }
    return (isTop ? places?.top : places?.cloud) ?? []
  }

  /// What a name in such a directory stands for; nil for a name in any other directory.
  func shownEntry(_ name: Name, in directory: NodeID, by caller: Caller) throws(Errno) -> Entry? {
    func place(_ look: FilesTop.Look) -> FilesPlace?? {
      placesShown(in: directory, look).map { places in
        places.first { $0.name.elementsEqual(name.buffer) }
          ?? (volume.settings.ignoresCase ? places.first { areOneName($0.name, Array(name.buffer)) } : nil)
      }
    }
    guard let known = place(.known) else { return nil }
    guard let place = known ?? place(.ifChanged) ?? nil else { throw .ENOENT }
    return try shownEntry(place, by: caller)
  }

  private func shownEntry(_ place: FilesPlace, by caller: Caller) throws(Errno) -> Entry {
    var way: [NodeID] = []
    do throws(Errno) {
      var found: Entry?
      for name in place.path {
        let entry = try name.withName { (name) throws(Errno) in
          try entryInTree(name, in: way.last ?? .root, by: caller)
        }
        guard let node = entry.node else { throw .ENOENT }
        way.append(node)
        found = entry
      }
      guard var entry = found, entry.attributes.status.isDirectory else { throw .ENOENT }
      way.removeLast()
      entry.validity = 0
      for node in filesTop?.keep(way, to: place) ?? way { forget(node, count: 1) }
      return entry
    } catch {
      for node in way { forget(node, count: 1) }
      throw error
    }
  }

  /// Lists such a directory.
  func list(
    _ places: [FilesPlace], in directory: NodeID, after offset: Int64, into writer: inout DirectoryWriter,
    by caller: Caller
  ) throws(Errno) {
    guard let inode = nodes.number(of: directory)?.inode else { throw .ENOENT }
    let names = [Array(".".utf8), Array("..".utf8)] + places.map(\.name)
    for (index, name) in names.enumerated().dropFirst(Int(clamping: max(0, offset))) {
      let number = index < 2 ? inode : inodeShown(at: places[index - 2], by: caller)
      // What is not there yet, as an app's Documents before it has run, is not listed.
      guard let number else { continue }
      guard try writer.addDirectory(name, inode: number, next: Int64(index) + 1) else { return }
    }
  }

  private func inodeShown(at place: FilesPlace, by caller: Caller) -> UInt64? {
    guard let entry = try? shownEntry(place, by: caller), let node = entry.node else { return nil }
    defer { forget(node, count: 1) }
    return nodes.number(of: node)?.inode
  }

  /// Nobody changes what is shown: names at the top are no names of the tree.
  func refuseShown(_ directory: DirectoryChange.Directory, by caller: Caller) throws(Errno) {
    guard filesTop != nil, directory.zone == .top || directory.zone == .cloudContainers else { return }
    try gate.authorize(.addSubdirectory, on: directory.object, by: caller)
  }
}

extension DirectoryWriter {
  /// Adds a directory to a listing that is not the disk's; false if it has no room.
  mutating func addDirectory(_ name: [UInt8], inode: UInt64, next: Int64) throws(Errno) -> Bool {
    try name.withName { (name) throws(Errno) in
      guard hasRoom(for: name) else { return false }
      add(name, inode: inode, type: UInt8(DT_DIR), next: next)
      return true
    }
  }
}
