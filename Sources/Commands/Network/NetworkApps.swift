// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Makes `/Network/Applications` what a network's server has.
///
/// Each app is copied to this machine and verified there, so that a server that changes, hangs or is gone
/// changes nothing for who runs it.
struct NetworkApps {
  struct Outcome: Encodable {
    enum Kind: String, Encodable { case installed, updated, waits, removed, failed }

    let name: String
    let result: Kind
    var message: String?
  }

  /// What a bundle says of itself.
  struct Offered: Equatable {
    let identifier: String
    let seal: String
    /// `CFBundleShortVersionString`, or the build where there is none.
    let version: String
    let build: String
  }

  /// A server that has more is not believed.
  private static let most = 2000
  /// No app of a network is larger.
  private static let mostBytes: Int64 = 32 << 30

  let access: any StoreAccess
  /// The roots of the network's trust list: what is signed under another one is not the network's.
  let roots: Set<String>
  private var context: Context { access.context }

  init(_ access: any StoreAccess, roots: Set<String>) {
    self.access = access
    self.roots = roots
  }

  /// Those of its apps that are there.
  private func known() throws -> [AppDescription] {
    try access.apps(for: nil).filter { app in
      AppDomain(of: app) == .network && app.root.map(roots.contains) == true
    }
  }

  /// `path` is where the server's bundles are.
  func update(from path: String) throws -> [Outcome] {
    let directory = try context.openDirectory(path)
    let names = try Self.names(in: directory.fd)
    let known = try known()
    // A directory that is not there for a moment is empty with some servers.
    guard !names.isEmpty || known.isEmpty else {
      throw CommandFailure(
        .failed,
        "the server has no apps at all, and this machine has \(known.count) of them; nothing was changed; "
          + "'insula network leave' removes them")
    }
    var seen: Set<String> = []
    var outcomes: [Outcome] = []
    var hasFailed = false
    let versions = try NetworkVersions(access, at: path)
    for name in names {
      do {
        if let unchanged = try unchanged("\(path)/\(name)", among: known) {
          seen.insert(unchanged.identifier.lowercased())
          continue
        }
        try withCopy(of: "\(path)/\(name)") { bundle, bundleName in
          let offered = try Self.offer(of: bundle, bundleName)
          let identifier = offered.identifier.lowercased()
          seen.insert(identifier)
          let before = known.first { $0.identifier.lowercased() == identifier }
          if let before, before.seal == offered.seal { return }
          let allowed = try versions.allowsDowngrade(to: offered, from: before)
          outcomes.append(try take(bundle, bundleName, before, allowingDowngrade: allowed))
          try versions.forget(identifier)
        }
      } catch {
        // What is wrong with one keeps nobody from the others.
        hasFailed = true
        outcomes.append(Outcome(name: name, result: .failed, message: CommandFailure(error).message))
      }
    }
    // Which apps those were that can't be read is not known, so none is taken for gone.
    guard !hasFailed else { return outcomes }
    for app in known where !seen.contains(app.identifier.lowercased()) {
      try versions.remember(app)
      outcomes.append(remove(app))
    }
    return outcomes
  }

  private static func names(in directory: FD) throws -> [String] {
    do throws(Errno) {
      let entries = try directory.entries(atMost: most) { name, _ in
        let text = String(decoding: name.buffer, as: UTF8.self)
        return !text.hasPrefix(".") && (text.hasSuffix(".app") || text.hasSuffix(".app.tar"))
      }
      return entries.map { String(decoding: $0.name, as: UTF8.self) }.inOrder(by: <)
    } catch {
      guard error == .EOVERFLOW else { throw error }
      throw CommandFailure(.failed, "the server has more than \(most) apps")
    }
  }

  /// Removes all, and forgets what there was.
  func removeAll() throws -> [Outcome] {
    let outcomes = try known().map(remove)
    if !outcomes.contains(where: { $0.result == .failed }) { try NetworkVersions.removeAll(access) }
    return outcomes
  }

  private func remove(_ app: AppDescription) -> Outcome {
    let name = app.path.splitAtName.name
    do {
      guard let identifier = AppIdentifier(app.identifier) else { throw StoreError.noApp(identifier: name) }
      _ = try access.uninstall(identifier, of: .network, keepingData: true)
      return Outcome(name: name, result: .removed)
    } catch {
      return Outcome(name: name, result: .failed, message: CommandFailure(error).message)
    }
  }

  private func take(
    _ bundle: FD, _ name: String, _ before: AppDescription?, allowingDowngrade: Bool
  ) throws -> Outcome {
    guard before != nil else {
      _ = try access.install(bundle, named: name, for: .network)
      return Outcome(name: name, result: .installed)
    }
    let outcome = try access.updateWhenClosed(
      bundle, named: name, for: .network, allowingDowngrade: allowingDowngrade)
    if case .waits = outcome { return Outcome(name: name, result: .waits) }
    return Outcome(name: name, result: .updated)
  }

  /// What a bundle says of itself; what that is worth, whoever installs it finds out.
  private static func offer(of bundle: FD, _ name: String) throws -> Offered {
    do {
      let bundle = try CodeBundle(in: try bundle.reopened(O_RDONLY | O_DIRECTORY), name: name)
      let info = bundle.info
      return Offered(
        identifier: info.identifier, seal: try bundle.sealDigest().asHexadecimal,
        version: info.shortVersion.isEmpty ? info.buildVersion : info.shortVersion, build: info.buildVersion)
    } catch let finding as Bundles.Finding {
      throw CommandFailure(
        .found(BundleProblem(finding.kind)), "\(name) was refused: \(finding.message)".sanitized)
    }
  }

  /// What a directory of the server says of itself if that is what is installed; nothing of it is installed.
  private func unchanged(_ path: String, among known: [AppDescription]) throws -> Offered? {
    let source = try context.openBundleSource(path)
    guard source.isDirectory else { return nil }
    let offered = try Self.offer(of: source.file.fd, context.name(of: path))
    return known.contains { $0.seal == offered.seal && $0.identifier == offered.identifier } ? offered : nil
  }

  /// Lends a copy of a bundle of the server: what is looked at must be what is installed, whatever the server
  /// says the next time, and the daemon can't read what it serves itself.
  private func withCopy(of path: String, _ body: (FD, String) throws -> Void) throws {
    let source = try context.openBundleSource(path)
    guard source.isDirectory else { return try context.withBundle(source, body) }
    let name = context.name(of: path)
    try context.withCopy(of: source.file.fd, at: path, mostBytes: Self.mostBytes) { try body($0, name) }
  }
}

extension [NetworkApps.Outcome] {
  /// Tells people what has come of each; false if anything has failed.
  func tell(_ console: Console) -> Bool {
    for outcome in self {
      let name = outcome.name.sanitized
      switch outcome.result {
      case .installed: console.say("Installed \(name).")
      case .updated: console.say("Updated \(name).")
      case .waits: console.say("\(name) is updated when it ends.")
      case .removed: console.say("Removed \(name), which the network does not have any more.")
      case .failed: console.note("\(name): \(outcome.message ?? "")")
      }
    }
    return !contains { $0.result == .failed }
  }
}
