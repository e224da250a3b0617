// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Fuse
internal import Glibc
package import LinuxIO
internal import Synchronization

// What the daemon tells a volume of what is installed, and does through it: whoever looks meanwhile sees the
// old or the new, each by its own seal, and the kernel of every view is made to look again before the change
// is reported as done.

extension Volume {
  /// Notes that a bundle is installed at a path below the root of the tree; for what is there when the daemon
  /// starts.
  package func noteBundle(at path: String, seal: [UInt8]) throws(Errno) {
    let way = try Way(to: path, in: tree)
    sealedPlaces.add(
      SealedPlace(path, isSettled: true, loading: Self.loading([seal])), way.name, above: way.above)
  }

  /// Does `body`, which makes a bundle appear where nothing was.
  package func bundleAppears(
    at path: String, seal: [UInt8], _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    let new = Self.loading([seal])
    try sealChanges(at: path, from: nil, to: new, meanwhile: new, body)
  }

  /// Does `body`, which lets a bundle take the place of another one.
  package func bundleIsReplaced(
    at path: String, seal: [UInt8], before: [UInt8], _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    try sealChanges(
      at: path, from: Self.loading([before]), to: Self.loading([seal]),
      meanwhile: Self.loading([before, seal]), body)
  }

  /// Does `body`, which takes a bundle away.
  package func bundleGoes(from path: String, seal: [UInt8], _ body: () throws(Errno) -> Void) throws(Errno) {
    let old = Self.loading([seal])
    try sealChanges(at: path, from: old, to: nil, meanwhile: old, body)
  }

  /// Notes that the system domain is sealed by a seal of one of these digests; one of no bytes says that it
  /// may have none.
  package func noteSystem(roots: [[UInt8]]) throws(Errno) {
    guard roots.contains(where: { !$0.isEmpty }) else { return }
    let way = try Way(to: "System", in: tree)
    let place = SealedPlace("System", isSettled: true, loading: try systemLoading(roots))
    sealedPlaces.add(place, way.name, above: way.above)
  }

  /// Does `body`, which replaces the system domain as a whole; both digests are of no bytes where there is no
  /// seal.
  package func systemIsReplaced(
    root: [UInt8], before: [UInt8], _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    try sealChanges(
      at: "System", from: before.isEmpty ? nil : systemLoading([before]),
      to: root.isEmpty ? nil : systemLoading([root]), meanwhile: systemLoading([before, root]), body)
  }

  /// Does `body`, after which what is at a path has another seal than before; nil where it has none.
  ///
  /// `meanwhile` reads either of the two: for a while it is one or the other.
  private func sealChanges(
    at path: String, from before: SealedPlace.Loading?, to after: SealedPlace.Loading?,
    meanwhile: @escaping SealedPlace.Loading, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    let way = try Way(to: path, in: tree)
    let known = sealedPlaces.find(way.name, in: way.directory)
    let place = known ?? SealedPlace(path, isSettled: false, loading: meanwhile)
    place.begin(loading: meanwhile)
    // Before anyone can find it, or its first moments would be those of an ordinary directory.
    if known == nil { sealedPlaces.add(place, way.name, above: way.above) }
    var current = after
    defer {
      if let current {
        place.settle(way.found, loading: current)
      } else {
        place.settle(nil, loading: nil)
        sealedPlaces.remove(way.name, in: way.directory)
      }
      nameChanged(in: way)
    }
    do throws(Errno) {
      try names.alone(in: way.directory, body)
    } catch {
      current = before
      throw error
    }
  }

  /// What reads the seal of the system domain, which is one of these; one of no bytes stands for a system
  /// domain without a seal.
  private func systemLoading(_ roots: [[UInt8]]) throws(Errno) -> SealedPlace.Loading {
    // Zero in a seal stands for whom the store belongs to, as its tree does.
    let status = try tree.status()
    let owner = SystemContents.Owner(uid: status.st_uid, gid: status.st_gid)
    return { (root) throws(Finding) in
      do throws(Finding) {
        return try SystemContents(in: root, roots: roots.filter { !$0.isEmpty }, owner: owner)
      } catch {
        guard roots.contains([]) else { throw error }
        return NoSeal()
      }
    }
  }

  private static func loading(_ seals: [[UInt8]]) -> SealedPlace.Loading {
    { (root) throws(Finding) in try BundleContents(in: root, pin: .digests(seals)) }
  }

  /// Lets the kernel of every view look again at the names of a directory.
  private func nameChanged(in way: borrowing Way) {
    guard let status = try? way.parent.status() else { return }
    nameChanged(in: ObjectNumber(status))
  }

  /// The way to a name in the tree, directory by directory.
  private struct Way: ~Copyable {
    private let opened: OwnedFD
    let name: [UInt8]
    /// The directories on the way, without the root of the tree unless the name is in it.
    let above: [ObjectNumber]
    let directory: ObjectNumber

    var parent: FD { opened.fd }

    init(to path: String, in tree: FD) throws(Errno) {
      var names = path.split(separator: "/").map(String.init)
      guard let last = names.popLast(), last != ".", last != "..", !last.utf8.contains(0) else {
        throw .EINVAL
      }
      var opened = try tree.open(Name.here, O_RDONLY | O_DIRECTORY)
      let root = ObjectNumber(try opened.fd.status())
      var above: [ObjectNumber] = []
      for name in names {
        let next = try name.withName { (name) throws(Errno) in
          guard name.isComponent else { throw .EINVAL }
          return try opened.fd.openDirectory(name)
        }
        above.append(ObjectNumber(try next.fd.status()))
        opened = next
      }
      name = Array(last.utf8)
      directory = above.last ?? root
      self.above = above.isEmpty ? [root] : above
      self.opened = opened
    }

    /// What is there now.
    var found: ObjectNumber? {
      guard let status = try? parent.status(of: name) else {
        return nil
      }
      return ObjectNumber(status)
    }
  }
}
