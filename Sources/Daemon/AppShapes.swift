// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

/// Tells a volume which containers are those of apps of a Mac's shape.
///
/// It is the app that decides: the user's own before the machine's, as for whatever else is asked about an
/// app. What an app has left that is not installed any more has no such rules.
///
/// Into a home it looks once, on the thread of that home or of its user, and again only where the registry
/// has something else: a disk or server that does not answer, or a user who holds the kernel's lock of a
/// directory, must not hold up what others do. Until somebody has looked, a container is one of no Mac's
/// shape.
final class AppShapes: Sendable {
  private let store: Store
  private let volume: Volume
  /// Held by one after the other, so that the last one notes what there is in the end, and by nobody who
  /// looks into a home.
  private let known = Mutex(Known())

  init(store: Store, volume: Volume) { (self.store, self.volume) = (store, volume) }

  private struct App: Hashable {
    let identifier: AppIdentifier
    let user: UInt32?
  }

  /// What there is, as long as it is what was looked at.
  private struct Known: Sendable {
    var isMac: [Bundle: Bool] = [:]
    var containers: [Container: ContainerHome?] = [:]
  }
  /// `home` is the number of a home outside of the store; nil for the store itself.
  private struct Bundle: Hashable {
    let path: ExactText
    let seal: [UInt8]
    let home: RedirectedNames.Number?
  }
  private struct Container: Hashable {
    let path: ExactText
    let uuid: String
    let inode: UInt64?
    let created: Int64?
    let home: RedirectedNames.Number?
  }
  private struct Unknown {
    /// A user whose containers these are.
    let user: UInt32
    var bundles: Set<Bundle> = []
    var containers: [Container] = []
  }
  /// Stands for what lies in no home.
  private static let nowhere: [UInt8] = []

  /// Where something is unknown in homes, they are waited for for a moment, but for one that has not answered
  /// others.
  ///
  /// `own` is the home on whose thread this is, or whose user waits for it: in the store it is looked at
  /// anew.
  func note(_ registry: Registry, in own: String? = nil) throws(StoreError) {
    let own = own.map { Array($0.utf8) }
    if let own, store.homeElsewhere(named: own) == nil { lookAnew(into: own) }
    var unknown = try noteKnown(registry)
    // In the directories of everyone's apps nobody but administrators changes anything.
    let here = [Self.nowhere] + (own.map { [$0] } ?? [])
    for home in here { if let found = unknown[home] { look(at: found) } }
    if here.contains(where: { unknown[$0] != nil }) { unknown = try noteKnown(registry) }
    let work = HomeWork.ofProcess
    var begun: [HomeWork.Result<Void>] = []
    var users: [UInt32: [[UInt8]]] = [:]
    for (home, found) in unknown where !here.contains(home) {
      guard let place = store.homeElsewhere(named: home) else {
        users[found.user, default: []].append(home)
        continue
      }
      let isHanging = work.hangs(in: place)
      let result = work.begin(in: place, as: isHanging ? "shapes" : nil, changingApps: false) { [self] in
        lookLater(into: home, registry)
      }
      if let result, !isHanging { begun.append(result) }
    }
    let looks = UserWork.ofProcess.begin(for: users.keys, as: "shapes") { [self, users] user in
      for home in users[user] ?? [] { lookLater(into: home, registry) }
    }
    let end = monotonicNanoseconds() &+ UInt64(HomeWork.patienceMilliseconds) * 1_000_000
    for result in begun { _ = result.value(until: end) }
    _ = looks.wait(milliseconds: HomeWork.patienceMilliseconds)
  }

  private func lookLater(into home: [UInt8], _ registry: Registry) {
    do throws(StoreError) {
      guard let unknown = try noteKnown(registry)[home] else { return }
      look(at: unknown)
      _ = try noteKnown(registry)
    } catch {
      DaemonLog.write("can't find out whose containers there are: \(error)")
    }
  }

  private func look(at unknown: Unknown) {
    for bundle in unknown.bundles {
      // In the store it may be there the next time.
      guard let isMac = isOfMacShape(bundle.path.text) ?? (bundle.home == nil ? nil : false) else { continue }
      known.withLock { $0.isMac[bundle] = isMac }
    }
    for container in unknown.containers {
      let found = volume.containerHome(at: container.path.text)
      if found == nil && container.home == nil { continue }
      known.withLock { $0.containers[container] = .some(found) }
    }
  }

  /// What is in a container may have been made again.
  private func lookAnew(into home: [UInt8]) {
    let containers = known.withLock { known in
      known.containers.keys.filter { RecoveryScope.home(in: $0.path.text.utf8) == home }
    }
    for container in containers {
      let found = volume.containerHome(at: container.path.text)
      known.withLock { known in
        if let found { known.containers[container] = .some(found) } else { known.containers[container] = nil }
      }
    }
  }

  /// The same where nothing has come, and nobody is to wait.
  func noteGone(_ registry: Registry) throws(StoreError) { _ = try noteKnown(registry) }

  /// Tells the volume what is known, and forgets what was known of anything else; gives what is unknown, by
  /// homes that are there.
  private func noteKnown(_ registry: Registry) throws(StoreError) -> [[UInt8]: Unknown] {
    try known.withLock { (known) throws(StoreError) in
      let containers = try registry.containers(kind: .data)
      var now = Known()
      var unknown: [[UInt8]: Unknown] = [:]
      var homes: [ContainerHome] = []
      let installed = try containers.isEmpty ? [] : registry.apps()
      let apps = Dictionary(
        installed.map { (App(identifier: $0.identifier, user: $0.user), $0) }
      ) { first, _ in first }
      let elsewhere = try containers.isEmpty ? [] : registry.namesOfHomesElsewhere()
      // One that is away has no number, and nothing in it is anything.
      let numbers = Dictionary(
        uniqueKeysWithValues: elsewhere.map { ($0, store.homeElsewhere(named: $0)?.target?.number) })
      for container in containers {
        let own = apps[App(identifier: container.identifier, user: container.user)]
        guard let app = own ?? apps[App(identifier: container.identifier, user: nil)] else { continue }
        let appHome = RecoveryScope.home(in: app.path.utf8) ?? Self.nowhere
        let appNumber = numbers[appHome]
        if case .some(nil) = appNumber { continue }
        let bundle = Bundle(path: ExactText(app.path), seal: app.seal, home: appNumber ?? nil)
        let isMac = known.isMac[bundle]
        now.isMac[bundle] = isMac
        if isMac == nil {
          unknown[appHome, default: Unknown(user: container.user)].bundles.insert(bundle)
        }
        if isMac == false { continue }
        let home = RecoveryScope.home(in: container.path.utf8) ?? Self.nowhere
        let number = numbers[home]
        if case .some(nil) = number { continue }
        let place = Container(
          path: ExactText(container.path), uuid: container.uuid, inode: container.identity?.inode,
          created: container.identity?.created, home: number ?? nil)
        if let found = known.containers[place] {
          now.containers[place] = .some(found)
          if isMac == true, let found { homes.append(found) }
        } else {
          unknown[home, default: Unknown(user: container.user)].containers.append(place)
        }
      }
      known = now
      volume.noteMacContainers(homes)
      return unknown
    }
  }

  /// Nil for a bundle that can't be looked at.
  private func isOfMacShape(_ path: String) -> Bool? {
    guard let bundle = try? store.tree.openDirectory(at: path) else { return nil }
    return (try? CodeBundle.shape(of: bundle.fd)) == .contents
  }
}
