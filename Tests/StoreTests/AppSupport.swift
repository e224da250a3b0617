// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

extension InstalledApp {
  /// An app that is as good as any.
  static func example(
    _ identifier: String = "com.example.editor", user: UInt32? = nil, name: String = "Editor",
    groups: [String] = [], clouds: [String] = []
  ) throws -> InstalledApp {
    let folder = user.map { "Users/user\($0)/Applications" } ?? "Applications"
    return InstalledApp(
      identifier: try #require(AppIdentifier(identifier)), user: user, name: name, executable: name,
      version: "7", shortVersion: "1.2", team: "TEAM", path: "\(folder)/\(name).app",
      seal: Array(0..<32), installed: 1_700_000_000,
      groups: try groups.map { try #require(AppIdentifier($0)) },
      clouds: try clouds.map { try #require(AppIdentifier($0)) })
  }
}

/// A store with a registry and one home.
struct TestFixture {
  let made: TestStore
  let store: Store
  let registry: Registry
  /// The account whose home there is.
  let account: Account
  var path: String { made.path }
  var home: String { "\(path)/tree/Users/\(account.name)" }

  init(ignoresCase: Bool = false) throws {
    made = try TestStore(ignoresCase: ignoresCase)
    store = try made.open()
    let user = Program.isRoot ? Account.named("nobody") : Account.numbered(ProcessID.user)
    account = try #require(user)
    try Homes(tree: store.tree, path: made.path + "/tree", mode: store.description.mode).add(account.name)
    registry = try Registry(of: store)
  }

  func containers() throws -> Containers { try Containers(store, registry) }

  /// Deletes all removed containers; what stays of them.
  func deleteRemoved() throws -> [LeftBehind] {
    let containers = try containers()
    return try registry.removedContainers().flatMap { try containers.delete($0).left }
  }

  /// What a check of the store finds.
  func findings() throws -> [Finding] {
    var check = try StoreCheck(store, repairing: false)
    try check.run()
    return check.findings
  }
}

/// What of a test's body comes to be known as its error.
func storeError(_ body: () throws -> Void) -> StoreError? {
  do {
    try body()
    return nil
  } catch {
    return error as? StoreError
  }
}

/// The program that works on a store until it is killed.
enum Stopped {
  static var path: String { String(Program.insula.dropLast("insula".count)) + "insula-stopped" }

  /// How it ended.
  enum End: Equatable {
    case done, killed
    case failed(String)
  }

  static func run(at stop: Int, _ words: [String]) throws -> End {
    let result = try Program.run([path, "\(stop)"] + words)
    return switch result.status {
    case 0: .done
    case 9: .killed
    default: .failed(result.errors)
    }
  }
}
