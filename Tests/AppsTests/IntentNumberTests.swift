// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

@Suite struct IntentNumberTests {
  @Test func whoLeavesLateTakesNobodyElsesPlace() throws {
    let fixture = try AppFixture()
    try fixture.bundle()
    let app = try fixture.install()
    let first = try fixture.registry.begin(.uninstall(app, keepingData: false))
    try fixture.registry.finish(first)
    let second = try fixture.registry.begin(.install(app))
    #expect(second.number == first.number)
    fixture.registry.leave(first)
    // Else whoever ends what was stopped would end this one.
    #expect(try fixture.registry.intents().map(\.isLive) == [true])
    fixture.registry.leave(second)
    #expect(try fixture.registry.intents().map(\.isLive) == [false])
  }

  /// Who was late takes off nothing that has the number by now, and ends nothing twice.
  @Test func whoComesLateTakesNothingOff() throws {
    let fixture = try AppFixture()
    try fixture.bundle()
    let app = try fixture.install()
    let first = try fixture.registry.begin(.uninstall(app, keepingData: false))
    try fixture.registry.abandon(first)
    fixture.registry.leave(first)
    let second = try fixture.registry.begin(.uninstall(app, keepingData: true))
    try #require(second.number == first.number)
    try fixture.registry.abandon(first)
    #expect(throws: StoreError.appBusy(identifier: app.identifier.text)) {
      try fixture.registry.finish(first)
    }
    #expect(try !fixture.registry.claim(second), "this process is at it")
    fixture.registry.leave(second)
    #expect(try !fixture.registry.claim(first))
    #expect(try fixture.registry.intents().map(\.intent) == [second.intent])
    #expect(try fixture.registry.apps() == [app])
    #expect(try fixture.registry.claim(second) && !fixture.registry.claim(second))
    fixture.registry.leave(second)
  }

  /// What an interrupted change has left is settled while nobody else can begin one at its path, and once.
  @Test(arguments: [false, true]) func settledWhileItIsNoted(isDone: Bool) throws {
    let fixture = try AppFixture()
    try fixture.bundle()
    let app = try fixture.install()
    // It was removed, or not.
    let noted = try fixture.registry.begin(.uninstall(app, keepingData: true))
    fixture.registry.leave(noted)
    if isDone {
      try #require(try Program.run(["rm", "-r", "\(fixture.tree)/\(app.path)"]).ending == .ok)
    }
    let observer = Settling(fixture.registry)
    let installer = try fixture.installer(observer: observer)
    observer.installer.withLock { $0 = installer }
    try installer.recover()
    observer.finish()
    #expect(observer.found.withLock { $0 } == [[noted.intent]])
    #expect(try fixture.registry.intents().isEmpty && fixture.registry.apps() == (isDone ? [] : [app]))
  }
}

/// Has another thread end the same while a change is settled.
private final class Settling: TreeObserver {
  let found = Mutex<[[TreeIntent]]>([])
  let installer = Mutex<Installer?>(nil)
  private let registry: Registry
  private let thread = Mutex<JoinableThread?>(nil)

  init(_ registry: Registry) { self.registry = registry }

  func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno) { try body() }
  func users(of path: String) -> [String] { [] }
  func runs(_ app: AppIdentifier, of user: UInt32) -> Bool { false }
  func end(_ former: FormerApps) {}
  func whileClosed(
    _ app: AppIdentifier, of user: UInt32, _ body: () throws(Errno) -> Void
  ) throws(Errno) { try body() }

  func settled(_ path: String, seal: [UInt8]?) {
    let intents = (try? registry.intents())?.map(\.intent) ?? []
    let isFirst = found.withLock { found in
      found.append(intents)
      return found.count == 1
    }
    guard isFirst else { return }
    let installer = installer.withLock { $0 }
    let second = try? JoinableThread(name: "second") { _ = try? installer?.recover() }
    thread.withLock { $0 = second }
  }

  func finish() { thread.withLock { $0 }?.join() }
}
