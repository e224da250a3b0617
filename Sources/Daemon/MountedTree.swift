// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

/// The tree as it is served: changes of it reach every view.
struct MountedTree: TreeObserver {
  let store: Store
  let volume: Volume
  let views: RunningViews
  let leases: ContainerLeases
  let shapes: AppShapes

  func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno) {
    switch change {
    case .directory(_, let parent):
      let directory = try store.tree.openDirectory(at: parent)
      try volume.changeNames(in: directory.fd, body)
    case .appears(let place, let seal): try volume.bundleAppears(at: place.path, seal: seal, body)
    case .replaced(let place, let seal, let before):
      try views.changing(place.path) { () throws(Errno) in
        try volume.bundleIsReplaced(at: place.path, seal: seal, before: before, body)
      }
    case .goes(let place, let seal):
      try views.changing(place.path) { () throws(Errno) in
        try volume.bundleGoes(from: place.path, seal: seal, body)
      }
    case .delivered(let name, let source, let inbox):
      let from = try store.tree.openDirectory(at: source)
      let to = try store.tree.openDirectory(at: inbox)
      try name.withName { (name) throws(Errno) in try volume.deliver(name, from: from.fd, to: to.fd, body) }
    case .exchanged(let name, let other, let parent):
      let directory = try store.tree.openDirectory(at: parent)
      try name.withName { (name) throws(Errno) in
        try other.withName { (other) throws(Errno) in
          try volume.exchange(name, with: other, in: directory.fd, body)
        }
      }
    case .system(let root, let before):
      try views.changing("System") { () throws(Errno) in
        try volume.systemIsReplaced(root: root, before: before, body)
      }
    }
  }

  func users(of path: String) -> [String] {
    views.all(using: path).map { "\($0.launch.app.identifier), pid \($0.pid)" }
  }

  func settled(_ path: String, seal: [UInt8]?) {
    // Without a directory for it there is nothing, and its region goes with the directory.
    try? volume.bundleIsSettled(at: path, seal: seal)
  }

  func runs(_ app: AppIdentifier, of user: UInt32) -> Bool { views.has(AppOfUser(app, user)) }

  func end(_ former: FormerApps) {
    let running = views.all(user: former.user, afterStartsOf: former.identifiers)
    endOfOtherRoots(running.filter { former.have($0.launch.app, runningFor: $0.user) })
  }

  /// Ends apps that were signed under another root than the one that their team belongs to now.
  func endOfOtherRoots(_ others: [RunningView]) {
    if others.isEmpty { return }
    for view in others where view.isAlive {
      let app = view.launch.app
      let why = "\(app.name.sanitized) was ended: its team belongs to another root now"
      if view.note(why: why) { DaemonLog.write("\(app.identifier), pid \(view.pid), is ended: \(why)") }
    }
    for view in views.end(others) {
      DaemonLog.write(
        "\(view.launch.app.identifier), pid \(view.pid), does not end: its view is still in use")
    }
  }

  func whileClosed(
    _ app: AppIdentifier, of user: UInt32, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    try views.keepingClosed(AppOfUser(app, user)) { () throws(Errno) in
      // Who has no home has nothing that others could reach.
      guard let home = try? store.home(of: user) else { return try body() }
      let hold: ContainerHold?
      do throws(StoreError) { hold = try leases.take([(.data, app)], of: home, .atOnce) } catch {
        if case .leased = error { throw .EREMOTE }
        throw .EIO
      }
      defer { hold?.end() }
      try body()
    }
  }

  /// Apps or containers have changed.
  func noteContainers(_ registry: Registry, in home: String?) throws(StoreError) {
    try shapes.note(registry, in: home)
  }

  /// The containers in its homes; every view sees what becomes of them.
  func containers(_ registry: Registry) throws(StoreError) -> Containers {
    try Containers(store, registry) { [volume] (directory, change) throws(Errno) in
      try volume.changeNames(in: directory, change)
    }
  }
}
