// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
package import Policy
package import Store

/// A new container that lies beside the one whose place it is to take, which only the daemon can do.
package struct NewData: Codable, Equatable, Sendable {
  /// What it is called there.
  package let copy: String
  /// The home, and the app or the group whose container it is to be.
  package let home: String
  package let identifier: AppIdentifier
  /// Nil for an app's own.
  package let kind: ContainerKind?
}

/// Puts containers that users have made of packages in the place of those that there are.
///
/// Nobody may rename a container, in no view: it changes places with another directory by this way and no
/// other.
package struct DataReplacer {
  private let store: Store
  private let registry: Registry
  private let containers: Containers
  private let observer: any TreeObserver

  package init(_ store: Store, _ registry: Registry, containers: Containers, observer: any TreeObserver) {
    self.store = store
    self.registry = registry
    self.containers = containers
    self.observer = observer
  }

  /// Exchanges a container with the new one beside it, which has the old one's name there afterwards.
  package func replace(_ new: NewData, by caller: CallerIdentity) throws(AppFailure) {
    let container = try NotedContainer(
      new.identifier, new.kind ?? .data, home: new.home, store, registry, doing: "replace", by: caller)
    try checkCopy(new.copy, container)
    do throws(StoreError) {
      // What describes it and what it consists of is ours to say, whatever was put there.
      let app = new.kind == nil ? try registry.app(new.identifier, for: container.record.user) : nil
      try containers.complete(container.record, named: new.copy, in: container.parent.fd, app)
      // Before anything changes: the disk may have no room for it.
      let noted = try containers.noteIdentity(of: container.record, named: new.copy, in: container.parent.fd)
      do throws(StoreError) {
        try exchange(new, container)
      } catch {
        let name = container.path.splitAtName.name
        _ = try? containers.noteIdentity(of: noted, named: name, in: container.parent.fd)
        throw error
      }
    } catch {
      throw .store(error)
    }
  }

  private func exchange(_ new: NewData, _ container: borrowing NotedContainer) throws(StoreError) {
    let name = container.path.splitAtName.name
    let parent = container.parent.fd
    do throws(Errno) {
      try observer.changing(.exchanged(name: name, with: new.copy, in: container.above)) { () throws(Errno) in
        try parent.rename(new.copy, to: parent, name, flags: UInt32(CLX_RENAME_EXCHANGE))
      }
      try parent.synchronize(dataOnly: false)
    } catch {
      throw StoreError(error, doing: "replace", path: "\(store.path)/tree/\(container.path)")
    }
  }

  /// It is a directory of the user's that was made for this, and has nothing in it that no container has.
  private func checkCopy(_ name: String, _ container: borrowing NotedContainer) throws(AppFailure) {
    let path = "\(store.path)/tree/\(container.above)/\(name)"
    guard name.hasPrefix(Workshop.importPrefix), NotedContainer.isName(name),
      container.record.kind != .cloud
    else {
      throw .failed(doing: "replace a container by", path: path, errno: .EINVAL)
    }
    let top = [ContainerLayout.dataName, ContainerLayout.metadataName]
    do throws(Errno) {
      let copy = try container.parent.fd.openDirectory(name)
      guard try copy.fd.status().st_uid == container.record.user else { throw .EPERM }
      // What a group has is its apps' own affair.
      if container.record.kind == .group { return }
      let strange = try copy.fd.entries { name, _ in !top.contains { name.buffer.elementsEqual($0.utf8) } }
      let data = try copy.fd.openDirectory(ContainerLayout.dataName)
      // A link is the one to the bundle, or goes when the container is completed.
      let strangeInData = try data.fd.entries { name, type in
        !ContainerLayout.isDataName(name.buffer) && !ContainerLayout.isBundleLink(name, type)
      }
      guard strange.isEmpty, strangeInData.isEmpty else { throw .EINVAL }
    } catch {
      throw .failed(doing: "replace a container by", path: path, errno: error)
    }
  }
}
