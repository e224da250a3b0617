// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// What can be done to a store's system domain, and to the data of its apps.
enum TreeWork {
  /// The words are the kind of work, the store, and for an update a directory.
  static func runOnSystem(_ words: [String], _ store: Store, _ registry: Registry) throws {
    let system = SystemDomain(store, registry, trust: try StoreTrust.read(store))
    guard words[0] == "update-system" else {
      try system.rollback()
      return
    }
    let source = try open(words[2])
    try system.update(from: source.fd, named: words[2])
  }

  /// The words are the kind of work, the store, a container below the root of the tree, and a package or a
  /// file.
  static func runOnData(_ words: [String], _ store: Store, _ registry: Registry) throws {
    let metadata = Metadata(isSystem: store.description.mode == .system)
    let container = try AppContainer(
      words[2], in: store.tree, at: store.path + "/tree", access: .store(metadata))
    let name = words[3].split(separator: "/").last.map(String.init) ?? ""
    let parent = String(words[3].dropLast(name.utf8.count + 1))
    switch words[0] {
    case "import-data":
      let directory = try open(words[3])
      _ = try container.importData(
        from: DataPackage(directory.fd, path: words[3]), replacing: true
      ) { try replace(with: $0, store, registry) }
    case "import-backup":
      let directory = try open(words[3])
      let backup = try ITunesBackup(directory.fd, path: words[3])
      guard let identifier = backup.apps.first else { throw Work.Unknown() }
      _ = try container.importData(from: backup, of: identifier, replacing: true) {
        try replace(with: $0, store, registry)
      }
    case "export-backup":
      guard let uid = try registry.containers().first?.user, let app = try registry.apps().first else {
        throw Work.Unknown()
      }
      let description = try AppQueries(store, registry).app(app.identifier, for: uid)
      let directory = try open(parent)
      let device = BackupDevice(name: "machine", home: "home", now: 1_700_000_000)
      _ = try ITunesExport(tree: store.tree, access: .store(metadata), device: device).write(
        [description], to: name, in: directory.fd, at: parent)
    case "deliver":
      let directory = try open(parent)
      let object = try directory.fd.child(name)
      let delivery = try container.prepareDelivery(of: object.fd, named: name).delivery
      let deliverer = Deliverer(
        store, registry, containers: try Containers(store, registry), observer: NoTreeObserver())
      _ = try deliverer.deliver(delivery, by: .ourselves)
    default:
      guard let app = try AppQueries(store, registry).apps(for: nil).first else { throw Work.Unknown() }
      let directory = try open(parent)
      _ = try container.export(app, to: name, in: directory.fd, at: parent)
    }
  }

  private static func replace(with new: NewData, _ store: Store, _ registry: Registry) throws {
    let replacer = DataReplacer(
      store, registry, containers: try Containers(store, registry), observer: NoTreeObserver())
    try replacer.replace(new, by: .ourselves)
  }

  private static func open(_ path: String) throws -> OwnedFD {
    try path.withName { (name) throws(Errno) in try FD.cwd.open(name, O_RDONLY | O_DIRECTORY) }
  }
}
