// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
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
//     machine; else after 45 seconds without a renewal.

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

  private let volume: Volume
  private let entries = Condition<[Key: Entry]>([:])

  init(_ volume: Volume) { self.volume = volume }

  /// How a lease is had.
  enum Way {
    /// Another machine's is waited for, as long as it may still be renewed.
    case patiently
    /// It is had now or not at all.
    case atOnce
    /// Another worker has left it.
    case again
  }

  /// Has leases on containers in a home; nil where nobody else could be in them.
  func take(
    _ containers: [(kind: ContainerKind, identifier: AppIdentifier)], of home: String, _ way: Way
  ) throws(StoreError) -> ContainerHold? {
    guard let source = source(of: home) else { return nil }
    let names = containers.map { "\($0.kind.rawValue)-\($0.identifier.text.lowercased())" }
    return try take(Set(names), of: home, in: source, way)
  }

  /// Has leases on all containers that anyone has ever had in a home, at once or not at all.
  func takeAll(of home: String) throws(StoreError) -> ContainerHold? {
    guard let source = source(of: home) else { return nil }
    let known = try? source.use { (source) throws(Errno) in
      let leases = try source.openDirectory(at: "\(HomeSource.ownName)/\(HomeSource.leasesName)/\(home)")
      return try leases.fd.entries().map { String(decoding: $0.name, as: UTF8.self) }
    }
    return try take(Set(known ?? []), of: home, in: source, .atOnce)
  }

  private func take(
    _ names: Set<String>, of home: String, in source: SharedFD, _ way: Way
  ) throws(StoreError) -> ContainerHold {
    let hold = ContainerHold(self)
    // In one order, so that nobody waits for a lease of somebody who waits for theirs.
    for name in names.inOrder(by: <) {
      let key = Key(home: home, container: name)
      hold.add(try take(key, in: source, way), key)
    }
    return hold
  }

  /// The directory that a home is in, if other stores can reach it: a disk is one machine's.
  private func source(of home: String) -> SharedFD? {
    volume.attached.all.first {
      $0.record.place == .users && $0.record.kind != .disk && $0.record.name.elementsEqual(home.utf8)
    }?.home?.source
  }

  private func take(_ key: Key, in source: SharedFD, _ way: Way) throws(StoreError) -> StoreLease {
    let held = entries.wait(until: { if case .underWay = $0[key] { false } else { true } }) {
      entries -> StoreLease? in
      guard case .held(let lease, let holders) = entries[key] else {
        entries[key] = .underWay
        return nil
      }
      entries[key] = .held(lease, holders: holders + 1)
      return lease
    }
    if let held { return held }
    do throws(StoreError) {
      let lease = try Self.lease(on: key, in: source, way)
      entries.change { $0[key] = .held(lease, holders: 1) }
      return lease
    } catch {
      entries.change { $0[key] = nil }
      throw error
    }
  }

  /// A holder needs it no more; the last one's is given back, which may take as long as a server needs.
  fileprivate func giveBack(_ key: Key) {
    let last = entries.withLock { entries -> StoreLease? in
      guard case .held(let lease, let holders) = entries[key] else { return nil }
      entries[key] = holders > 1 ? .held(lease, holders: holders - 1) : .underWay
      return holders > 1 ? nil : lease
    }
    guard let last else { return }
    let giveBack = { @Sendable [entries] in
      last.release()
      entries.change { $0[key] = nil }
    }
    if let thread = try? JoinableThread(name: "leases", giveBack) { thread.detach() } else { giveBack() }
  }

  private static func lease(on key: Key, in source: SharedFD, _ way: Way) throws(StoreError) -> StoreLease {
    let directory = try directory(of: key, in: source)
    let name = key.container
    let lease =
      switch way {
      case .again: try StoreLease(resuming: directory.fd, path: name, endsProcess: false)
      case .patiently, .atOnce:
        try StoreLease(acquiring: directory.fd, path: name, isHurried: way == .atOnce, endsProcess: false)
      }
    do throws(Errno) {
      try lease.startRenewing { DaemonLog.write("\(name) in the home \(key.home): \($0)") }
    } catch {
      lease.release()
      throw StoreError(error, doing: "keep the lease of", path: name)
    }
    return lease
  }

  private static func directory(of key: Key, in source: SharedFD) throws(StoreError) -> OwnedFD {
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
    for (_, key) in left { leases.giveBack(key) }
  }
}
