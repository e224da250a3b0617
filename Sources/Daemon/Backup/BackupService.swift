// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

/// Gives who makes a backup a view of what is backed up.
final class BackupService: Sendable {
  private let store: Store
  private let server: Server
  private let apps: AppService
  private let mountPoint: String

  init(_ store: Store, _ server: Server, _ apps: AppService, mountPoint: String) {
    self.store = store
    self.server = server
    self.apps = apps
    self.mountPoint = mountPoint
  }

  func answer(_ request: BackupRequest, _ call: ControlCall) -> ControlAnswer {
    let caller = call.caller
    guard caller.isPrivileged || request.user ?? caller.uid == caller.uid else {
      return .refusal("only root may back up what belongs to others", .EPERM)
    }
    // How a view reaches its kernel depends on the store's mode.
    guard server.isSystem == (call.descriptor == nil) else {
      return .refusal("the request does not match the mode of the store", .EINVAL)
    }
    guard let process = call.process else {
      return .refusal("the caller has ended, or this kernel can't identify it", .ESRCH)
    }
    let share: BudgetShare
    do throws(Errno) {
      share = try server.views.room(for: caller.uid)
    } catch {
      return .refusal("this user has too many running apps and backups; end some first", error)
    }
    let begun = LaunchedBy(
      user: caller.uid, group: caller.gid, pid: caller.pid, process: process, share: share)
    return .job(.launches) { reporter in
      ControlReply { () throws(ControlFailure) in
        let extent = try self.extent(request, for: caller)
        do throws(Errno) {
          let encodesLinks = request.encodesLinks ?? false
          if let mount = try self.server.serveBackup(
            extent, encodingLinks: encodesLinks, by: begun, over: call.descriptor)
          {
            reporter.pass(mount)
          }
        } catch {
          throw ControlFailure("can't create a view of \(self.mountPoint): \(error.message)", error)
        }
        return .backup(BackupPlan(mountPoint: self.mountPoint))
      }
    }
  }

  /// What of the tree that is.
  private func extent(
    _ request: BackupRequest, for caller: ControlCaller
  ) throws(ControlFailure) -> BackupExtent {
    let user = request.user ?? (caller.isPrivileged ? nil : caller.uid)
    let paths: [String]
    do throws(StoreError) {
      guard let first = request.apps.first else {
        guard let user else { return .wholeTree }
        return .home(try store.home(of: user))
      }
      guard let registry = try apps.knownRegistry() else { throw .noApp(identifier: first.text) }
      paths = try registry.pathsOfContainers(of: request.apps, user: user)
    } catch {
      throw ControlFailure(error)
    }
    guard !paths.isEmpty else {
      let names = request.apps.map(\.text).joined(separator: ", ")
      throw ControlFailure("nothing to back up: there is no container of \(names) yet", .ENOENT)
    }
    return .containers(paths)
  }
}

extension Registry {
  /// Of apps, with those of their groups and what they keep in iCloud, of one user or of all.
  ///
  /// Which groups those are says the app that each user has: others may have another one of that identifier.
  fileprivate func pathsOfContainers(
    of identifiers: [AppIdentifier], user: UInt32?
  ) throws(StoreError) -> [String] {
    let all = Dictionary(grouping: try containers(user: user, isMarkedForRemoval: false), by: \.user)
    var paths: [String] = []
    for identifier in identifiers {
      var found: [String] = []
      for owner in all.keys.inOrder(by: <) {
        let app = try app(identifier, for: owner)
        found += (all[owner] ?? []).filter { record in
          let wanted: [AppIdentifier] =
            switch record.kind {
            case .data: [identifier]
            case .group: app?.groups ?? []
            case .cloud: app?.clouds ?? []
            }
          return wanted.contains { $0.isSame(as: record.identifier) }
        }.map(\.path)
      }
      if found.isEmpty, try !isInstalled(identifier, for: user) {
        throw StoreError.noApp(identifier: identifier.text)
      }
      paths += found.filter { path in !paths.contains { $0.hasSameBytes(as: path) } }
    }
    return paths
  }

  private func isInstalled(_ identifier: AppIdentifier, for user: UInt32?) throws(StoreError) -> Bool {
    try apps(for: user).contains { $0.identifier.isSame(as: identifier) }
  }
}
