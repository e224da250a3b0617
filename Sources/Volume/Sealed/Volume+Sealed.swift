// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Fuse
internal import Glibc
package import LinuxIO
internal import Synchronization

// The daemon's changes of what is installed. Meanwhile a client sees either the old or the new region, each
// with its own seal. The kernel of every view must look up the names again before the change is reported as
// done.

extension Volume {
  /// Notes that a bundle is installed at a path below the root of the tree; for what is there when the daemon
  /// starts.
  package func noteBundle(at path: String, seals: [[UInt8]]) throws(Errno) {
    let location = try Location(of: path, in: tree)
    readOnlyRegions.add(
      ReadOnlyRegion(path, isStable: true, loading: Self.loading(seals)), location.name,
      above: location.above)
  }

  /// Nobody knows which apps are installed: what lies where apps do is read-only, and its files are refused,
  /// since nothing says what was sealed and what runs in a sandbox.
  package func appsAreUnknown() {
    readOnlyRegions.letAppsBe(
      ReadOnlyRegion("Applications", isStable: false) { (_) throws(Finding) in throw Finding(.unreadable) })
  }

  /// Nobody has noted yet which apps there are in a home, until ``appsAreNoted(inHome:isLate:)``.
  ///
  /// What lies where apps do in homes is read-only as above, but for homes in which all were noted.
  ///
  /// Nothing in the home is looked at.
  package func beginNotingApps() {
    readOnlyRegions.beginNoting(
      ReadOnlyRegion("Users", isStable: false) { (_) throws(Finding) in throw Finding(.unreadable) })
  }

  /// All in the home of that name were noted; `isLate` says that somebody may have looked before.
  package func appsAreNoted(inHome name: String, isLate: Bool) {
    guard let directory = try? tree.openDirectory(at: "Users/\(name)/Applications"),
      let status = try? directory.fd.status()
    else { return readOnlyRegions.endNoting(nil) }
    readOnlyRegions.endNoting(ObjectNumber(status))
    if isLate { try? changeNames(in: directory.fd) {} }
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

  /// A change of a bundle that was interrupted has ended: what is there has that seal, or is no bundle.
  package func bundleIsSettled(at path: String, seal: [UInt8]?) throws(Errno) {
    let after = seal.map { Self.loading([$0]) }
    try sealChanges(at: path, from: after, to: after, meanwhile: after ?? Self.loading([])) {}
  }

  /// Notes that the system domain is sealed by a seal of one of these digests; one of no bytes says that it
  /// may have none.
  package func noteSystem(roots: [[UInt8]]) throws(Errno) {
    guard roots.contains(where: { !$0.isEmpty }) else { return }
    let location = try Location(of: "System", in: tree)
    let region = ReadOnlyRegion("System", isStable: true, loading: try systemLoading(roots))
    readOnlyRegions.add(region, location.name, above: location.above)
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
    at path: String, from before: ReadOnlyRegion.Loading?, to after: ReadOnlyRegion.Loading?,
    meanwhile: @escaping ReadOnlyRegion.Loading, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    let location = try Location(of: path, in: tree)
    let known = readOnlyRegions.find(location.name, in: location.directory)
    let region = known ?? ReadOnlyRegion(path, isStable: false, loading: meanwhile)
    region.beginChange(loading: meanwhile)
    // Added before anyone can find the directory; otherwise it would be writable at first.
    if known == nil { readOnlyRegions.add(region, location.name, above: location.above) }
    var failure: Errno?
    // Kernels are told when the place is settled, whether or not `body` has changed anything.
    try changeNames(in: location.parent) { () throws(Errno) in
      var current = after
      do throws(Errno) {
        try body()
      } catch {
        failure = error
        current = before
      }
      if let current {
        region.endChange(location.found, loading: current)
      } else {
        region.endChange(nil, loading: nil)
        readOnlyRegions.remove(location.name, in: location.directory)
      }
    }
    if let failure { throw failure }
  }

  /// What reads the seal of the system domain, which is one of these; one of no bytes stands for a system
  /// domain without a seal.
  private func systemLoading(_ roots: [[UInt8]]) throws(Errno) -> ReadOnlyRegion.Loading {
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

  private static func loading(_ seals: [[UInt8]]) -> ReadOnlyRegion.Loading {
    { (root) throws(Finding) in try BundleContents(in: root, installed: .digests(seals)) }
  }

  /// The way to a name in the tree, directory by directory.
  private struct Location: ~Copyable {
    private let opened: OwnedFD
    let name: [UInt8]
    /// The directories on the way, without the root of the tree unless the name is in it.
    let above: [ObjectNumber]
    let directory: ObjectNumber

    var parent: FD { opened.fd }

    init(of path: String, in tree: FD) throws(Errno) {
      var names = path.parts(between: "/").map(String.init)
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
