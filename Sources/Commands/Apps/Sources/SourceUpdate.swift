// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Updates of installed apps from a directory of packed ones, by its signed index.
struct SourceUpdate {
  /// What has come of one app.
  struct Result: Encodable {
    enum Kind: String, Encodable { case updated, waits, available, failed }

    let identifier: String
    let installed: String
    let available: String
    let result: Kind
    var message: String?
    /// Whose app it is; nil for everyone's.
    let home: String?
  }

  /// For programs.
  struct Report: Encodable {
    let source: String
    let issued: Int64
    let team: String
    let apps: [Result]
  }

  let source: PackageSource
  let access: any StoreAccess
  var allowsDowngrade = false
  var whenClosed = false
  var isDryRun = false
  let index: PackageIndex
  let signer: Signer

  private var context: Context { access.context }

  /// Reads the index of a source, and believes what a trusted team has signed and is no older than what was
  /// seen before.
  init(_ source: PackageSource, _ access: any StoreAccess) throws {
    self.source = source
    self.access = access
    let context = access.context
    let file = try source.open(PackageIndex.fileName, limit: Int64(PackageIndex.sizeLimit), context)
    let bytes = try file.fd.readToEnd(limit: PackageIndex.sizeLimit + 1)
    let trust = try access.trust()
    do throws(PackageIndexFailure) {
      (index, signer) = try PackageIndex.read(bytes, trust: trust, at: context.now())
    } catch {
      let message = "the index of \(source.name) was refused: \(error)".sanitized
      guard case .signature(let finding) = error else { throw CommandFailure(.failed, message) }
      let advice =
        finding.kind == .untrusted
        ? ["a store has its own trusted roots: 'insula trust add FILE --store STORE' adds one"] : []
      throw CommandFailure(.found(BundleProblem(finding.kind)), message, lines: advice)
    }
    // A date that is far ahead would have all later ones refused.
    guard index.issued <= context.now() + 86_400 else {
      throw CommandFailure(
        .failed,
        "the index of \(source.name.sanitized) is of \(utcText(index.issued)), which is in the future")
    }
  }

  /// Updates these apps, those of them that the index has a later version of.
  func update(_ apps: [AppDescription]) throws -> [Result] {
    let seen = try SeenIndexes(source, of: signer, access)
    try seen.check(index, of: source)
    if !isDryRun { try seen.note(index) }
    return try apps.compactMap { app in
      let entry = index.apps.first { $0.identifier.lowercased() == app.identifier.lowercased() }
      guard let entry, allowsDowngrade || entry.isLater(than: app) else { return nil }
      return try update(app, to: entry)
    }
  }

  private func update(_ app: AppDescription, to entry: PackageIndex.App) throws -> Result {
    func result(_ kind: Result.Kind, _ message: String? = nil) -> Result {
      Result(
        identifier: app.identifier, installed: app.version, available: entry.release, result: kind,
        message: message, home: app.home)
    }
    guard app.team.hasSameBytes(as: signer.team) else {
      return result(
        .failed, "the index is signed by the team \(signer.team), and the app by the team \(app.team)")
    }
    // Whoever has another root's word for being of that team could hold back what the team has published.
    let root = signer.chain.last?.fingerprintText
    guard app.root == nil || app.root == root else {
      return result(
        .failed,
        "the index is signed under another root than the app, so by another team called \(signer.team)")
    }
    guard !isDryRun else { return result(.available) }
    do {
      let outcome = try fetch(entry) { (directory, name) in
        let domain = AppDomain(of: app)
        guard !whenClosed else {
          return try access.updateWhenClosed(
            directory, named: name, for: domain, allowingDowngrade: allowsDowngrade)
        }
        let done = try access.update(
          directory, named: name, for: domain, allowingDowngrade: allowsDowngrade)
        return UpdateOutcome.updated(before: done.before, now: done.now, left: done.left)
      }
      outcome.left.tell(in: access.root, context.console)
      if case .waits = outcome { return result(.waits) }
      return result(.updated)
    } catch {
      // What is wrong with one app keeps nobody from the others.
      let failure = CommandFailure(error)
      return result(.failed, failure.message)
    }
  }

  /// Gets a package that is as the index says, and lends the bundle that is in it.
  private func fetch<Answer>(_ entry: PackageIndex.App, _ body: (FD, String) throws -> Answer) throws
    -> Answer
  {
    let file = try source.open(entry.file, limit: entry.size, context)
    let found = try PackageDigest.of(file.fd, atMost: entry.size)
    guard found == PackageDigest(size: entry.size, digest: entry.digest) else {
      throw CommandFailure(.failed, "\(entry.file.sanitized) is not the file that the index names")
    }
    guard lseek(file.fd.raw, 0, SEEK_SET) == 0 else { throw Errno.EIO }
    let package = BundleSource(path: entry.file, file: file, isDirectory: false)
    return try context.withBundle(package) { (directory, name) in
      let info = try CodeBundle(in: directory.reopened(O_RDONLY | O_DIRECTORY), name: name).info
      guard info.identifier == entry.identifier, info.buildVersion == entry.version,
        info.shortVersion == entry.shortVersion
      else {
        throw CommandFailure(
          .failed, "\(entry.file) has another app or version in it than the index says".sanitized)
      }
      return try body(directory, name)
    }
  }
}

/// What tells one file from another.
struct PackageDigest: Equatable {
  let size: Int64
  let digest: [UInt8]

  /// Reads a file to its end, or until it is longer than that: somebody may add to it all the time.
  static func of(_ file: FD, atMost limit: Int64) throws -> PackageDigest {
    var digest = try Digest(.sha256)
    var size: Int64 = 0
    while size <= limit, let bytes = try file.readAvailable(limit: 1 << 18) {
      bytes.withUnsafeBytes { digest.update($0) }
      size += Int64(bytes.count)
    }
    return PackageDigest(size: size, digest: digest.finish())
  }
}

extension PackageIndex.App {
  /// The version that a person knows.
  var release: String { shortVersion.isEmpty ? version : shortVersion }

  /// Whether it is worth fetching: what waits already is not.
  func isLater(than app: AppDescription) -> Bool {
    func order(_ build: String, _ release: String) -> (AppVersion, AppVersion) {
      (AppVersion(build), AppVersion(release))
    }
    let new = order(version, release)
    if let update = app.update, order(update.build, update.version) >= new { return false }
    return order(app.build, app.version) < new
  }
}
