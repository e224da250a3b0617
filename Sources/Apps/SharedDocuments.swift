// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Bundles
internal import LinuxIO
package import Policy
package import Store

/// What a user's apps keep for them where they find it: the Documents of those that share theirs, and what is
/// in iCloud.
package struct SharedDocuments: Sendable {
  package let apps: [FilesPlaces.Documents]
  package let clouds: [FilesPlaces.Documents]

  package init() { (apps, clouds) = ([], []) }

  /// `home` is the path of the user's home.
  package init(
    of user: UInt32, home: String, in store: Store, _ registry: Registry, _ names: DisplayNames
  ) throws(StoreError) {
    let documents = try registry.documents(for: user)
    var shown: [ExactText: String] = [:]
    func displayName(_ path: String, otherwise name: String) -> String {
      if let known = shown[ExactText(path)] { return known }
      let found = Self.displayName(of: path, in: store, names) ?? name
      shown[ExactText(path)] = found
      return found
    }
    apps = Self.shared(by: documents, home: home) { displayName($0.path, otherwise: $0.name) }
    let paths = Set(documents.map { ExactText($0.path) })
    var clouds: [FilesPlaces.Documents] = []
    for app in try registry.apps() where paths.contains(ExactText(app.path)) {
      // Apps may share one; it has the name of the app that was there first.
      for cloud in app.clouds where !clouds.contains(where: { $0.identifier == cloud.text }) {
        clouds.append(Self.place(cloud, .cloud, home, displayName(app.path, otherwise: app.name)))
      }
    }
    self.clouds = clouds
  }

  /// The Documents of those that share theirs.
  package static func shared(
    by apps: [AppDocuments], home: String, displayName: (AppDocuments) -> String
  ) -> [FilesPlaces.Documents] {
    apps.compactMap { app in
      guard AppDeclarations(text: app.declarations).sharesDocuments,
        let identifier = AppIdentifier(app.identifier)
      else { return nil }
      return place(identifier, .data, home, displayName(app))
    }
  }

  private static func place(
    _ identifier: AppIdentifier, _ kind: ContainerKind, _ home: String, _ displayName: String
  ) -> FilesPlaces.Documents {
    let documents = kind == .data ? ContainerLayout.documentsPath : "Documents"
    return FilesPlaces.Documents(
      identifier: identifier.text, displayName: displayName,
      path: "\(home)/\(ContainerLayout.path(of: identifier, kind))/\(documents)")
  }

  private static func displayName(of path: String, in store: Store, _ names: DisplayNames) -> String? {
    guard let bundle = try? store.tree.openDirectory(at: path) else { return nil }
    return names.name(
      of: DisplayNames.Named(
        path.splitAtName.name, FinderInfo(), isDocument: false, hidesExtension: true,
        contents: DirectoryContents(of: bundle.fd)))
  }
}
