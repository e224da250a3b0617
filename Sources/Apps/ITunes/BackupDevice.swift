// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy
internal import PropertyLists

/// The machine and the home that a backup is of, as the property lists of one in iTunes' form say it.
package struct BackupDevice {
  private let name: String
  private let home: String
  /// Seconds since 1970.
  private let now: Int64

  /// `home` is where the home is to be seen.
  package init(name: String, home: String, now: Int64) {
    (self.name, self.home, self.now) = (name, home, now)
  }

  /// A version of iOS whose backups have this form: programs that read them go by it.
  private static let version = "17.0"

  /// The same for all backups of a home on a machine.
  private var identifier: String {
    do throws(CryptoFailure) {
      var digest = try Digest(.sha1)
      Array("insula \(name) \(home)".utf8).withUnsafeBytes { digest.update($0) }
      return digest.finish().asHexadecimal
    } catch {
      return String(repeating: "0", count: 40)
    }
  }

  /// Under which name the manifest says whose apps' the containers are, which no other program looks for.
  static let teamsKey = "org.insula.teams"

  private func teams(_ apps: [AppDescription]) -> [PropertyList] {
    var seen: Set<String> = []
    return apps.flatMap { $0.containers ?? [] }.compactMap { container in
      guard let domain = BackupDomain(container), let team = container.team, seen.insert(domain.text).inserted
      else { return nil }
      let root = container.root.map { [("root", PropertyList.string($0))] } ?? []
      return PropertyList(
        entries: [("domain", .string(domain.text)), ("team", .string(team.sanitized))] + root)
    }
  }

  func lists(_ apps: [AppDescription]) -> [(name: String, list: PropertyList)] {
    let date = PropertyList.date(Double(now - 978_307_200))
    let name = PropertyList.string(name.sanitized)
    let identifier = PropertyList.string(identifier)
    let version = PropertyList.string(Self.version)
    let installed = PropertyList(
      entries: apps.map { app in
        (
          app.identifier,
          PropertyList(entries: [
            ("CFBundleIdentifier", .string(app.identifier)),
            ("CFBundleVersion", .string(app.build.sanitized)),
            ("ContainerContentClass", .string("Data/Application")),
          ])
        )
      })
    let info = PropertyList(entries: [
      ("Device Name", name), ("Display Name", name), ("Product Name", .string("Insula")),
      ("Product Type", .string("Insula")), ("Product Version", version), ("Build Version", version),
      ("Unique Identifier", identifier), ("Target Identifier", identifier), ("Serial Number", identifier),
      ("Target Type", .string("Device")), ("Last Backup Date", date), ("iTunes Version", .string("12.0")),
      ("Installed Applications", .array(apps.map { .string($0.identifier) })),
    ])
    let manifest = PropertyList(entries: [
      ("Version", .string("10.0")), ("IsEncrypted", .boolean(false)), ("WasPasscodeSet", .boolean(false)),
      ("Date", date), ("SystemDomainsVersion", .string("24.0")), ("Applications", installed),
      (
        "Lockdown",
        PropertyList(entries: [
          ("DeviceName", name), ("ProductVersion", version), ("BuildVersion", version),
          ("ProductType", .string("Insula")), ("SerialNumber", identifier), ("UniqueDeviceID", identifier),
        ])
      ),
      (Self.teamsKey, .array(teams(apps))),
    ])
    let status = PropertyList(entries: [
      ("IsFullBackup", .boolean(true)), ("SnapshotState", .string("finished")),
      ("BackupState", .string("new")), ("Version", .string("3.3")), ("Date", date),
      ("UUID", .string(UUIDText.random())),
    ])
    return [("Info.plist", info), ("Manifest.plist", manifest), ("Status.plist", status)]
  }
}
