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
    /// Which home it is: another one may come to have its name.
    let home: RedirectedNames.Number
    let name: String
    let container: String

    /// Byte by byte: two names may look alike.
    static func == (one: Key, other: Key) -> Bool {
      one.home == other.home && one.container.hasSameBytes(as: other.container)
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(home)
      hasher.combine(Array(container.utf8))
    }
  }
  private enum Entry {
    /// It is being taken or given back.
    case underWay
    case held(StoreLease, holders: Int)
    /// It could not be had; what was seen of it.
    case seen(LeaseAcquisition)
  }

  private let volume: Volume
  private let entries = Condition<[Key: Entry]>([:])
  /// A home's are renewed together.
  private let renewals = Mutex<[RedirectedNames.Number: LeaseRenewal]>([:])
  /// The name of the lease on the deletion of a home; no container has it.
  private static let deletion = "deletion"
  /// So many can be renewed in time, one after the other, also by a slow server.
  private static let mostOfHome = 256
  /// Of all homes, and of those that could not be had.
  private static let most = 10_000

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
    let used = entries.withLock { entries in
      entries.count { if case .held = $0.value { $0.key.home == target.number } else { false } }
    }
    guard used + containers.count <= Self.mostOfHome || way == .again else {
      throw .failed(
        doing: "use more than \(Self.mostOfHome) containers at a time in the home", path: home, errno: .EMFILE
      )
    }
    let hold = ContainerHold(self)
    let names = containers.map { Self.name(of: $0.kind, $0.identifier) }
    try take(names, of: home, target, way, hold)
    if way != .again { try requireThere(home, target, way) }
    return hold
  }

  static func name(of kind: ContainerKind, _ identifier: AppIdentifier) -> String {
    "\(kind.rawValue)-\(identifier.text.lowercased())"
  }

  /// Has leases on all containers that anyone has ever had in a home, at once or not at all; nobody begins to
  /// use another one meanwhile.
  func takeAll(of home: String) throws(StoreError) -> ContainerHold? {
    guard let target = target(of: home) else { return nil }
    let hold = ContainerHold(self)
    try take([Self.deletion], of: home, target, .alone, hold)
    let names: [String]
    do throws(Errno) {
      names = try target.source.use { (source) throws(Errno) in
        let leases = try source.openDirectory(at: "\(HomeSource.ownName)/\(HomeSource.leasesName)/\(home)")
        // What is no directory is no lease, whoever has left it there.
        return try leases.fd.possibleDirectories().map { String(decoding: $0, as: UTF8.self) }
      }
    } catch {
      throw StoreError(error, doing: "look for who uses the home", path: home)
    }
    try take(names.filter { $0 != Self.deletion }, of: home, target, .alone, hold)
    return hold
  }

  private func take(
    _ names: [String], of home: String, _ target: RedirectedNames.Target, _ way: Way, _ hold: ContainerHold
  ) throws(StoreError) {
    var left = names.inOrder(by: <)
    var isFirst = true
    while true {
      var refusal: StoreError?
      for name in left {
        let key = Key(home: target.number, name: home, container: name)
        let look = try look(key, in: target.source, way)
        if let lease = look.lease {
          hold.add(lease, key)
          left.removeAll { $0 == name }
        } else if way != .patiently || look.isRenewed && !isFirst {
          // At the first look, what was seen before may be old.
          refusal = .leased(path: name, host: look.host)
        }
      }
      if let refusal { throw refusal }
      if left.isEmpty { return }
      isFirst = false
      // Nothing tells of what another machine does.
      _ = entries.wait(milliseconds: 1000) { _ in false }
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
  ) throws(StoreError) -> StoreLease.Look {
    let isAlone = way == .alone || key.container == Self.deletion
    var acquisition = LeaseAcquisition(.usual)
    let known = entries.wait(until: { if case .underWay = $0[key] { false } else { true } }) {
      entries -> StoreLease.Look? in
      switch entries[key] {
      case .held(let lease, let holders):
        if isAlone { return (nil, hostName(), true) }
        entries[key] = .held(lease, holders: holders + 1)
        return (lease, nil, false)
      case .seen(let seen): acquisition = seen
      case nil, .underWay: if entries.count >= Self.most { return (nil, nil, true) }
      }
      entries[key] = .underWay
      return nil
    }
    if let known { return known }
    do throws(StoreError) {
      let directory = try directory(of: key, in: source)
      let look: StoreLease.Look =
        way == .again
        ? (try StoreLease(resuming: directory.fd, path: key.container, endsProcess: false), nil, false)
        : try StoreLease.look(at: directory.fd, path: key.container, &acquisition, endsProcess: false)
      if let lease = look.lease { try keep(lease, of: key) }
      let entry = look.lease.map { Entry.held($0, holders: 1) } ?? .seen(acquisition)
      entries.change { $0[key] = entry }
      return look
    } catch {
      entries.change { $0[key] = nil }
      throw error
    }
  }

  private func keep(_ lease: StoreLease, of key: Key) throws(StoreError) {
    do throws(Errno) {
      try renewals.withLock { (renewals) throws(Errno) in
        if renewals[key.home]?.add(lease) == true { return }
        renewals = renewals.filter { !$0.value.isOver }
        renewals[key.home] = try LeaseRenewal(lease) { DaemonLog.write("the home \(key.name): \($0)") }
      }
    } catch {
      lease.release()
      throw StoreError(error, doing: "keep the lease of", path: key.container)
    }
  }

  /// Holders need them no more; those that were their last are given back, which may take as long as a server
  /// needs.
  fileprivate func giveBack(_ keys: [Key]) {
    let last = entries.withLock { entries in
      var last: [(Key, StoreLease)] = []
      for key in keys {
        guard case .held(let lease, let holders) = entries[key] else { continue }
        entries[key] = holders > 1 ? .held(lease, holders: holders - 1) : .underWay
        if holders == 1 { last.append((key, lease)) }
      }
      return last
    }
    if last.isEmpty { return }
    let giveBack = { @Sendable [entries] in
      for (key, lease) in last {
        lease.release()
        entries.change { $0[key] = nil }
      }
    }
    if let thread = try? JoinableThread(name: "leases", giveBack) { thread.detach() } else { giveBack() }
  }

  private func directory(of key: Key, in source: SharedFD) throws(StoreError) -> OwnedFD {
    do throws(Errno) {
      return try source.use { (source) throws(Errno) in
        var directory = try source.openDirectory(HomeSource.ownName)
        for name in [HomeSource.leasesName, key.name, key.container] {
          directory = try directory.fd.openDirectory(name, makingWith: 0o700)
        }
        return directory
      }
    } catch {
      throw StoreError(error, doing: "open the lease of", path: key.container)
    }
  }

  /// Throws unless the home is still the one that was found when it became a part of the tree, and nobody
  /// deletes it; who has died while they did so is waited for.
  private func requireThere(
    _ home: String, _ target: RedirectedNames.Target, _ way: Way
  ) throws(StoreError) {
    let isDeleted: Bool?
    do throws(Errno) {
      isDeleted = try target.source.use { (source) throws(Errno) in
        // What one machine has of a directory may be old; a new descriptor makes clients ask.
        let source = try source.reopened(O_RDONLY | O_DIRECTORY)
        let path = "\(HomeSource.ownName)/\(HomeSource.leasesName)/\(home)/\(Self.deletion)"
        if try StoreLease.isHeld(at: path, in: source.fd) { return nil }
        let own = try target.root.use { (root) throws(Errno) in try root.status() }
        let there = try source.fd.status(of: home)
        return own.st_dev != there.st_dev || own.st_ino != there.st_ino
      }
    } catch {
      guard error == .ENOENT || error == .ESTALE else {
        throw StoreError(error, doing: "look for the home", path: home)
      }
      throw .homeIsGone(name: home)
    }
    guard let isDeleted else {
      do throws(StoreError) {
        try take([Self.deletion], of: home, target, way, ContainerHold(self))
      } catch {
        guard case .leased = error else { throw error }
        throw .homeIsGone(name: home)
      }
      return try requireThere(home, target, way)
    }
    if isDeleted { throw .homeIsGone(name: home) }
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
