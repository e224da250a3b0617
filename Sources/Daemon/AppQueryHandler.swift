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

  func apps(of user: UInt32?) -> ControlReply {
    answer(about: user) { (queries, user) throws(StoreError) in .apps(try queries.apps(for: user)) }
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
      if hasMade { apps.noteContainers() }
      return .path(path)
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
