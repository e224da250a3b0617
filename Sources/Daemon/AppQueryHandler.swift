// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// Answers queries about apps, for callers who may not be able to read the store.
struct AppQueryHandler {
  let store: Store
  let apps: AppService
  let caller: ControlCaller

  /// All, or what one reply holds of those after so many.
  func apps(of user: UInt32?, after: Int?) -> ControlReply {
    answer(about: user) { (queries, user) throws(StoreError) in
      let apps = try queries.apps(for: user)
      guard let after else { return .apps(apps) }
      var room = ControlLine.pageBytes
      return .apps(
        apps.dropFirst(max(0, after)).prefix { app in
          defer { room -= ControlLine.encode(app).count }
          return room > 0
        })
    }
  }

  func app(_ identifier: AppIdentifier, of user: UInt32?) -> ControlReply {
    answer(about: user) { (queries, user) throws(StoreError) in
      .apps([try queries.app(identifier, for: user)])
    }
  }

  /// Makes what is missing of its containers.
  func path(of place: AppPlace, _ identifier: AppIdentifier, of user: UInt32?) -> ControlReply {
    answer(about: user) { (queries, user) throws(StoreError) in
      var hasMade = false
      let path = try queries.path(of: place, identifier, for: user ?? caller.uid) {
        () throws(StoreError) in
        hasMade = true
        return try apps.containers()
      }
      if hasMade { apps.noteContainers(in: try apps.store.home(of: user ?? caller.uid)) }
      return .path(path)
    }
  }

  /// What apps say of types and documents, and what the user has chosen.
  func documents(of user: UInt32?, after: Int) -> ControlReply {
    answer(about: user) { (_, user) throws(StoreError) in
      .documents(try DocumentsPage(apps.knownRegistry(), for: user ?? caller.uid, after: after))
    }
  }

  /// Notes which app a user wants documents of a type to be opened by; with none, that any may be.
  func choose(_ identifier: AppIdentifier?, for type: String, of user: UInt32?) -> ControlReply {
    guard !apps.isReadOnly else { return .failure(ControlFailure(StoreError.mountedReadOnly)) }
    guard type.utf8.count <= 200 else { return .failure(ControlFailure("there is no such type", .EINVAL)) }
    return answer(about: user) { (_, user) throws(StoreError) in
      let user = user ?? caller.uid
      if identifier != nil { try Registry.requireAccount(user, waiting: true) }
      let registry = try apps.openRegistry()
      var app: InstalledApp?
      if let identifier {
        app = try registry.app(identifier, for: user)
        guard app != nil else { throw StoreError.noApp(identifier: identifier.text) }
      }
      try registry.choose(app, for: type, of: user)
      return .done
    }
  }

  private func answer(
    about user: UInt32?, _ body: (AppQueries, UInt32?) throws(StoreError) -> ControlReply
  ) -> ControlReply {
    guard caller.isPrivileged || user == nil || user == caller.uid else {
      return .failure(ControlFailure("only root may ask about the apps of other users", .EPERM))
    }
    do throws(StoreError) {
      let queries = AppQueries(store, try apps.knownRegistry())
      return try body(queries, caller.isPrivileged ? user : caller.uid)
    } catch {
      return .failure(ControlFailure(error))
    }
  }
}
