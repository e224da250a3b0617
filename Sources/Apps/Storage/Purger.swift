// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
package import Policy
package import Store

/// Throws away what apps can make again: everybody's temporary files first, then caches, those first of the
/// apps that ran longest ago; never of an app that runs.
package struct Purger {
  private let store: Store
  private let registry: Registry
  private let containers: Containers
  private let observer: any TreeObserver
  private let reaches: (_ path: String) -> Bool
  private let begins: (_ user: UInt32) -> Bool
  private let rest: Pause

  /// Of containers it looks at those alone whose paths it `reaches`, and removes something where `begins`
  /// says so, just before.
  package init(
    _ store: Store, _ registry: Registry, containers: Containers, observer: any TreeObserver,
    reaches: @escaping (_ path: String) -> Bool = { _ in true },
    begins: @escaping (_ user: UInt32) -> Bool = { _ in true }, rest: @escaping Pause
  ) {
    self.reaches = reaches
    self.begins = begins
    self.store = store
    self.registry = registry
    self.containers = containers
    self.observer = observer
    self.rest = rest
  }

  /// Does what is asked; `note` is called with each item when it is done.
  ///
  /// A user throws away their own, root everybody's.
  package func purge(
    _ request: PurgeRequest, by caller: CallerIdentity, isCancelled: () -> Bool = { false },
    note: (PurgeReport.Item) -> Void = { _ in }
  ) throws(AppFailure) -> PurgeReport {
    let isPrivileged = caller.uid == 0 || caller.uid == ProcessID.user
    let user = request.user ?? (isPrivileged ? nil : caller.uid)
    guard isPrivileged || user == caller.uid else {
      throw .notAllowed(doing: "purge what belongs to others in", path: "\(store.path)/tree/Users")
    }
    var items: [PurgeReport.Item] = []
    var wouldFree: Int64 = 0
    var disk = try space()
    for (candidate, record) in try candidates(request, of: user) {
      if isCancelled() {
        guard items.isEmpty else { break }
        throw .cancelled
      }
      if let goal = request.goal, goal.missing(on: disk) <= wouldFree { break }
      guard begins(record.user) else { continue }
      let missing = request.goal.map { $0.missing(on: disk) }
      let item = result(of: candidate, record, enough: missing, isDryRun: request.isDryRun)
      items.append(item)
      if request.isDryRun {
        wouldFree = wouldFree.adding(clamped: item.freed.bytes)
      } else {
        note(item)
        disk = try space()
      }
    }
    let removed = try purgeRemoved(request, of: user, &disk, &wouldFree, isCancelled)
    let missing = request.goal.map { max(0, $0.missing(on: disk) - wouldFree) }
    return PurgeReport(items, removed: removed, disk, missing: missing, isDryRun: request.isDryRun)
  }

  /// Deletes removed containers, those first that were removed first, where a goal can't be met otherwise;
  /// gives what that frees.
  private func purgeRemoved(
    _ request: PurgeRequest, of user: UInt32?, _ disk: inout DiskSpace, _ wouldFree: inout Int64,
    _ isCancelled: () -> Bool
  ) throws(AppFailure) -> FreedSpace? {
    guard let goal = request.goal, request.places == PurgePlace.allCases, request.unusedSince == nil,
      let all = try? registry.removedContainers(of: user),
      let homes = try? RemovedHomes(store, registry)
    else { return nil }
    var freed = FreedSpace()
    for removed in all.reversed()
    where !removed.isBeingDeleted && reaches(removed.container.path) && homes.isTheirs(removed) {
      guard goal.missing(on: disk) > wouldFree, !isCancelled() else { break }
      let identifier = removed.container.identifier
      guard request.apps.isEmpty || request.apps.contains(where: { $0.isSame(as: identifier) }) else {
        continue
      }
      guard begins(removed.container.user) else { continue }
      if request.isDryRun {
        guard let size = try? containers.measure(removed, pause: rest) else { break }
        freed.add(size)
        wouldFree = wouldFree.adding(clamped: size.bytes)
      } else {
        // One that can't be deleted, or not to its end, is left to the thread for purges.
        if let deletion = try? containers.delete(removed, rest: rest) { freed.add(deletion.freed) }
        disk = try space()
      }
    }
    return freed
  }

  /// What may go, in the order in which it goes.
  private func candidates(
    _ request: PurgeRequest, of user: UInt32?
  ) throws(AppFailure) -> [(PurgeCandidate, ContainerRecord)] {
    let noted: [ContainerRecord]
    do throws(StoreError) {
      noted = try registry.containers(kind: .data, user: user, isMarkedForRemoval: false)
      // One that was never used has nothing yet.
      // What others have installed for themselves is as unknown to a user as what nobody has.
      let known =
        noted.map(\.identifier)
        + (request.apps.isEmpty ? [] : try registry.apps(for: user).map(\.identifier))
      for identifier in request.apps where !known.contains(where: { $0.isSame(as: identifier) }) {
        throw StoreError.noApp(identifier: identifier.text)
      }
    } catch {
      throw .store(error)
    }
    let wanted = noted.filter { record in
      reaches(record.path)
        && (request.apps.isEmpty || request.apps.contains { $0.isSame(as: record.identifier) })
    }
    let records = Dictionary(wanted.map { (Owner($0.identifier, $0.user), $0) }) { first, _ in first }
    let candidates = wanted.flatMap { record -> [PurgeCandidate] in
      // Whose turn it is, before anything of theirs is looked at: that may already not get on.
      guard begins(record.user) else { return [] }
      let lastRun = containers.lastRun(record)
      let places = request.places.filter { place in
        guard let since = request.unusedSince else { return true }
        return lastRun ?? .min < since && containers.lastChange(of: place, in: record) < since
      }
      return places.map { PurgeCandidate(record.identifier, of: record.user, $0, lastRun: lastRun) }
    }
    return candidates.inPurgeOrder().compactMap { candidate in
      records[Owner(candidate.app, candidate.user)].map { (candidate, $0) }
    }
  }

  private struct Owner: Hashable {
    let app: AppIdentifier
    let user: UInt32

    init(_ app: AppIdentifier, _ user: UInt32) {
      self.app = app
      self.user = user
    }
  }

  private func result(
    of candidate: PurgeCandidate, _ record: ContainerRecord, enough: Int64?, isDryRun: Bool
  ) -> PurgeReport.Item {
    do throws(Errno) {
      if isDryRun {
        let size = try containers.measure(candidate.place, of: record, pause: rest)
        if size.count > 0, observer.runs(candidate.app, of: candidate.user) { throw .EBUSY }
        return .init(candidate, size)
      }
      let purge = try containers.purge(
        candidate.place, of: record, enough: enough, rest: rest
      ) { (step) throws(Errno) in
        try observer.whileClosed(candidate.app, of: candidate.user, step)
      }
      return .init(candidate, purge)
    } catch .EBUSY {
      return .init(candidate, refusal: "the app is running")
    } catch .EREMOTE {
      return .init(candidate, refusal: "another machine may use it")
    } catch .EINTR {
      return .init(candidate, refusal: "the purge was interrupted; what is left of it is deleted later")
    } catch {
      return .init(candidate, refusal: error.message)
    }
  }

  private func space() throws(AppFailure) -> DiskSpace {
    do throws(Errno) {
      return try store.tree.diskSpace()
    } catch {
      throw .failed(doing: "find out how full the disk is of", path: store.path, errno: error)
    }
  }
}

extension FD {
  /// How full the filesystem is that this is on.
  package func diskSpace() throws(Errno) -> DiskSpace {
    let status = try filesystemStatus()
    func bytes(_ blocks: UInt) -> Int64 {
      let size = UInt64(blocks).multipliedReportingOverflow(by: UInt64(status.f_frsize))
      return size.overflow ? .max : Int64(clamping: size.partialValue)
    }
    return DiskSpace(total: bytes(status.f_blocks), free: bytes(status.f_bavail))
  }
}
