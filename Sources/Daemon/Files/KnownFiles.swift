// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

/// What a user's files view shows: read when somebody looks, and of apps only after these have changed.
final class KnownFiles: Sendable {
  private struct State {
    var version = -1
    var documents = SharedDocuments()
    var places: FilesPlaces?
    /// When names in the home were last changed before they were read.
    var changed: Int64?
  }

  private let store: Store
  private let volume: Volume
  private let registry: GrantService.RegistrySource
  private let user: UInt32
  /// The path of the user's home.
  private let home: String
  private let names: DisplayNames
  private let state = Mutex(State())

  init(
    _ store: Store, _ volume: Volume, _ registry: @escaping GrantService.RegistrySource, user: UInt32,
    home: String, _ languages: Languages
  ) {
    self.store = store
    self.volume = volume
    self.registry = registry
    self.user = user
    self.home = "Users/\(home)"
    names = DisplayNames(languages)
  }

  /// Nil if nothing can be read.
  func places(_ look: FilesTop.Look) -> FilesPlaces? {
    guard let registry = try? registry(false) else { return folders().map { made(SharedDocuments(), $0) } }
    let version = registry.typesVersion(for: user)
    return state.withLock { state in
      if state.version != version {
        let read = try? SharedDocuments(of: user, home: home, in: store, registry, names)
        guard let read else { return state.places }
        state.documents = read
        state.version = version
      } else if let places = state.places {
        switch look {
        case .known: return places
        case .ifChanged: if let changed = state.changed, changed == self.changed { return places }
        case .again: break
        }
      }
      state.changed = changed
      guard let folders = folders() else { return state.places }
      state.places = made(state.documents, folders)
      return state.places
    }
  }

  private func made(_ documents: SharedDocuments, _ folders: [String]) -> FilesPlaces {
    FilesPlaces(home: home, folders: folders, apps: documents.apps, clouds: documents.clouds)
  }

  private var changed: Int64? { (try? store.tree.status(at: home))?.modifiedNanoseconds }

  /// As many as a person could look through.
  private static let mostFolders = 1000

  /// The directories in the home that are not hidden from people.
  private func folders() -> [String]? {
    guard let directory = try? store.tree.openDirectory(at: home) else { return nil }
    let entries = try? directory.fd.entries(atMost: Self.mostFolders) { name, type in
      type == UInt8(DT_DIR) && name.buffer.first != UInt8(ascii: ".")
    }
    return entries.map { entries in
      entries.map(\.name).filter { !volume.isHidden($0, in: directory.fd) }.map {
        String(decoding: $0, as: UTF8.self)
      }
    }
  }
}
