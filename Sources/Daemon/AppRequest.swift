// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
package import Policy
package import Store

/// What is to be changed about the apps of a store: asked of a daemon, or done by the command itself where
/// none runs.
///
/// A bundle, and the directory of a system domain, comes as a descriptor.
package enum AppRequest: Equatable, Sendable {
  /// Install the bundle under that name.
  case install(named: String, for: AppDomain)
  /// With `whenClosed`, an app that runs is updated when it ends.
  case update(named: String, for: AppDomain, allowsDowngrade: Bool, whenClosed: Bool)
  /// Give up the update that waits until the app ends.
  case cancelUpdate(AppIdentifier, of: AppDomain)
  case uninstall(AppIdentifier, of: AppDomain, keepsData: Bool)
  /// Put a copy that the caller has made into an app's Inbox.
  case deliver(Delivery)
  /// Put a container that the caller has made of a package in the place of the one that there is.
  case replaceData(NewData)
  /// Put a directory in the place of the system domain; its name is for messages.
  case updateSystem(named: String)
  case rollbackSystem
  /// Throw away what apps can make again.
  case purge(PurgeRequest)
  /// List the removed containers of a user, or of all.
  case removed(of: UInt32?)
  /// Put a removed container back to where it was.
  case restoreRemoved(Int64)
  /// Delete a removed container for good, or all of a user.
  case deleteRemoved(Int64?, of: UInt32?)
  /// Forget what counts for a user, unless they have a home.
  case forget(FormerUser)
  /// Have what lies in a home be noted for its owner, before the home is removed; or delete what was removed
  /// from it.
  case prepareHomeRemoval(String, deletesRemoved: Bool)
  /// Forget the home of that name that was ejected, or of several the one that was in a place.
  case forgetEjectedHome(String, from: String?)
  /// Assign a team to the root with that fingerprint, and to no other.
  case assign(team: String, root: [UInt8])

  /// What it has to wait for.
  var queue: ControlQueue {
    switch self {
    case .purge, .deleteRemoved, .prepareHomeRemoval(_, true): .purges
    case .removed: .queries
    default: .changes
    }
  }
}

extension AppRequest: Codable {
  private enum Action: String, Codable {
    case install, update, cancelUpdate, uninstall, updateSystem, rollbackSystem, deliver, replaceData, purge
    case removed, restoreRemoved, deleteRemoved, forget, forgetHome, forgetEjectedHome
    case forgetEjectedHomeOfSeveral
    case prepareHomeRemoval, assign
  }

  private enum Key: String, CodingKey {
    case action, bundle, identifier, delivery, newData, home, allowsDowngrade, keepsData
    case whenClosed, purge, utilities, network, number, user, successor, team, root
    case deletesRemoved, source
  }

  package init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    func name() throws -> String { try fields.decode(String.self, forKey: .bundle) }
    func flag(_ key: Key) throws -> Bool { try fields.decodeIfPresent(Bool.self, forKey: key) ?? false }
    func domain() throws -> AppDomain {
      if let home = try fields.decodeIfPresent(String.self, forKey: .home) { return .user(home) }
      return try flag(.utilities) ? .utilities : try flag(.network) ? .network : .everyone
    }
    func former(isHomeAlone: Bool) throws -> FormerUser {
      FormerUser(
        try fields.decode(UInt32.self, forKey: .user),
        removedHome: try fields.decodeIfPresent(String.self, forKey: .home), isHomeAlone: isHomeAlone,
        successor: try fields.decodeIfPresent(String.self, forKey: .successor))
    }
    self =
      switch try fields.decode(Action.self, forKey: .action) {
      case .install: .install(named: try name(), for: try domain())
      case .update:
        .update(
          named: try name(), for: try domain(), allowsDowngrade: try flag(.allowsDowngrade),
          whenClosed: try flag(.whenClosed))
      case .cancelUpdate:
        .cancelUpdate(try fields.decode(AppIdentifier.self, forKey: .identifier), of: try domain())
      case .uninstall:
        .uninstall(
          try fields.decode(AppIdentifier.self, forKey: .identifier), of: try domain(),
          keepsData: try flag(.keepsData))
      case .deliver: .deliver(try fields.decode(Delivery.self, forKey: .delivery))
      case .replaceData: .replaceData(try fields.decode(NewData.self, forKey: .newData))
      case .updateSystem: .updateSystem(named: try name())
      case .rollbackSystem: .rollbackSystem
      case .purge: .purge(try fields.decode(PurgeRequest.self, forKey: .purge))
      case .removed: .removed(of: try fields.decodeIfPresent(UInt32.self, forKey: .user))
      case .restoreRemoved: .restoreRemoved(try fields.decode(Int64.self, forKey: .number))
      case .deleteRemoved:
        .deleteRemoved(
          try fields.decodeIfPresent(Int64.self, forKey: .number),
          of: try fields.decodeIfPresent(UInt32.self, forKey: .user))
      case .forget: .forget(try former(isHomeAlone: false))
      case .forgetHome: .forget(try former(isHomeAlone: true))
      case .prepareHomeRemoval:
        .prepareHomeRemoval(
          try fields.decode(String.self, forKey: .home), deletesRemoved: try flag(.deletesRemoved))
      case .forgetEjectedHome, .forgetEjectedHomeOfSeveral:
        .forgetEjectedHome(
          try fields.decode(String.self, forKey: .home),
          from: try fields.decodeIfPresent(String.self, forKey: .source))
      case .assign:
        .assign(
          team: try fields.decode(String.self, forKey: .team),
          root: try fields.decode([UInt8].self, forKey: .root))
      }
  }

  package func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    func encode(_ action: Action, named name: String? = nil, for domain: AppDomain = .everyone) throws {
      try fields.encode(action, forKey: .action)
      try fields.encodeIfPresent(name, forKey: .bundle)
      switch domain {
      case .everyone: break
      case .utilities: try fields.encode(true, forKey: .utilities)
      case .network: try fields.encode(true, forKey: .network)
      case .user(let home): try fields.encode(home, forKey: .home)
      }
    }
    // A daemon of an earlier version wants both in every request.
    var (allowsDowngrade, keepsData) = (false, false)
    switch self {
    case .install(let name, let domain): try encode(.install, named: name, for: domain)
    case .update(let name, let domain, let downgrades, let whenClosed):
      try encode(.update, named: name, for: domain)
      allowsDowngrade = downgrades
      if whenClosed { try fields.encode(true, forKey: .whenClosed) }
    case .cancelUpdate(let identifier, let domain):
      try encode(.cancelUpdate, for: domain)
      try fields.encode(identifier, forKey: .identifier)
    case .uninstall(let identifier, let domain, let keeps):
      try encode(.uninstall, for: domain)
      try fields.encode(identifier, forKey: .identifier)
      keepsData = keeps
    case .deliver(let delivery):
      try encode(.deliver, for: .user(delivery.home))
      try fields.encode(delivery, forKey: .delivery)
    case .replaceData(let newData):
      try encode(.replaceData, for: .user(newData.home))
      try fields.encode(newData, forKey: .newData)
    case .updateSystem(let name): try encode(.updateSystem, named: name)
    case .rollbackSystem: try encode(.rollbackSystem)
    case .purge(let request):
      try encode(.purge)
      try fields.encode(request, forKey: .purge)
    case .removed(let user):
      try encode(.removed)
      try fields.encodeIfPresent(user, forKey: .user)
    case .restoreRemoved(let number):
      try encode(.restoreRemoved)
      try fields.encode(number, forKey: .number)
    case .deleteRemoved(let number, let user):
      try encode(.deleteRemoved)
      try fields.encodeIfPresent(number, forKey: .number)
      try fields.encodeIfPresent(user, forKey: .user)
    case .forget(let former):
      // A daemon of an earlier version would forget the user as well.
      try encode(former.isHomeAlone ? .forgetHome : .forget)
      try fields.encode(former.user, forKey: .user)
      try fields.encodeIfPresent(former.removedHome, forKey: .home)
      try fields.encodeIfPresent(former.successor, forKey: .successor)
    case .prepareHomeRemoval(let name, let deletesRemoved):
      try encode(.prepareHomeRemoval)
      try fields.encode(name, forKey: .home)
      try fields.encode(deletesRemoved, forKey: .deletesRemoved)
    case .forgetEjectedHome(let name, let source):
      // A daemon of an earlier version would forget all of them.
      try encode(source == nil ? .forgetEjectedHome : .forgetEjectedHomeOfSeveral)
      try fields.encode(name, forKey: .home)
      try fields.encodeIfPresent(source, forKey: .source)
    case .assign(let team, let root):
      try encode(.assign)
      try fields.encode(team, forKey: .team)
      try fields.encode(root, forKey: .root)
    }
    try fields.encode(allowsDowngrade, forKey: .allowsDowngrade)
    try fields.encode(keepsData, forKey: .keepsData)
  }
}
