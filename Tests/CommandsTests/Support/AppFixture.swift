// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// A store of root's with a home of nobody's and apps that are noted as installed.
struct AppFixture {
  let mounted: MountedStore
  var store: String { mounted.store }
  /// Where nobody's container of the editor is, below the root of the tree.
  static let container = "Users/nobody/Library/Containers/com.example.editor"

  init(isMounted: Bool, store path: String? = nil) throws {
    mounted = try MountedStore(owner: nil, store: path)
    try run("user", "add", "nobody", "--store", store)
    let opened = try Store(opening: store, .inspect)
    let registry = try Registry(state: opened.state, path: store + "/state")
    for app in [
      try Self.app("com.example.editor", "Editor", groups: ["group.com.example"], clouds: ["iCloud.com.x"]),
      try Self.app("com.example.own", "Own", user: 65534), try Self.app("com.example.roots", "R", user: 0),
    ] {
      try registry.add(app)
      try FileManager.default.createDirectory(
        atPath: "\(store)/tree/\(app.path)", withIntermediateDirectories: true)
    }
    if isMounted { try mounted.mount() }
  }

  private static func app(
    _ identifier: String, _ name: String, user: UInt32? = nil, groups: [String] = [], clouds: [String] = []
  ) throws -> InstalledApp {
    InstalledApp(
      identifier: try #require(AppIdentifier(identifier)), user: user, name: name, executable: name,
      version: "7", shortVersion: "1.2", team: "TEAM",
      path: user == 65534 ? "Users/nobody/Applications/\(name).app" : "Applications/\(name).app",
      seal: Array(0..<32), installed: 1_700_000_000,
      groups: try groups.map { try #require(AppIdentifier($0)) },
      clouds: try clouds.map { try #require(AppIdentifier($0)) })
  }

  /// As root.
  @discardableResult
  func run(_ words: String...) throws -> String {
    let result = try mounted.run(words)
    guard result.status == 0 else { throw MountedStore.Failure(words: "\(words): \(result.errors)") }
    return result.output
  }

  /// Where a check finds something, but for the apps: what stands for their bundles here was never signed.
  func problems() throws -> [String] {
    let checked = try mounted.run("check", store, "--json")
    let findings = try JSONSerialization.jsonObject(with: Data(checked.output.utf8)) as? [[String: Any]]
    return try #require(findings).compactMap { $0["path"] as? String }.filter { !$0.hasSuffix(".app") }
  }

  /// As nobody, about this store.
  func nobody(_ words: String...) throws -> ProgramResult { try nobody(words) }

  func nobody(_ words: [String]) throws -> ProgramResult {
    try Program.runAsNobody(
      [Program.insula] + words + ["--store", store], environment: ["HOME": "/nonexistent"])
  }

  /// A line of shell as nobody, which must succeed.
  @discardableResult
  func shell(_ line: String, in directory: String) throws -> String {
    let result = try Program.runAsNobody(
      ["sh", "-ec", "cd \"$1\"; insula() { '\(Program.insula)' \"$@\"; }; \(line)", "sh", directory])
    guard result.status == 0 else { throw MountedStore.Failure(words: "\(line): \(result.errors)") }
    return result.output
  }

  /// A line of shell as root.
  @discardableResult
  func rootShell(_ line: String, in directory: String) throws -> String {
    let result = try Program.run(["sh", "-ec", "cd \"$1\"; \(line)", "sh", directory])
    guard result.status == 0 else { throw MountedStore.Failure(words: "\(line): \(result.errors)") }
    return result.output
  }
}
