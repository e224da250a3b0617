// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A version of the system domain, as the registry knows it.
package struct SystemVersion: Codable, Equatable, Sendable {
  /// The digest of its seal; empty for what is not sealed, as a new store's `/System`.
  package let root: [UInt8]
  package let version: String
  package let team: String
  /// When it was installed, in seconds since 1970.
  package let installed: Int64

  package init(root: [UInt8], version: String, team: String, installed: Int64) {
    self.root = root
    self.version = version
    self.team = team
    self.installed = installed
  }

  /// What a store begins with.
  package static let none = SystemVersion(root: [], version: "", team: "", installed: 0)
}

/// The versions of the system domain that a store has.
package struct SystemVersions: Codable, Equatable, Sendable {
  package var current: SystemVersion
  /// What can be gone back to.
  package var previous: SystemVersion?
  /// What is about to become the current one; there while that is done, or was when a process was stopped.
  package var next: SystemVersion?

  package init(current: SystemVersion, previous: SystemVersion? = nil, next: SystemVersion? = nil) {
    self.current = current
    self.previous = previous
    self.next = next
  }
}

extension Registry {
  /// The versions that there are.
  package func systemVersions() throws(StoreError) -> SystemVersions {
    try use { (database) throws(StoreError) in try Self.versions(in: database) }
  }

  /// Notes what is about to become the current version, before anything is done.
  package func beginSystem(_ next: SystemVersion) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run("DELETE FROM systems WHERE role = 'next'")
      try Self.insert(next, as: "next", in: database)
    }
  }

  /// Notes that it has become so: what was current is the previous one now.
  package func finishSystem() throws(StoreError) {
    try change { (database) throws(StoreError) in
      let versions = try Self.versions(in: database)
      guard let next = versions.next else { return }
      try database.run("DELETE FROM systems")
      try Self.insert(next, as: "current", in: database)
      try Self.insert(versions.current, as: "previous", in: database)
    }
  }

  /// Takes back what was about to be done.
  package func abandonSystem() throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run("DELETE FROM systems WHERE role = 'next'")
    }
  }

  private static func versions(in database: borrowing Database) throws(StoreError) -> SystemVersions {
    let rows = try database.rows("SELECT role, root, version, team, installed FROM systems") {
      (row) throws(StoreError) in
      (
        try row.text(0),
        SystemVersion(
          root: try row.bytes(1), version: try row.text(2), team: try row.text(3),
          installed: try row.integer(4))
      )
    }
    func version(_ role: String) -> SystemVersion? { rows.first { $0.0 == role }?.1 }
    return SystemVersions(
      current: version("current") ?? .none, previous: version("previous"), next: version("next"))
  }

  private static func insert(
    _ version: SystemVersion, as role: String, in database: borrowing Database
  ) throws(StoreError) {
    try database.run(
      "INSERT INTO systems (role, root, version, team, installed) VALUES (?, ?, ?, ?, ?)", .text(role),
      .bytes(version.root), .text(version.version), .text(version.team), .integer(version.installed))
  }
}
