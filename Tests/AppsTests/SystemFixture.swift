// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Bundles
internal import LinuxIO
internal import Store
internal import TestSupport

extension AppFixture {
  /// Makes a directory that can become the system domain, and signs it; returns its path.
  @discardableResult
  func system(_ version: String, _ files: [String: String] = [:], team: String = "TEAM1") throws -> String {
    let name = "System-\(version)"
    for (place, text) in ["Library/Fonts/Face": "face \(version)\n"].merging(files, uniquingKeysWith: { $1 })
    {
      try write(text, to: "\(name)/\(place)")
    }
    let tree = try TemporaryDirectory.open(temporary.appending(name))
    try signSystem(tree.fd, name, version, team: team)
    return temporary.appending(name)
  }

  func signSystem(
    _ tree: FD, _ name: String, _ version: String, team: String = "TEAM1", keepingOwners: Bool = false
  ) throws {
    let keys = try TemporaryDirectory.open(temporary.appending("keys"))
    let identity = try IdentityDirectory(keys.fd).identity(named: team)
    _ = try SystemDomain.sign(
      tree, named: name, by: identity, version: version, keepingOwners: keepingOwners)
  }

  func domain(observer: any TreeObserver = NoTreeObserver()) throws -> SystemDomain {
    let now = now
    return SystemDomain(
      store, registry, trust: try StoreTrust.read(store), observer: observer, time: { now })
  }

  func update(_ path: String) throws -> SystemVersions {
    let tree = try TemporaryDirectory.open(path)
    return try domain().update(from: tree.fd, named: path)
  }

  /// Why a directory does not become the system domain.
  func refusal(of path: String) -> SystemFailure? {
    do {
      _ = try update(path)
      return nil
    } catch {
      return error as? SystemFailure
    }
  }

  /// The version that lies in `/System`; nil for what a store begins with.
  var face: String? { text("System/Library/Fonts/Face") }
}
