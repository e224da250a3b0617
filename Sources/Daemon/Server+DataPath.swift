// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Store
internal import Volume

// Whether the kernel reads and writes the store's files itself.

extension Server {
  /// Whether the kernel may: whatever the mode, only what it says when it is asked counts (`View.dataPath`).
  ///
  /// It would go on with that when the lease on the store is another machine's.
  var mayPassThrough: Bool { options.passthrough && isSystem && store.lease == nil }

  /// Asks the kernel with a file of the store, before any view but that of the whole tree is served.
  ///
  /// Where the tree lies on another filesystem than the description of the store, it is asked with a file
  /// without a name; where none can be made, the first file that is opened tells.
  func probePassthrough() {
    guard mayPassThrough else { return }
    let devices = try? (store.directory.status().st_dev, volume.tree.status().st_dev)
    if let devices, devices.0 == devices.1,
      let file = try? StoreLayout.descriptionName.withName({ (name) throws(Errno) in
        try store.directory.open(name, O_RDONLY)
      })
    {
      view.probePassthrough(with: file.fd)
    } else if let file = try? volume.tree.openUnnamed(O_RDWR, mode: 0) {
      view.probePassthrough(with: file.fd)
    }
  }

  /// What the connection of a view but that of the whole tree is to have.
  ///
  /// Without passthrough each view's kernel has pages of its own, and a map that two views store in must not
  /// be had. With it, only granted files are opened so, which `MapOwners` watches.
  func addDataPath(to settings: inout ConnectionSettings) {
    settings.passthrough = mayPassThrough && view.dataPath == .passthrough
    settings.sharesDirectMaps = settings.passthrough
  }

  /// What `insula status` shows of it.
  func noteDataPath(_ path: DataPath, in report: inout ServerReport) {
    report.passthrough = path == .passthrough
    guard path != .passthrough else { return }
    report.passthroughReason =
      if path == .refused {
        "refused by the kernel for the store's filesystem"
          + ((try? volume.tree.filesystemKind()).map { " (\($0.name))" } ?? "")
      } else if !isSystem {
        "requires a daemon that runs as root"
      } else if !options.passthrough {
        "turned off by the mount option nopassthrough"
      } else if store.lease != nil {
        "not possible where other machines can take over the store"
      } else {
        "not supported by this kernel"
      }
  }
}
