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
/// Into a home outside of the store it looks once, on the thread of that home, and again only where the
/// registry has something else: a disk or server that does not answer must not hold up what others do.
final class AppShapes: Sendable {
  private let store: Store
  private let volume: Volume
  /// Held by one after the other, so that the last one notes what there is in the end, and by nobody who
  /// looks into a home outside of the store.
  private let known = Mutex(Known())

  init(store: Store, volume: Volume) { (self.store, self.volume) = (store, volume) }

  private struct App: Hashable {
    let identifier: AppIdentifier
    let user: UInt32?
  }

  /// What is in homes outside of the store, as long as it is what was looked at.
  private struct Known: Sendable {
    var isMac: [Bundle: Bool] = [:]
    var containers: [Container: ContainerHome?] = [:]
  }
  private struct Bundle: Hashable {
    let path: ExactText
    let seal: [UInt8]
    let home: RedirectedNames.Number
  }
  private struct Container: Hashable {
    let path: ExactText
    let uuid: String
    let inode: UInt64?
    let created: Int64?
    let home: RedirectedNames.Number
  }
  private struct Unknown {
    var bundles: Set<Bundle> = []
    var containers: [Container] = []
  }

  /// Where something is unknown in homes outside of the store, they are waited for for a moment, but for one
  /// that has not answered others.
  ///
  /// `own` is the home on whose thread this is.
  func note(_ registry: Registry, in own: String? = nil) throws(StoreError) {
    let work = HomeWork.ofProcess
    var begun: [HomeWork.Result<Void>] = []
    for home in try noteKnown(registry).keys {
      if let own, home.elementsEqual(own.utf8) {
        try look(into: home, registry)
        continue
      }
      guard let place = store.homeElsewhere(named: home) else { continue }
      let isHanging = work.hangs(in: place)
      let result = work.begin(in: place, as: isHanging ? "shapes" : nil, changingApps: false) { [self] in
        do throws(StoreError) { try look(into: home, registry) } catch {
          DaemonLog.write("can't find out whose containers there are: \(error)")
        }
      }
      if let result, !isHanging { begun.append(result) }
    }
    let end = monotonicNanoseconds() &+ UInt64(HomeWork.patienceMilliseconds) * 1_000_000
    for result in begun { _ = result.value(until: end) }
  }

  private func look(into home: [UInt8], _ registry: Registry) throws(StoreError) {
    guard let unknown = try noteKnown(registry)[home] else { return }
    for bundle in unknown.bundles {
      let isMac = isOfMacShape(bundle.path.text)
      known.withLock { $0.isMac[bundle] = isMac }
    }
    for container in unknown.containers {
      let found = volume.containerHome(at: container.path.text)
      known.withLock { $0.containers[container] = .some(found) }
    }
    _ = try noteKnown(registry)
  }

  /// Tells the volume what is known, and forgets what was known of anything else; gives what is unknown, by
  /// homes outside of the store that are there.
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
      var shapes: [ExactText: Bool] = [:]
      for container in containers {
        let own = apps[App(identifier: container.identifier, user: container.user)]
        guard let app = own ?? apps[App(identifier: container.identifier, user: nil)] else { continue }
        let isMac: Bool?
        if let home = RecoveryScope.home(in: app.path.utf8), let number = numbers[home] {
          guard let number else { continue }
          let bundle = Bundle(path: ExactText(app.path), seal: app.seal, home: number)
          isMac = known.isMac[bundle]
          now.isMac[bundle] = isMac
          if isMac == nil { unknown[home, default: Unknown()].bundles.insert(bundle) }
        } else {
          let path = ExactText(app.path)
          isMac = shapes[path] ?? isOfMacShape(app.path)
          shapes[path] = isMac
        }
        if isMac == false { continue }
        guard let home = RecoveryScope.home(in: container.path.utf8), let number = numbers[home] else {
          if isMac == true, let home = volume.containerHome(at: container.path) { homes.append(home) }
          continue
        }
        guard let number else { continue }
        let place = Container(
          path: ExactText(container.path), uuid: container.uuid, inode: container.identity?.inode,
          created: container.identity?.created, home: number)
        if let found = known.containers[place] {
          now.containers[place] = .some(found)
          if isMac == true, let found { homes.append(found) }
        } else {
          unknown[home, default: Unknown()].containers.append(place)
        }
      }
      known = now
      volume.noteMacContainers(homes)
      return unknown
    }
  }

  /// A bundle that can't be looked at is of none.
  private func isOfMacShape(_ path: String) -> Bool {
    guard let bundle = try? store.tree.openDirectory(at: path) else { return false }
    return (try? CodeBundle.shape(of: bundle.fd)) == .contents
  }
}
