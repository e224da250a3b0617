// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
@testable internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

/// A store with a home, someone who signs, and bundles to install.
final class AppFixture {
  let temporary: TemporaryDirectory
  let store: Store
  let registry: Registry
  /// The account whose home there is.
  let account: Account
  private let keys: OwnedFD
  private let trusted: OwnedFD
  let now = Int64(time(nil))

  /// `isShared` is for a store that another program will work on: it is not locked, and it is in memory where
  /// that can be, since the disk would be waited for again and again.
  init(teams: [String] = ["TEAM1"], isShared: Bool = false) throws {
    temporary = try TemporaryDirectory()
    let path = temporary.appending("store")
    if isShared, Program.isRoot {
      try temporary.makeDirectory("store")
      guard mount("tmpfs", path, "tmpfs", 0, nil) == 0 else { throw Errno.last }
    }
    try Store.create(at: path, TestStore.description)
    store = try Store(opening: path, isShared ? .inspect : .exclusive)
    account = try #require(Program.isRoot ? Account.named("nobody") : Account.numbered(ProcessID.user))
    try Homes(tree: store.tree, path: path + "/tree", mode: store.description.mode).add(account.name)
    registry = try Registry(of: store)
    keys = try TemporaryDirectory.open(try temporary.makeDirectory("keys", mode: 0o700))
    trusted = try TemporaryDirectory.open(try temporary.makeDirectory("store/keys/trust", mode: 0o700))
    for team in teams {
      let identity = try IdentityDirectory(keys.fd).make(team, team: team, at: now)
      guard let root = identity.chain.last else { continue }
      // Both may be signed for by one root.
      _ = try? TrustDirectory(trusted.fd).add(root.pem(), at: now)
    }
  }

  /// Someone else who signs, under a root of their own that the store trusts.
  func addIdentity(_ name: String, team: String) throws {
    let keys = try TemporaryDirectory.open(try temporary.makeDirectory("keys-\(name)", mode: 0o700))
    let identity = try IdentityDirectory(keys.fd).make(name, team: team, at: now)
    try TrustDirectory(trusted.fd).add(#require(identity.chain.last).pem(), at: now)
  }

  func root(of name: String) throws -> Certificate { try #require(try signer(name).chain.last) }

  private func signer(_ name: String) throws -> Identity {
    let keys = try TemporaryDirectory.open(temporary.appending("keys-\(name)"))
    return try IdentityDirectory(keys.fd).identity(named: name)
  }

  var home: String { "Users/\(account.name)" }
  var tree: String { temporary.appending("store/tree") }
  var everyones: AppDomain { .everyone }
  var users: AppDomain { .user(account.name) }
  /// Whose home it is, as one who asks.
  var owner: CallerIdentity { CallerIdentity(uid: account.uid, gid: account.gid, groups: []) }

  func installer(
    observer: any TreeObserver = NoTreeObserver(), ahead: Int64 = 0
  ) throws -> Installer {
    let now = now + ahead
    return Installer(
      store, registry, containers: try Containers(store, registry), trust: try StoreTrust.read(store),
      observer: observer, time: { now })
  }

  // MARK: Bundles

  /// A bundle to be made.
  struct Plan {
    var identifier = "org.example.editor"
    var version = "1"
    var shortVersion = ""
    var team = "TEAM1"
    /// Who signs, of those that were added; nil for the identity of the team's name.
    var signer: String?
    var groups: [String] = []
    var clouds: [String] = []
    var entitlements: String?
    /// More of its Info.plist.
    var info: [(String, String)] = []
    var files: [String: String] = [
      "Resources/page.html": "<p>page</p>\n", "Resources/de.lproj/Words": "Wort\n",
    ]
  }

  /// Makes a bundle and signs it; returns its path.
  @discardableResult
  func bundle(_ name: String = "Editor.app", _ change: (inout Plan) -> Void = { _ in }) throws -> String {
    var plan = Plan()
    change(&plan)
    let path = temporary.appending(name)
    if !name.contains("/"), let directory = try? temporary.open() {
      try? name.withName { (name) throws(Errno) in try directory.fd.removeTree(name) }
    }
    let executable = "editor"
    try write(
      Self.list(
        [
          ("CFBundleIdentifier", "<string>\(plan.identifier)</string>"),
          ("CFBundleExecutable", "<string>\(executable)</string>"),
          ("CFBundleName", "<string>Editor</string>"),
          ("CFBundleVersion", "<string>\(plan.version)</string>"),
          ("CFBundleShortVersionString", "<string>\(plan.shortVersion)</string>"),
        ] + plan.info), to: "\(name)/Contents/Info.plist")
    try write("#!/bin/sh\necho \(plan.version)\n", to: "\(name)/Contents/MacOS/\(executable)")
    chmod("\(path)/Contents/MacOS/\(executable)", 0o755)
    for (place, text) in plan.files { try write(text, to: "\(name)/Contents/\(place)") }
    try sign(name, plan)
    return path
  }

  func sign(_ name: String, _ plan: Plan = Plan()) throws {
    let root = try TemporaryDirectory.open(temporary.appending(name))
    let identity = try plan.signer.map(signer) ?? IdentityDirectory(keys.fd).identity(named: plan.team)
    let text = plan.entitlements ?? Self.entitlements(plan.groups, plan.clouds)
    let last = name.split(separator: "/").last.map(String.init) ?? name
    try CodeBundle(in: root, name: last).sign(as: identity, entitlements: Array(text.utf8), at: now)
  }

  static func entitlements(_ groups: [String], _ clouds: [String]) -> String {
    func array(_ texts: [String]) -> String {
      "<array>" + texts.map { "<string>\($0)</string>" }.joined() + "</array>"
    }
    return list([
      ("com.apple.security.application-groups", array(groups)),
      ("com.apple.developer.icloud-container-identifiers", array(clouds)),
    ])
  }

  static func list(_ entries: [(String, String)]) -> String {
    let lines = entries.map { "<key>\($0.0)</key>\($0.1)\n" }.joined()
    return
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict>\n\(lines)</dict></plist>\n"
  }

  /// Makes a file, and the directories above it.
  func write(_ text: String, to place: String) throws {
    var above = temporary.path
    for name in place.split(separator: "/").dropLast() {
      above += "/" + name
      guard mkdir(above, 0o755) == 0 || Errno.last == .EEXIST else { throw Errno.last }
    }
    try temporary.write(text, to: place)
  }

  // MARK: Doing

  @discardableResult
  func install(
    _ name: String = "Editor.app", for domain: AppDomain = .everyone, by caller: CallerIdentity = .ourselves,
    observer: any TreeObserver = NoTreeObserver(), waiting wait: InstallWait = .init()
  ) throws -> InstalledApp {
    let source = try TemporaryDirectory.open(temporary.appending(name))
    return try installer(observer: observer).install(source.fd, named: name, for: domain, by: caller, wait)
  }

  @discardableResult
  func update(
    _ name: String = "Editor.app", for domain: AppDomain = .everyone, by caller: CallerIdentity = .ourselves,
    allowingDowngrade: Bool = false, observer: any TreeObserver = NoTreeObserver()
  ) throws -> InstalledApp {
    let source = try TemporaryDirectory.open(temporary.appending(name))
    return try installer(observer: observer).update(
      source.fd, named: name, for: domain, by: caller, allowingDowngrade: allowingDowngrade
    ).now
  }

  @discardableResult
  func uninstall(
    _ identifier: String = "org.example.editor", of domain: AppDomain = .everyone,
    by caller: CallerIdentity = .ourselves, keepingData: Bool = false,
    observer: any TreeObserver = NoTreeObserver()
  ) throws -> InstalledApp? {
    try installer(observer: observer).uninstall(
      #require(AppIdentifier(identifier)), of: domain, by: caller, keepingData: keepingData
    ).app
  }

  // MARK: Looking

  func status(_ place: String) -> FileStatus? {
    var status = FileStatus()
    return lstat("\(tree)/\(place)", &status) == 0 ? status : nil
  }

  func text(_ place: String) -> String? { temporary.text(of: "store/tree/\(place)") }

  func names(_ place: String) throws -> [String] { try temporary.names(in: "store/tree/\(place)") }

  func staged() throws -> [String] { try temporary.names(in: "store/state/staging") }

  /// All that a check of the store says.
  func findings(deep: Bool = false) throws -> [String] {
    var check = try StoreCheck(store, repairing: false)
    try check.run()
    let trust = try StoreTrust.read(store)
    let judge: AppsCheck.Judge = { _ in trust }
    let apps = AppsCheck(store, verifyingBy: deep ? judge : nil)
    return try (check.findings + apps.findings()).map { "\($0.path) \($0.problem)" }
  }

  /// What a check finds, without what it says of work that was stopped: the next one ends that.
  func damage() throws -> [String] {
    let unfinished = ["that was interrupted", "could not complete", "of an app that was removed"]
    return try findings().filter { finding in !unfinished.contains { finding.contains($0) } }
  }

  /// All that is below a directory of the tree, and what it is: nothing that happened there can leave it the
  /// same.
  func snapshot(_ place: String = "") throws -> String {
    let result = try Program.run(
      ["find", ".", "-printf", "%P %y %m %U:%G %s %l %T@ %C@\n"], in: tree + "/" + place)
    return result.output.split(separator: "\n").sorted().joined(separator: "\n")
  }
}

/// What a call throws.
func appFailure(_ body: () throws -> Void) -> AppFailure? {
  do {
    try body()
    return nil
  } catch {
    return error as? AppFailure
  }
}

/// Remembers what it was told.
final class Recorder: TreeObserver {
  let changes = Mutex<[TreeChange]>([])
  /// What it answers; nil lets everything happen.
  let failure: Errno?

  init(failure: Errno? = nil) { self.failure = failure }

  func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno) {
    if let failure { throw failure }
    try body()
    changes.withLock { $0.append(change) }
  }

  var all: [TreeChange] { changes.withLock { $0 } }
}
