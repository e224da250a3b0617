// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Where in what an app has a directory is, as far as that decides what its contents count as.
package enum StorageZone: Equatable, Sendable {
  /// A container of an app, what is the app's home in it, and two directories of that.
  case container, home, library, support
  /// A directory of that part, and all below.
  case part(StoragePart)
  /// A container that was removed, and all below.
  case removed
  /// Data of which a person is advised to do something, and all below.
  case advised(StorageAdvice.Kind)

  /// What the directory itself, and its files, count as.
  package var part: StoragePart { if case .part(let part) = self { part } else { .data } }

  /// Whether what is in it goes with a purge.
  package var isPurged: Bool { self == .part(.caches) || self == .part(.tmp) || self == .removed }

  /// What a name in it is.
  package func child(
    _ name: [UInt8], isDirectory: Bool, isLink: Bool, of app: StorageOwner
  ) -> StorageZone {
    switch self {
    case .container:
      if name.elementsEqual(ContainerLayout.dataName.utf8), isDirectory { return .home }
      return name.elementsEqual(ContainerLayout.metadataName.utf8) ? .part(.data) : .advised(.misplaced)
    case .home:
      if isDirectory, name.elementsEqual("Documents".utf8) { return .part(.documents) }
      if isDirectory, name.elementsEqual("Library".utf8) { return .library }
      if isDirectory, name.elementsEqual("tmp".utf8) { return .part(.tmp) }
      // There is a link to the app's bundle.
      return isLink || ContainerLayout.isOwnName(name) ? .part(.data) : .advised(.misplaced)
    case .library:
      if isDirectory, name.elementsEqual("Caches".utf8) { return .part(.caches) }
      if isDirectory, name.elementsEqual("Application Support".utf8) { return .support }
      return isDirectory || isLink ? .part(.data) : .advised(.misplaced)
    case .support: return isDirectory && app.isNamed(name) ? .part(.data) : .advised(.unnamedSupport)
    case .part, .removed, .advised: return self
    }
  }
}

/// Whose things are looked at.
package struct StorageOwner: Equatable, Sendable {
  package let user: UInt32?
  private let names: Set<String>

  /// `name` is what the app is called.
  package init(user: UInt32?, app: AppIdentifier? = nil, name: String? = nil) {
    self.user = user
    guard let app else {
      names = []
      return
    }
    // com.example.editor may be called so, com.example, example, or by the app's name.
    let parts = app.text.lowercased().split(separator: ".")
    var names: Set<String> = [parts.joined(separator: ".")]
    if parts.count > 1 { names.formUnion([String(parts[1]), parts[..<2].joined(separator: ".")]) }
    if let name, !name.isEmpty { names.insert(name.lowercased()) }
    self.names = names
  }

  /// Whether a directory in Application Support is called by the app, or by whoever makes it.
  package func isNamed(_ name: [UInt8]) -> Bool {
    // Longer than what an app can be called is no name of one, and need not be looked at.
    guard name.count <= 255 else { return false }
    return names.contains(String(decoding: name, as: UTF8.self).lowercased())
  }
}
