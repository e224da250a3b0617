// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Daemon
internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy
internal import Store

/// What a backup says of itself: which apps its data belong to, and what those were allowed.
///
/// ACLs and flags are not here: they travel with the files, as attributes.
struct BackupManifest: Codable, Equatable {
  static let name = "manifest.json"
  /// What is backed up, beside it.
  static let treeName = "tree"
  /// The apps themselves, if those were asked for.
  static let bundlesName = "apps"
  /// Databases of apps that ran, each as of one moment, at their paths in the tree.
  static let databasesName = "databases"
  private static let formatNow = 1
  /// No manifest is longer: a longer one could not be read when the backup is restored.
  static let mostBytes = JSONText.sizeLimit
  /// How much of it the entitlements of one home's apps may be, or of everyone's: an app can have any number.
  private static let mostEntitlements = 256 << 10

  /// An app that was installed.
  struct App: Codable, Equatable {
    let identifier: String
    let name: String
    let version: String
    let team: String
    /// The digest of the root under which it was signed, if that is known.
    let root: String?
    /// The digest of its signature.
    let seal: String
    /// The home that it was installed in; nil for everyone's.
    let home: String?
    /// What its directory was called.
    let bundle: String
    /// Where that was, if not among the apps of all or of a user.
    let place: String?
    /// As they were signed.
    var entitlements: String?
  }

  /// A home, and the number that its owner had when the backup was made.
  struct Home: Codable, Equatable {
    let name: String
    let user: UInt32
  }

  /// A container, and the team whose apps' it was.
  struct Container: Codable, Hashable {
    /// The home that it was in.
    let home: String
    let kind: ContainerKind
    let identifier: String
    let team: String
    let root: String?
    /// Which one it was, since the next of its name has another one; nil in backups of earlier versions.
    var uuid: String?
  }

  private let format: Int
  /// The program that made it.
  let insula: String
  /// In seconds since 1970.
  let made: Int64
  /// Where the store was.
  let store: String
  var apps: [App]
  /// Of all users: only ``rights(ofHome:)`` says which are somebody's.
  var grants: [GrantedPlace]
  var consents: [ConsentStatus]
  /// Nil in backups of earlier versions.
  var homes: [Home]?
  /// The same.
  var containers: [Container]?
  /// The kinds of containers that ``containers`` names; earlier versions noted those of groups and in iCloud.
  var kinds: [ContainerKind]?

  /// Of what is backed up now: all apps of a user, or of everyone.
  init(_ access: any StoreAccess, store: String, user: UInt32?, only chosen: [AppIdentifier]) throws {
    func isChosen(_ identifier: String) -> Bool {
      chosen.isEmpty || chosen.contains { $0.text.lowercased() == identifier.lowercased() }
    }
    let user = access.orOneself(user)
    format = Self.formatNow
    insula = Insula.version
    made = access.context.now()
    self.store = store
    var room: [String?: Int] = [:]
    apps = try access.apps(for: user).filter { isChosen($0.identifier) }.map { app in
      var entitlements = Self.entitlements(of: "\(access.root)/\(app.path)", sealedAs: app.seal)
      let left = room[app.home, default: Self.mostEntitlements] - (entitlements?.utf8.count ?? 0)
      if left < 0 { entitlements = nil } else { room[app.home] = left }
      return App(
        identifier: app.identifier, name: app.name.beginning(Self.longestName), version: app.version,
        team: app.team, root: app.root, seal: app.seal, home: app.home, bundle: app.path.splitAtName.name,
        place: AppDomain.places.first { $0.domain == AppDomain(of: app) }?.name,
        entitlements: entitlements)
    }
    let homes = try Self.homes(access, of: user)
    self.homes = homes
    containers = try homes.flatMap { try Self.containers(access, in: $0, where: isChosen) }
    kinds = ContainerKind.allCases
    grants = try access.grants(nil, of: user).filter { isChosen($0.identifier) }
    consents = try access.consents(.list(app: nil, user: user)).filter { isChosen($0.identifier) }
  }

  private static let longestName = 255

  /// Throws unless a backup with it can be restored; what one user has does not come to that.
  func requireReadable() throws {
    guard encoded.count <= Self.mostBytes else {
      throw CommandFailure(
        .failed,
        "the list of \(homes?.count ?? 0) homes does not fit into one backup; "
          + "back up one user at a time ('insula backup now --user NAME')")
    }
  }

  /// Nil where they can't be read: an app that is damaged has data all the same.
  ///
  /// They are what was installed; once that is gone, something else may have its name.
  private static func entitlements(of bundle: String, sealedAs seal: String) -> String? {
    guard let root = try? FD.cwd.openWithoutLinks(bundle, O_RDONLY | O_DIRECTORY),
      let bundle = try? CodeBundle(in: root, name: bundle.splitAtName.name),
      (try? bundle.sealDigest().asHexadecimal) == seal,
      let bytes = try? bundle.signaturePart(SealLayout.codeEntitlements)
    else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads what a backup says.
  init(reading bytes: [UInt8]) throws {
    do {
      let format = try JSONText.decode(Format.self, from: bytes).format
      guard format == Self.formatNow else {
        throw CommandFailure(
          .wrongFormat,
          "this backup was made by another version of insula (format \(format), this one knows "
            + "\(Self.formatNow)); restore it with that version")
      }
      self = try JSONText.decode(Self.self, from: bytes)
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      throw CommandFailure(
        .failed, "the \(Self.name) of this backup can't be read, so nothing was restored from it")
    }
  }

  private struct Format: Decodable { let format: Int }

  /// Whether the team of each app's own container is noted.
  var namesTeamsOfApps: Bool { containers != nil && kinds?.contains(.data) == true }

  var encoded: [UInt8] { (try? JSONText.encode(self, .pretty)) ?? [] }
}

extension BackupManifest.App {
  /// Whether that is its identifier, in whatever spelling.
  func has(_ other: String) -> Bool {
    guard let own = AppIdentifier(identifier), let other = AppIdentifier(other) else { return false }
    return own.isSame(as: other)
  }

  /// Where it was.
  var domain: AppDomain {
    home.map(AppDomain.user) ?? AppDomain.places.first { $0.name == place }?.domain ?? .everyone
  }
}
