// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A name in a files view that the tree has elsewhere, under another one.
package struct FilesPlace: Equatable, Sendable {
  package let name: [UInt8]
  /// Where it is, below the root of the tree.
  package let path: [[UInt8]]

  package init(_ name: String, _ path: String) {
    self.name = Array(name.utf8)
    self.path = path.utf8.split(separator: UInt8(ascii: "/")).map(Array.init)
  }
}

/// What a files view shows: what a person has, by the names that they know it by.
package struct FilesPlaces: Equatable, Sendable {
  /// What an app keeps for its user, and what a person calls it.
  package struct Documents: Sendable {
    package let identifier: String
    package let displayName: String
    package let path: String

    package init(identifier: String, displayName: String, path: String) {
      self.identifier = identifier
      self.displayName = displayName
      self.path = path
    }
  }

  /// At the top of the view.
  package var top: [FilesPlace] = []
  /// In iCloud Drive.
  package var cloud: [FilesPlace] = []

  package static let cloudDrive = "iCloud Drive"
  /// What in a home is no folder of documents.
  private static let others: Set = ["Applications", "Library"]

  /// `home` is the home's path, `folders` the names of the directories in it.
  package init(home: String, folders: [String], apps: [Documents], clouds: [Documents]) {
    let shown = folders.filter { !$0.hasPrefix(".") && !Self.others.contains($0) && $0 != Self.cloudDrive }
    top = shown.sorted().map { FilesPlace($0, "\(home)/\($0)") }
    if !clouds.isEmpty {
      top.append(FilesPlace(Self.cloudDrive, "\(home)/\(ContainerLayout.directory(of: .cloud))"))
    }
    top += Self.named(apps, besides: shown + [Self.cloudDrive])
    cloud = Self.named(clouds, besides: [])
  }

  /// Gives each a name of its own: what an app calls itself must not pass for another app, or for a folder.
  private static func named(_ all: [Documents], besides taken: [String]) -> [FilesPlace] {
    var uses: [[UInt8]: Int] = [:]
    for name in taken { uses[key(name), default: 0] += 1 }
    let names = all.map { fileName($0.displayName) ?? $0.identifier }
    for name in names { uses[key(name), default: 0] += 1 }
    var places: [FilesPlace] = []
    var given = Set(taken.map(key))
    for (documents, name) in zip(all, names) {
      let own = uses[key(name)] == 1 ? name : "\(name) (\(documents.identifier))"
      // An app may call itself what another one is called by that.
      for name in [own, documents.identifier] where given.insert(key(name)).inserted {
        places.append(FilesPlace(name, documents.path))
        break
      }
    }
    return places.sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  /// Names that a person could not tell apart have the same key.
  private static func key(_ name: String) -> [UInt8] {
    let shown = String.UnicodeScalarView(
      name.unicodeScalars.filter { !$0.properties.isDefaultIgnorableCodePoint && $0 != "\u{2800}" })
    let bytes = Array(String(shown).utf8)
    return foldedName(bytes) ?? bytes
  }

  private static let longest = 64

  /// The name of a file for a display name; nil if it would deceive whoever reads it, or hide the file.
  private static func fileName(_ displayName: String) -> String? {
    let name = displayName.sanitized
    guard name == displayName, !key(name).isEmpty, name.first != ".", name.unicodeScalars.count <= longest,
      name.utf8.first != UInt8(ascii: " "), name.utf8.last != UInt8(ascii: " "),
      name.unicodeScalars.allSatisfy({ $0 == " " || $0.properties.generalCategory != .spaceSeparator })
    else { return nil }
    // As Finder does it.
    return name.replacing("/", by: ":")
  }
}
