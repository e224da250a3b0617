// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization

/// The homes of apps of a Mac's shape: the `Data` of their containers, which names alone do not tell from
/// those of other apps.
///
/// Filled from the registry, and again whenever the daemon installs, updates or removes an app, or makes or
/// replaces a container. Nothing that is known of a node depends on it: it is asked when a change of such a
/// directory's names is judged.
package final class MacContainers: Sendable {
  /// By number; the identity tells a directory from a later one with the same number.
  private let homes = OrderedMutex<[ObjectNumber: Identity]>(.leaf, [:])

  /// From here on, these are all.
  fileprivate func replace(with found: [Identity]) {
    let all = Dictionary(found.map { (Self.number(of: $0), $0) }) { first, _ in first }
    homes.withLock { $0 = all }
  }

  func contains(_ home: Identity) -> Bool {
    guard let known = homes.withLock({ $0[Self.number(of: home)] }) else { return false }
    return known.handle == home.handle
  }

  private static func number(of home: Identity) -> ObjectNumber {
    ObjectNumber(inode: home.inode, device: home.device)
  }
}

/// The home of an app, in its container.
package struct ContainerHome: Sendable {
  fileprivate let identity: Identity
}

extension Volume {
  /// The home in a container below the root of the tree; nil if it is not there.
  package func containerHome(at path: String) -> ContainerHome? {
    guard let home = try? tree.openDirectory(at: "\(path)/\(ContainerLayout.dataName)"),
      let status = try? home.fd.status()
    else { return nil }
    return ContainerHome(identity: Identity(status, of: home.fd))
  }

  /// Notes which homes are those of apps of a Mac's shape; all others are not.
  package func noteMacContainers(_ homes: [ContainerHome]) {
    macContainers.replace(with: homes.map(\.identity))
  }
}

extension View {
  /// The zone by which a node is judged: that of its name, or the same in the container of an app of a Mac's
  /// shape.
  func judgedZone(of node: borrowing NodeTable.Reference) -> Zone {
    let zone = node.zone
    guard zone == .containerData, let identity = nodes.with(node.id, { $0.identity }),
      volume.macContainers.contains(identity)
    else { return zone }
    return zone.ofMacShape
  }
}
