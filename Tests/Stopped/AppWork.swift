// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// What can be done to a store's apps: the words are the kind of work, the store, a home or `-` for all
/// users, and a bundle or an identifier; for a purge how many bytes are to become free, 0 for all.
enum AppWork {
  static func run(_ words: [String], _ store: Store, _ registry: Registry) throws {
    guard words[0] != "purge" else { return try purge(Int64(words[3]) ?? 0, store, registry) }
    let installer = Installer(
      store, registry, containers: try Containers(store, registry), trust: try StoreTrust.read(store))
    let domain: AppDomain = words[2] == "-" ? .everyone : .user(words[2])
    guard words[0] != "uninstall-app" else {
      guard let identifier = AppIdentifier(words[3]) else { throw Work.Unknown() }
      try installer.uninstall(identifier, of: domain, by: .ourselves)
      return
    }
    guard words[0] != "place-update" else {
      for waiting in try registry.waitingUpdates() { _ = try installer.place(waiting) }
      return
    }
    let source = try words[3].withName { (name) throws(Errno) in
      try FD.cwd.open(name, O_RDONLY | O_DIRECTORY)
    }
    let name = words[3].split(separator: "/").last.map(String.init) ?? ""
    if words[0] == "install-app" {
      _ = try installer.install(source.fd, named: name, for: domain, by: .ourselves)
    } else if words[0] == "keep-update" {
      let busy = Installer(
        store, registry, containers: try Containers(store, registry), trust: try StoreTrust.read(store),
        observer: Running())
      _ = try busy.updateWhenClosed(source.fd, named: name, for: domain, by: .ourselves)
    } else {
      _ = try installer.update(source.fd, named: name, for: domain, by: .ourselves)
    }
  }
}

extension AppWork {
  private static func purge(_ bytes: Int64, _ store: Store, _ registry: Registry) throws {
    var request = PurgeRequest()
    if bytes > 0 { request.goal = .bytes(try store.tree.diskSpace().free + bytes) }
    let containers = try Containers(store, registry)
    let purger = Purger(store, registry, containers: containers, observer: NoTreeObserver()) {}
    let report = try purger.purge(request, by: .ourselves)
    guard report.items.allSatisfy({ $0.refusal == nil && $0.left.isEmpty }) else { throw Work.Unknown() }
  }
}

/// A tree all of whose apps run.
private struct Running: TreeObserver {
  func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno) { throw .EBUSY }
  func users(of path: String) -> [String] { ["pid 1"] }
}
