// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// What is noted of a home and lies there, where another one of its name was ejected: all else is that one's.
package struct HomeContents: Sendable {
  /// The paths of bundles.
  fileprivate var apps: Set<ExactText> = []
  /// The numbers of removed containers.
  fileprivate var removed: [String] = []

  /// Nothing can be found any more.
  package static let unknown = HomeContents()
}

extension Store {
  /// What is noted of a home, which is there, and lies in it or beside it.
  package func contents(ofHome name: String, _ registry: Registry) throws(StoreError) -> HomeContents {
    let prefix = "Users/\(name)/"
    var contents = HomeContents()
    for app in try registry.apps() where app.path.utf8.starts(with: prefix.utf8) {
      if (try? tree.status(at: app.path)) != nil { contents.apps.insert(ExactText(app.path)) }
    }
    let object = try object(ofHomeIn: prefix + ".", registry)
    for removed in try registry.removedContainers()
    where removed.container.path.utf8.starts(with: prefix.utf8) && removed.mayBe(from: object)
      && openDirectory(of: removed) != nil
    {
      contents.removed.append(removed.container.uuid)
    }
    return contents
  }
}

extension Registry {
  /// Forgets the apps and containers of a home that is no more, and was on `volume` if that is given.
  ///
  /// Where another one of its name was ejected, only its `contents` are forgotten.
  ///
  /// Nobody may restore what was removed from it. Returns the numbers of that: it lies in the store, where it
  /// is deleted as if its time was over, or beside the home, where whoever deletes the home deletes it.
  @discardableResult
  package func forgetHome(
    _ name: String, on volume: VolumeRecord? = nil, _ contents: HomeContents? = nil
  ) throws(StoreError) -> [String] {
    let prefix = "Users/\(name)/"
    let object: ObjectIdentity? = if let volume { try object(ofHome: volume) } else { nil }
    let removed = try contents == nil ? removedContainers() : []
    let held = removed.filter {
      $0.container.path.utf8.starts(with: prefix.utf8) && (object == nil || $0.home == object)
    }
    // Byte by byte, as the database compares: two names that look alike can be two homes.
    for app in try apps() where app.path.utf8.starts(with: prefix.utf8) {
      if let contents, !contents.apps.contains(ExactText(app.path)) { continue }
      _ = try remove(app.identifier, of: app.user, keepingData: true)
    }
    return try change { (database) throws(StoreError) in
      try database.run(
        "DELETE FROM ejected_homes WHERE name = ?1 AND (?2 IS NULL OR path = ?2)", .bytes(Array(name.utf8)),
        volume.map { .bytes($0.path) } ?? .null)
      if let contents {
        try Self.forgetObjects(inHome: name, of: nil, in: database)
        try Self.dropGrants(inHome: name, besidesEjectedOneIn: database)
        for number in contents.removed {
          try database.run(
            "UPDATE removed SET deleting = 1 WHERE uuid = ?2 AND substr(path, 1, length(?1)) = ?1",
            .text(prefix), .text(number))
        }
        return contents.removed
      }
      try database.run("DELETE FROM containers WHERE substr(path, 1, length(?1)) = ?1", .text(prefix))
      try Self.dropGrants(below: prefix, in: database)
      for removed in held {
        try database.run("UPDATE removed SET deleting = 1 WHERE id = ?", .integer(removed.number))
      }
      return held.map(\.container.uuid)
    }
  }
}

extension RemovedContainer {
  /// Whether nothing says that it is from another home than that one.
  fileprivate func mayBe(from object: ObjectIdentity?) -> Bool {
    home == nil || object == nil || home == object
  }
}
