// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// What can be done to a store.
enum Work {
  struct Unknown: Error {}

  /// Runs what the words ask for: a kind of work, the store, and what else it takes.
  static func run(_ words: [String]) throws {
    let store = try open(words[1])
    let registry = try Registry(of: store)
    switch words[0] {
    case "open": break
    case "change":
      try registry.add(app)
      try registry.update(changed)
      _ = try registry.remove(app.identifier, of: nil, keepingData: false)
    case "adopt":
      _ = try Homes(tree: store.tree, path: store.path + "/tree", mode: store.description.mode)
        .adopt(words[2], in: store)
    case "make": _ = try Containers(store, registry).make(for: app, home: words[2])
    case "remove":
      _ = try registry.remove(app.identifier, of: nil, keepingData: false)
      try Containers(store, registry).removeMarked()
    case "install": try copy(words[2], into: store) { try $0.place(as: "Editor.app", in: $1) }
    case "replace": try copy(words[2], into: store) { try $0.replace("Editor.app", in: $1) }
    case "install-app", "update-app", "uninstall-app", "keep-update", "place-update", "purge":
      try AppWork.run(words, store, registry)
    case "update-system", "rollback-system": try TreeWork.runOnSystem(words, store, registry)
    case "import-data", "export-data", "import-backup", "export-backup", "deliver":
      try TreeWork.runOnData(words, store, registry)
    default: throw Unknown()
    }
  }

  private static func copy(
    _ source: String, into store: Store, _ place: (StagedTree, FD) throws -> Void
  ) throws {
    let directory = try source.withName { (name) throws(Errno) in
      try FD.cwd.open(name, O_RDONLY | O_DIRECTORY)
    }
    let copy = TreeCopy(uid: ProcessID.user, gid: ProcessID.group)
    let staged = try StagedTree(directory.fd, in: store, for: "Applications", copy)
    let applications = try "Applications".withName { (name) throws(Errno) in
      try store.tree.openDirectory(name)
    }
    try staged.synchronize()
    try place(staged, applications.fd)
    try applications.fd.synchronize(dataOnly: false)
  }

  /// The test has the lock for a moment longer where another one starts a program just then.
  private static func open(_ path: String) throws(StoreError) -> Store {
    for _ in 0..<500 {
      do throws(StoreError) {
        return try Store(opening: path, .exclusive)
      } catch .inUse {
        usleep(10_000)
      }
    }
    return try Store(opening: path, .exclusive)
  }

  /// An app with one of each kind of container.
  static let app = InstalledApp(
    identifier: identifier("com.example.editor"), user: nil, name: "Editor", executable: "Editor",
    version: "7", shortVersion: "1.2", team: "TEAM", path: "Applications/Editor.app",
    seal: Array(repeating: 7, count: 32), installed: 1_700_000_000,
    groups: [identifier("group.com.example")], clouds: [identifier("iCloud.com.example.editor")])

  static var changed: InstalledApp {
    var app = app
    app.version = "8"
    app.groups = [identifier("group.com.example"), identifier("group.com.example.more")]
    return app
  }

  private static func identifier(_ text: String) -> AppIdentifier {
    guard let identifier = AppIdentifier(text) else { preconditionFailure("'\(text)' is an identifier") }
    return identifier
  }
}
