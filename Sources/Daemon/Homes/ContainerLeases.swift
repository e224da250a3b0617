// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

// A home that other stores can reach has its containers on one machine at a time:
//
//  1. Who runs an app has a lease on each of its containers, in `SOURCE/.insula/leases/HOME`, from before
//     anything is made there until the last view of the app here has ended. So has who purges it.
//  2. A lease is renewed every five seconds, and counts for twenty. When one is over, requests through the
//     views of its apps are refused from that moment on, and the apps are ended.
//  3. Another machine takes the lease at once if it was given back, or if its process has ended on the same
//     machine; else after 45 seconds without a renewal. All that are wanted are waited for together, and what
//     was seen of one is kept for whoever wants it next.
//  4. Who deletes a home has all of its leases until nothing is left of it. Before that they take one on the
//     deletion itself, so that no app begins that they have not seen: an app's leases are had first, then it
//     is looked for a deletion, and then whether the home is still the one that this process has.

/// Keeps leases on containers that other stores can reach.
final class ContainerLeases: Sendable {
  struct Key: Hashable {
    let home: String
    let container: String
  }
  private enum Entry {
    /// It is being taken or given back.
    case underWay
    case held(StoreLease, holders: Int)
  }
  private struct State {
    var entries: [Key: Entry] = [:]
    /// What was seen of those that could not be had.
    var attempts: [Key: LeaseAttempt] = [:]
    /// A home's are renewed together.
    var renewals: [String: LeaseRenewal] = [:]
  }

  private let volume: Volume
  private let state = Condition(State())
  /// The name of the lease on the deletion of a home; no container has it.
  private static let deletion = "deletion"
  /// So many can be renewed in time, one after the other, also by a slow server.
  private static let mostOfHome = 256
  private static let mostAttempts = 4096

  init(_ volume: Volume) { self.volume = volume }

  /// How a lease is had.
  enum Way {
    /// Another machine's is waited for, as long as it may still be renewed.
    case patiently
    /// It is had now or not at all.
    case atOnce
    /// The same, and by nobody else here.
    case alone
    /// Another worker has left it.
    case again
  }

  /// Has leases on containers in a home; nil where nobody else could be in them.
  func take(
    _ containers: [(kind: ContainerKind, identifier: AppIdentifier)], of home: String, _ way: Way
  ) throws(StoreError) -> ContainerHold? {
    guard let target = target(of: home) else { return nil }
    let names = Set(containers.map { Self.name(of: $0.kind, $0.identifier) })
    let used = state.withLock { $0.entries.keys.count { $0.home == home } }
    guard used + names.count <= Self.mostOfHome || way == .again else {
      throw .failed(
        doing: "use more than \(Self.mostOfHome) containers at a time in the home", path: home, errno: .EMFILE
      )
    }
    let hold = ContainerHold(self)
    try take(names, of: home, in: target.source, way, hold)
    if way == .again { return hold }
    try requireNoDeletion(of: home, in: target.source, way)
    try requireThere(home, target)
    return hold
  }

  static func name(of kind: ContainerKind, _ identifier: AppIdentifier) -> String {
    "\(kind.rawValue)-\(identifier.text.lowercased())"
  }

  /// Has leases on all containers that anyone has ever had in a home, at once or not at all; nobody begins to
  /// use another one meanwhile.
  func takeAll(of home: String) throws(StoreError) -> ContainerHold? {
    guard let source = target(of: home)?.source else { return nil }
    let hold = ContainerHold(self)
    try take([Self.deletion], of: home, in: source, .alone, hold)
    let names: Set<String>
    do throws(Errno) {
      names = try source.use { (source) throws(Errno) in
        let leases = try source.openDirectory(at: "\(HomeSource.ownName)/\(HomeSource.leasesName)/\(home)")
        return Set(try leases.fd.entries().map { String(decoding: $0.name, as: UTF8.self) })
      }
    } catch {
      throw StoreError(error, doing: "look for who uses the home", path: home)
    }
    try take(names.subtracting([Self.deletion]), of: home, in: source, .alone, hold)
    return hold
  }

  private func take(
    _ names: Set<String>, of home: String, in source: SharedFD, _ way: Way, _ hold: ContainerHold
  ) throws(StoreError) {
    var left = names.inOrder(by: <)
    var isFirst = true
    while true {
      var refusal: StoreError?
      var missing: [String] = []
      for name in left {
        let key = Key(home: home, container: name)
        switch try look(key, in: source, way) {
        case .had(let lease): hold.add(lease, key)
        case .silent(let host):
          missing.append(name)
          if way != .patiently { refusal = .leased(path: name, host: host) }
        case .renewed(let host):
          missing.append(name)
          // What was seen before may be old.
          if way != .patiently || !isFirst { refusal = .leased(path: name, host: host) }
        }
      }
      if let refusal { throw refusal }
      if missing.isEmpty { return }
      left = missing
      isFirst = false
      // Nothing tells of what another machine does.
      _ = state.wait(milliseconds: 1000) { _ in false }
    }
  }

  /// The home, if other stores can reach it: a disk is one machine's.
  private func target(of home: String) -> RedirectedNames.Target? {
    volume.attached.all.first {
      $0.record.place == .users && $0.record.kind != .disk && $0.record.name.elementsEqual(home.utf8)
    }?.home
  }

  private func look(
    _ key: Key, in source: SharedFD, _ way: Way
  ) throws(StoreError) -> LeaseAttempt.Outcome {
    let isAlone = way == .alone || key.container == Self.deletion
    var attempt = LeaseAttempt()
    let held = state.wait(until: { if case .underWay = $0.entries[key] { false } else { true } }) {
      state -> LeaseAttempt.Outcome? in
      guard case .held(let lease, let holders) = state.entries[key] else {
        state.entries[key] = .underWay
        attempt = state.attempts.removeValue(forKey: key) ?? attempt
        return nil
      }
      if isAlone { return .renewed(host: hostName()) }
      state.entries[key] = .held(lease, holders: holders + 1)
      return .had(lease)
    }
    if let held { return held }
    do throws(StoreError) {
      let outcome = try look(key, in: source, way, &attempt)
      state.change { state in
        if case .had(let lease) = outcome {
          state.entries[key] = .held(lease, holders: 1)
        } else {
          state.entries[key] = nil
          if state.attempts.count >= Self.mostAttempts { state.attempts = [:] }
          state.attempts[key] = attempt
        }
      }
      return outcome
    } catch {
      state.change { $0.entries[key] = nil }
      throw error
    }
  }

  private func look(
    _ key: Key, in source: SharedFD, _ way: Way, _ attempt: inout LeaseAttempt
  ) throws(StoreError) -> LeaseAttempt.Outcome {
    let directory = try directory(of: key, in: source)
    let outcome: LeaseAttempt.Outcome =
      way == .again
      ? .had(try StoreLease(resuming: directory.fd, path: key.container, endsProcess: false))
      : try attempt.look(at: directory.fd, path: key.container, endsProcess: false)
    guard case .had(let lease) = outcome else { return outcome }
    let renewal = state.withLock { state in
      let renewal =
        state.renewals[key.home] ?? LeaseRenewal { DaemonLog.write("the home \(key.home): \($0)") }
      state.renewals[key.home] = renewal
      return renewal
    }
    do throws(Errno) { try renewal.add(lease) } catch {
      lease.release()
      throw StoreError(error, doing: "keep the lease of", path: key.container)
    }
    return outcome
  }

  /// Holders need them no more; those that were their last are given back, which may take as long as a server
  /// needs.
  fileprivate func giveBack(_ keys: [Key]) {
    let last = state.withLock { state in
      keys.compactMap { key -> (Key, StoreLease)? in
        guard case .held(let lease, let holders) = state.entries[key] else { return nil }
        state.entries[key] = holders > 1 ? .held(lease, holders: holders - 1) : .underWay
        return holders > 1 ? nil : (key, lease)
      }
    }
    if last.isEmpty { return }
    let giveBack = { @Sendable [state] in
      for (key, lease) in last {
        lease.release()
        state.change { $0.entries[key] = nil }
      }
    }
    if let thread = try? JoinableThread(name: "leases", giveBack) { thread.detach() } else { giveBack() }
  }

  private func directory(of key: Key, in source: SharedFD) throws(StoreError) -> OwnedFD {
    do throws(Errno) {
      return try source.use { (source) throws(Errno) in
        var directory = try source.openDirectory(HomeSource.ownName)
        for name in [HomeSource.leasesName, key.home, key.container] {
          directory = try directory.fd.openDirectory(name, makingWith: 0o700)
        }
        return directory
      }
    } catch {
      throw StoreError(error, doing: "open the lease of", path: key.container)
    }
  }

  // MARK: Homes that go

  /// Throws if another store deletes the home; one that has died while it did so is waited for.
  private func requireNoDeletion(of home: String, in source: SharedFD, _ way: Way) throws(StoreError) {
    let path = "\(HomeSource.ownName)/\(HomeSource.leasesName)/\(home)/\(Self.deletion)"
    let isUnderWay: Bool
    do throws(Errno) {
      isUnderWay = try source.use { (source) throws(Errno) in
        do throws(Errno) {
          let directory = try source.openDirectory(at: path)
          return try StoreLease.isHeld(in: directory.fd)
        } catch .ENOENT {
          return false
        }
      }
    } catch {
      throw StoreError(error, doing: "look whether somebody deletes the home", path: home)
    }
    guard isUnderWay else { return }
    do throws(StoreError) {
      try take([Self.deletion], of: home, in: source, way, ContainerHold(self))
    } catch {
      guard case .leased = error else { throw error }
      throw .homeIsGone(name: home)
    }
  }

  /// Throws unless the home is still the one that was found when it became a part of the tree.
  private func requireThere(_ home: String, _ target: RedirectedNames.Target) throws(StoreError) {
    do throws(Errno) {
      let own = try target.root.use { (root) throws(Errno) in try root.status() }
      let there = try target.source.use { (source) throws(Errno) in
        // What one machine has of a directory may be old; a new descriptor makes clients ask.
        let source = try source.reopened(O_RDONLY | O_DIRECTORY)
        return try source.fd.status(of: home)
      }
      guard own.st_dev == there.st_dev, own.st_ino == there.st_ino else { throw .ESTALE }
    } catch .ENOENT, .ESTALE {
      throw .homeIsGone(name: home)
    } catch {
      throw StoreError(error, doing: "look for the home", path: home)
    }
  }
}

/// What an app that runs has of leases.
final class ContainerHold: Sendable {
  private struct State {
    var leases: [(StoreLease, ContainerLeases.Key)] = []
  }
  private let leases: ContainerLeases
  private let state = Mutex(State())

  fileprivate init(_ leases: ContainerLeases) { self.leases = leases }

  deinit { end() }

  fileprivate func add(_ lease: StoreLease, _ key: ContainerLeases.Key) {
    state.withLock { $0.leases.append((lease, key)) }
  }

  /// Whether none has been lost.
  var isWhole: Bool { deadlines.allSatisfy { $0.check() } }

  var deadlines: [Deadline] { state.withLock { $0.leases.map(\.0.deadline) } }

  /// Has `body` called when one of them is lost.
  func whenLost(_ body: @escaping @Sendable () -> Void) {
    for deadline in deadlines { deadline.whenOver(body) }
  }

  /// Gives them back, unless another worker goes on with them.
  func end() {
    let left = state.withLock { state in
      defer { state.leases = [] }
      return state.leases
    }
    guard !TakingOver.isUnderWay else { return }
    leases.giveBack(left.map(\.1))
  }
}
