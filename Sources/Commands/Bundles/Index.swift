// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy
internal import PropertyLists

/// `insula index`.
struct IndexCommand: Command {
  static let description = CommandDescription(
    name: "index", summary: "Writes the signed index of a directory of packed apps.",
    arguments: [
      .init(
        name: "DIR", help: "a directory with files of 'insula pack' in it", isRequired: true, kind: .directory
      )
    ],
    options: [SignCommand.identityOption, CommandDescription.json],
    details: [
      """
      The index, DIR/index.plist, says which versions of which apps are in the files whose names end in .tar,
      how large those are, and what their digests are. 'insula update --all' updates installed apps from DIR,
      or from wherever a server of files shows it. Make the index again whenever a file has changed: it has
      its date in it, and nobody who has seen it goes back to an earlier one.
      """,
      """
      Each app must pass 'insula verify', and be signed by the team that signs the index. Of an app that is
      there in several versions, the index has the latest. The index replaces the old one in one step.
      """,
    ],
    examples: ["insula index /srv/apps --identity Anna"])

  private let path: String
  private let identity: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    path = arguments.argument(0) ?? ""
    identity = arguments.value("identity")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let identity = try SignCommand.identity(named: identity, in: context)
    let source = PackageSource.directory(context.absolute(path))
    let directory = try context.openDirectoryToMake(in: path)
    var apps: [PackageIndex.App] = []
    for file in try Self.packages(in: directory.fd) {
      let app = try entry(file, source, identity.team, context)
      guard let other = apps.firstIndex(where: { $0.isSame(as: app) }) else {
        apps.append(app)
        continue
      }
      let (older, newer) = app.isAfter(apps[other]) ? (apps[other], app) : (app, apps[other])
      apps[other] = newer
      context.console.note(
        "\(older.file.sanitized) is not in the index: \(newer.file.sanitized) has a later version of "
          + older.identifier.sanitized)
    }
    guard apps.count <= PackageIndex.appLimit else {
      throw CommandFailure(.failed, PackageIndexFailure.tooManyApps.description)
    }
    let index = PackageIndex(issued: Self.issueDate(in: directory.fd, context), apps: apps)
    let text: [UInt8]
    do throws(PackageIndexFailure) { text = try index.signed(by: identity) } catch {
      throw CommandFailure(.failed, "can't sign the index: \(error)")
    }
    do throws(Errno) {
      try directory.fd.replaceContents(of: PackageIndex.fileName, with: text, mode: 0o644)
    } catch {
      throw CommandFailure(
        error, "can't write \(path.sanitized)/\(PackageIndex.fileName): \(error.message)")
    }
    tell(apps, index, identity.team, context.console)
    return .ok
  }

  private func tell(_ apps: [PackageIndex.App], _ index: PackageIndex, _ team: String, _ console: Console) {
    guard !json else {
      return console.print(
        json: Listing(
          issued: index.issued, team: team,
          apps: apps.map {
            Listing.App(
              identifier: $0.identifier, version: $0.release, build: $0.version, file: $0.file, size: $0.size)
          }))
    }
    let count = "\(apps.count) app\(apps.count == 1 ? "" : "s")"
    console.say("Wrote \(path.sanitized)/\(PackageIndex.fileName) with \(count), of the team \(team).")
  }

  /// For programs.
  private struct Listing: Encodable {
    struct App: Encodable {
      let identifier: String
      let version: String
      let build: String
      let file: String
      let size: Int64
    }
    let issued: Int64
    let team: String
    let apps: [App]
  }

  /// Now, and in any case later than that of the index that is there.
  private static func issueDate(in directory: FD, _ context: Context) -> Int64 {
    let before = try? directory.contents(of: PackageIndex.fileName, limit: PackageIndex.sizeLimit)
    let last = before.flatMap(PackageIndex.issueDate) ?? 0
    let now = context.now()
    // One that is ahead of all clocks would have this one refused.
    return last >= now && last < now + 3600 ? last + 1 : now
  }

  /// The names of what may be packed apps, in their order.
  private static func packages(in directory: FD) throws -> [String] {
    let listing = try directory.reopened(O_RDONLY | O_DIRECTORY)
    return try listing.fd.entries().compactMap { entry in
      guard let name = String(validating: entry.name, as: UTF8.self), name.hasSuffix(".tar"),
        PackageIndex.isAllowed(file: name), try directory.status(of: name).isRegular
      else { return nil }
      return name
    }.inOrder { $0.precedes($1) }
  }

  private func entry(
    _ file: String, _ source: PackageSource, _ team: String, _ context: Context
  ) throws -> PackageIndex.App {
    let opened = try source.open(file, limit: PackageIndex.fileSizeLimit, context)
    let digest = try PackageDigest.of(opened.fd, atMost: PackageIndex.fileSizeLimit)
    guard digest.size <= PackageIndex.fileSizeLimit else {
      throw CommandFailure(.failed, "\(file.sanitized) has become longer than an index allows")
    }
    guard lseek(opened.fd.raw, 0, SEEK_SET) == 0 else { throw Errno.EIO }
    let trust = try context.trust(ofStore: nil)
    let package = BundleSource(path: file, file: opened, isDirectory: false)
    return try context.withBundle(package) { (directory, name) in
      do {
        let bundle = try CodeBundle(in: directory.reopened(O_RDONLY | O_DIRECTORY), name: name)
        let verification = bundle.verify(trust, at: context.now(), includingStrangers: false)
        guard verification.isGood, let signer = verification.signer else {
          throw verification.findings.first ?? Bundles.Finding(.unsigned)
        }
        guard signer.team.hasSameBytes(as: team) else {
          throw CommandFailure(
            .failed,
            "\(file.sanitized) is signed by the team \(signer.team), and the index by the team \(team); "
              + "move it to another directory")
        }
        return PackageIndex.App(
          identifier: bundle.info.identifier, version: bundle.info.buildVersion,
          shortVersion: bundle.info.shortVersion, file: file, size: digest.size, digest: digest.digest)
      } catch let finding as Bundles.Finding {
        throw CommandFailure(
          .found(BundleProblem(finding.kind)),
          "\(file) can't be in the index: \(finding.message); 'insula verify' must accept the app first"
            .sanitized)
      }
    }
  }
}

extension PackageIndex.App {
  fileprivate func isSame(as other: PackageIndex.App) -> Bool {
    identifier.lowercased() == other.identifier.lowercased()
  }

  fileprivate func isAfter(_ other: PackageIndex.App) -> Bool {
    (AppVersion(version), AppVersion(release)) > (AppVersion(other.version), AppVersion(other.release))
  }
}
