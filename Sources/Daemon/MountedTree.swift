// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Store
internal import Volume

/// The tree as it is served: changes of it reach every view.
struct MountedTree: TreeWatch {
  let store: Store
  let volume: Volume

  func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno) {
    let parent = try SharedFD(directory(change.parent))
    try volume.changeNames(in: [parent]) { () throws(Errno) in try body() }
  }

  /// The containers of the homes in the mounted tree, so that every view sees what is made of them.
  ///
  /// By our own mount, whose requests are other threads' to serve.
  static func containers(at mountPoint: String, _ registry: Registry) throws(StoreError) -> Containers {
    guard (try? MountTable.current().top(at: mountPoint))?.type == "fuse.insula" else {
      throw .failed(doing: "reach the mount", path: mountPoint, errno: .ENOTCONN)
    }
    let root: OwnedFD
    do throws(Errno) {
      root = try mountPoint.withName { (name) throws(Errno) in
        try FD.cwd.open(name, O_RDONLY | O_DIRECTORY)
      }
    } catch {
      throw StoreError(error, doing: "open", path: mountPoint)
    }
    return try Containers(mounted: root.fd, at: mountPoint, registry)
  }

  /// Opens a directory of the tree, name by name.
  private func directory(_ path: String) throws(Errno) -> OwnedFD {
    var directory = try store.tree.duplicated()
    for name in path.split(separator: "/") {
      directory = try String(name).withName { (name) throws(Errno) in try directory.fd.openDirectory(name) }
    }
    return directory
  }
}

extension TreeChange {
  /// The directory in which a name changes, below the root of the tree.
  fileprivate var parent: String {
    switch self {
    case .directory(_, let parent): parent
    case .appears(let place, _), .replaced(let place, _, _), .goes(let place, _): place.parent
    case .system: ""
    }
  }
}
