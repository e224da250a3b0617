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
    let parent = try directory(change.parent)
    try volume.changeNames(in: parent.fd, body)
  }

  /// The containers in its homes; every view sees what becomes of them.
  func containers(_ registry: Registry) throws(StoreError) -> Containers {
    try Containers(store, registry) { [volume] (directory, change) throws(Errno) in
      try volume.changeNames(in: directory, change)
    }
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
