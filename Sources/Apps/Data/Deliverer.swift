// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO
internal import Policy
package import Store

/// Puts copies that users have made into the Inboxes of their apps.
///
/// No user may do that, in no view: what is in an Inbox got there by this way and no other.
package struct Deliverer {
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

  /// Delivers a copy that lies beside a container, and gives the path that it has then, below the root of the
  /// tree.
  ///
  /// Where its name is taken, it gets a number.
  package func deliver(_ delivery: Delivery, by caller: CallerIdentity) throws(AppFailure) -> String {
    try checkNames(delivery)
    let container = try NotedContainer(
      delivery.identifier, home: delivery.home, store, registry, doing: "deliver to", by: caller)
    let delivered: Result<String, AppFailure>
    do throws(StoreError) {
      delivered = try Installer.alone(for: container.record.user, in: container.path, store, registry) {
        () throws(StoreError) in
        try container.require(delivery.team, registry)
        return Result { () throws(AppFailure) in try deliver(delivery, to: container) }
      }
    } catch {
      throw .store(error)
    }
    return try delivered.get()
  }

  private func deliver(
    _ delivery: Delivery, to container: borrowing NotedContainer
  ) throws(AppFailure) -> String {
    let (above, path) = (container.above, container.path)
    let documents = try explaining("open", path) { () throws(Errno) in
      try store.tree.openDirectory(at: "\(path)/\(ContainerLayout.documentsPath)")
    }
    let inboxPath = "\(path)/\(ContainerLayout.inboxPath)"
    let inbox = try openInbox(in: documents.fd, inboxPath)
    let name = try explaining("deliver to", inboxPath) { () throws(Errno) in
      let change = TreeChange.delivered(name: delivery.copy, from: above, inbox: inboxPath)
      return try put(
        delivery, from: container.parent.fd, in: inbox.fd, owner: container.record.user, change)
    }
    return "\(inboxPath)/\(name)"
  }

  private func openInbox(in documents: FD, _ place: String) throws(AppFailure) -> OwnedFD {
    do throws(StoreError) {
      return try containers.openInbox(in: documents, at: place)
    } catch {
      throw .store(error)
    }
  }

  private func put(
    _ delivery: Delivery, from parent: FD, in inbox: FD, owner: UInt32, _ change: TreeChange
  ) throws(Errno) -> String {
    let name = Array(delivery.name.utf8)
    var number = 1
    while true {
      let candidate = number == 1 ? name : Self.numbered(name, number)
      do throws(Errno) {
        try observer.changing(change) { () throws(Errno) in
          // Nobody renames anything there meanwhile.
          try Self.check(delivery.copy, in: parent, owner: owner)
          try store.refuseOtherSpelling(of: String(decoding: candidate, as: UTF8.self), in: inbox)
          try parent.rename(delivery.copy, to: inbox, candidate, flags: UInt32(CLX_RENAME_NOREPLACE))
        }
        try inbox.synchronize(dataOnly: false)
        return String(decoding: candidate, as: UTF8.self)
      } catch .EEXIST {
        guard number < 100_000 else { throw .EEXIST }
        number += 1
      }
    }
  }

  /// `name-2.ext`; the name is cut where it would be too long.
  static func numbered(_ name: [UInt8], _ number: Int) -> [UInt8] {
    let suffix = Array("-\(number)".utf8)
    let dot = name.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > 0 ? $0 : nil } ?? name.count
    let ending = Array(name[dot...].prefix(64))
    var stem = Array(name[..<dot])
    while stem.count + suffix.count + ending.count > 255, !stem.isEmpty {
      // Whole characters only.
      while let last = stem.popLast(), last & 0xc0 == 0x80 {}
    }
    return stem + suffix + ending
  }

  // MARK: Whether it may be

  private func checkNames(_ delivery: Delivery) throws(AppFailure) {
    guard delivery.copy.hasPrefix(Workshop.deliveryPrefix),
      NotedContainer.isName(delivery.copy), NotedContainer.isName(delivery.name)
    else {
      throw .failed(doing: "deliver", path: delivery.name, errno: .EINVAL)
    }
  }

  /// A document is a file or a directory of the user's own; a link would lead where nobody has looked.
  private static func check(_ name: String, in parent: FD, owner: UInt32) throws(Errno) {
    let status = try parent.status(of: name)
    let isAlone = status.isDirectory || status.isRegular && status.st_nlink == 1
    guard isAlone, status.st_uid == owner else { throw .EINVAL }
  }

  private func explaining<Result: ~Copyable>(
    _ doing: String, _ path: String, _ body: () throws(Errno) -> Result
  ) throws(AppFailure) -> Result {
    do throws(Errno) {
      return try body()
    } catch {
      throw .failed(doing: doing, path: "\(store.path)/tree/\(path)", errno: error)
    }
  }
}
