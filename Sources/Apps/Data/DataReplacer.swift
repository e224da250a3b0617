// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

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
  /// Whose the container was when the data were made for it; nil where a command of an earlier version does
  /// not say.
  package let team: BackupTeam?
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

  /// Puts the new container that lies beside an old one in its place.
  ///
  /// The old one is a removed container then, unless it had no data. Throws while an app runs that has it: it
  /// would go on with what it has read of its data, and what it saves would be lost.
  ///
  /// The copy lies where its user may rename things, so its name can lead to something else at any moment. It
  /// is held by a descriptor, and what changes places is that object or nothing.
  package func replace(_ new: NewData, by caller: CallerIdentity) throws(AppFailure) {
    let container = try NotedContainer(
      new.identifier, new.kind ?? .data, home: new.home, store, registry, doing: "replace", by: caller)
    let copy = try openCopy(new.copy, container)
    var refusal: AppFailure?
    do throws(StoreError) {
      let removed = try Installer.alone(for: container.record.user, in: container.path, store, registry) {
        () throws(StoreError) in
        try container.require(new.team, registry)
        return try replace(container, by: copy.fd, new, &refusal)
      }
      // What fails here is deleted when its time is over.
      if let removed { _ = try? containers.delete(removed) }
    } catch {
      throw refusal ?? .store(error)
    }
  }

  /// Gives the old one if nobody needs it; it is its user's turn.
  private func replace(
    _ container: borrowing NotedContainer, by copy: FD, _ new: NewData, _ refusal: inout AppFailure?
  ) throws(StoreError) -> RemovedContainer? {
    let old = openOld(container)
    let apps = try appsOf(container.record)
    // What describes it and what it consists of is ours to say, whatever was put there.
    let app = new.kind == nil ? try registry.app(new.identifier, for: container.record.user) : nil
    let identity = try containers.complete(container.record, copy, in: container.parent.fd, app)
    // Before anything changes: the disk may have no room for it, and another one may be there by now.
    let noted = try containers.note(identity, of: container.record)
    do throws(StoreError) {
      let removed = try exchange(new, copy, identity, container, whileClosed: apps, &refusal)
      // Only now: until here its user could put something into it.
      return (try? old?.hasData) == false ? removed : nil
    } catch {
      let name = container.path.splitAtName.name
      _ = try? containers.noteIdentity(of: noted, named: name, in: container.parent.fd)
      throw error
    }
  }

  /// The old one, whatever it is called when it is looked at.
  private func openOld(_ container: borrowing NotedContainer) -> AppContainer? {
    let access = SecurityAccess.store(Metadata(isSystem: store.description.mode == .system))
    return try? AppContainer(
      container.path, in: store.tree, at: "\(store.path)/tree", access: access, kind: container.record.kind)
  }

  /// The apps of its user that have a container.
  private func appsOf(_ record: ContainerRecord) throws(StoreError) -> [AppIdentifier] {
    guard record.kind == .group else { return [record.identifier] }
    return try registry.apps(for: record.user).filter { app in
      app.groups.contains { $0.isSame(as: record.identifier) }
    }.map(\.identifier)
  }

  /// Does `body` while none of some apps runs for a user; one that has just ended may take a moment.
  private func whileClosed(
    _ apps: ArraySlice<AppIdentifier>, of user: UInt32, _ refusal: inout AppFailure?,
    _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    guard let app = apps.first else { return try body() }
    let began = monotonicNanoseconds()
    var isClosed = false
    while true {
      do throws(Errno) {
        return try observer.whileClosed(app, of: user) { () throws(Errno) in
          isClosed = true
          try whileClosed(apps.dropFirst(), of: user, &refusal, body)
        }
      } catch {
        if isClosed { throw error }
        if error == .EREMOTE {
          refusal = .runsElsewhere(identifier: app.text, sharing: nil, host: nil)
        } else if error == .EBUSY {
          guard monotonicNanoseconds() - began > Self.patience else {
            pauseThread(milliseconds: 50)
            continue
          }
          refusal = .running(identifier: app.text, ["its view is in use"])
        }
        throw error
      }
    }
  }

  private static let patience: UInt64 = 1_000_000_000

  private func exchange(
    _ new: NewData, _ copy: FD, _ identity: ObjectIdentity, _ container: borrowing NotedContainer,
    whileClosed apps: [AppIdentifier], _ refusal: inout AppFailure?
  ) throws(StoreError) -> RemovedContainer? {
    let (above, name) = (container.above, container.path.splitAtName.name)
    let (kind, user) = (container.record.kind, container.record.user)
    #if DEBUG
      Halt.at(.copyChecked)
    #endif
    return try containers.replace(
      container.record, by: new.copy, identity, in: container.parent.fd,
      checking: { () throws(Errno) in try Self.checkContents(of: copy, kind) }
    ) { (change) throws(Errno) in
      try whileClosed(apps[...], of: user, &refusal) { () throws(Errno) in
        try observer.changing(.exchanged(name: name, with: new.copy, in: above), change)
      }
    }
  }

  /// It is a directory of the user's that was made for this, and has nothing in it that no container has.
  private func openCopy(
    _ name: String, _ container: borrowing NotedContainer
  ) throws(AppFailure) -> OwnedFD {
    let path = "\(store.path)/tree/\(container.above)/\(name)"
    guard name.hasPrefix(Workshop.importPrefix), NotedContainer.isName(name),
      container.record.kind != .cloud
    else {
      throw .failed(doing: "replace a container by", path: path, errno: .EINVAL)
    }
    do throws(Errno) {
      let copy = try container.parent.fd.openDirectory(name)
      guard try copy.fd.status().st_uid == container.record.user else { throw .EPERM }
      try Self.checkContents(of: copy.fd, container.record.kind)
      return copy
    } catch {
      throw .failed(doing: "replace a container by", path: path, errno: error)
    }
  }

  private static func checkContents(of copy: FD, _ kind: ContainerKind) throws(Errno) {
    // What a group has is its apps' own affair.
    if kind == .group { return }
    let top = [ContainerLayout.dataName, ContainerLayout.metadataName]
    let strange = try copy.firstEntry { name, _ in !top.contains { name.buffer.elementsEqual($0.utf8) } }
    let data = try copy.openDirectory(ContainerLayout.dataName)
    // A link is the one to the bundle, or goes when the container is completed.
    let strangeInData = try data.fd.firstEntry { name, type in
      !ContainerLayout.isDataName(name.buffer) && !ContainerLayout.isBundleLink(name, type)
    }
    guard strange == nil, strangeInData == nil else { throw .EINVAL }
  }
}
