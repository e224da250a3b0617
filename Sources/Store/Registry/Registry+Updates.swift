// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import JSON
package import Policy

// Versions of apps that wait until the installed ones run no more: one for each app at most.

extension Registry {
  /// Notes a version that waits, instead of one that did; throws if the app is not any more what it was, or
  /// is being changed just now.
  package func note(_ waiting: WaitingUpdate) throws(StoreError) {
    try change { (database) throws(StoreError) in
      let (app, before) = (waiting.app, waiting.before)
      let number = try Self.number(of: before.identifier, of: before.user, in: database)
      guard let number, try Self.find(before.identifier, of: before.user, in: database) == before else {
        throw .appBusy(identifier: before.identifier.text)
      }
      for other in try Self.intents(in: database) where other.intent.isAbout(before) {
        throw .appBusy(identifier: before.identifier.text)
      }
      guard app.identifier.isSame(as: before.identifier), app.user == before.user,
        let encoded = try? JSONText.encode(waiting)
      else {
        throw .registryFailed(
          doing: "record an update in", path: database.path,
          message: "the update of \(app.identifier.text) can't be recorded")
      }
      try database.run(
        "INSERT OR REPLACE INTO updates (app, waiting) VALUES (?, ?)", .integer(number),
        .text(String(decoding: encoded, as: UTF8.self)))
    }
  }

  /// All versions that wait.
  package func waitingUpdates() throws(StoreError) -> [WaitingUpdate] {
    try use { (database) throws(StoreError) in try Self.waitingUpdates(in: database) }
  }

  /// The version that waits for the app of exactly that user, or of the machine.
  package func waitingUpdate(
    of identifier: AppIdentifier, for user: UInt32?
  ) throws(StoreError) -> WaitingUpdate? {
    try use { (database) throws(StoreError) in
      try Self.waitingUpdate(of: identifier, for: user, in: database)
    }
  }

  /// Forgets a version that waits, unless another one has taken its place; whether it was there.
  @discardableResult
  package func drop(_ waiting: WaitingUpdate) throws(StoreError) -> Bool {
    try change { (database) throws(StoreError) in
      let app = waiting.app
      let known = try Self.waitingUpdate(of: app.identifier, for: app.user, in: database)
      guard known?.name == waiting.name,
        let number = try Self.number(of: app.identifier, of: app.user, in: database)
      else { return false }
      try database.run("DELETE FROM updates WHERE app = ?", .integer(number))
      return true
    }
  }

  static func waitingUpdate(
    of identifier: AppIdentifier, for user: UInt32?, in database: borrowing Database
  ) throws(StoreError) -> WaitingUpdate? {
    guard let number = try number(of: identifier, of: user, in: database) else { return nil }
    let path = database.path
    return try database.rows("SELECT waiting FROM updates WHERE app = ?", .integer(number)) {
      (row) throws(StoreError) in try decode(row.text(0), path)
    }.first
  }

  private static func waitingUpdates(
    in database: borrowing Database
  ) throws(StoreError) -> [WaitingUpdate] {
    let path = database.path
    return try database.rows("SELECT waiting FROM updates ORDER BY app") {
      (row) throws(StoreError) in try decode(row.text(0), path)
    }
  }

  private static func decode(_ text: String, _ path: String) throws(StoreError) -> WaitingUpdate {
    guard let waiting = try? JSONText.decode(WaitingUpdate.self, from: Array(text.utf8)),
      (try? waiting.name.withName({ $0.isComponent })) == true
    else {
      throw .registryDamaged(path: path, what: "an update that waits can't be read")
    }
    return waiting
  }
}
