// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

/// Tells a volume which containers are those of apps of a Mac's shape.
///
/// It is the app that decides: the user's own before the machine's, as for whatever else is asked about an
/// app. What an app has left that is not installed any more has no such rules.
struct AppShapes {
  let store: Store
  let volume: Volume

  private struct Key: Hashable {
    let identifier: AppIdentifier
    let user: UInt32?
  }

  func note(_ registry: Registry) throws(StoreError) {
    let containers = try registry.containers(kind: .data)
    guard !containers.isEmpty else { return volume.noteMacContainers(at: []) }
    let apps = Dictionary(
      try registry.apps().map { (Key(identifier: $0.identifier, user: $0.user), $0.path) }
    ) { first, _ in first }
    var known: [ExactText: Bool] = [:]
    let paths = containers.compactMap { container -> String? in
      let own = apps[Key(identifier: container.identifier, user: container.user)]
      guard let app = own ?? apps[Key(identifier: container.identifier, user: nil)] else { return nil }
      let isMac = known[ExactText(app)] ?? isOfMacShape(app)
      known[ExactText(app)] = isMac
      return isMac ? container.path : nil
    }
    volume.noteMacContainers(at: paths)
  }

  /// A bundle that can't be looked at is of none.
  private func isOfMacShape(_ path: String) -> Bool {
    guard let bundle = try? store.tree.openDirectory(at: path) else { return false }
    return (try? CodeBundle.shape(of: bundle.fd)) == .contents
  }
}
