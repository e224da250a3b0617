// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Policy
internal import PropertyLists
internal import Store

/// What a signed bundle says of itself that counts for an installation.
struct AppContents: Equatable {
  let identifier: AppIdentifier
  /// `CFBundleName`, or what the bundle is called.
  let name: String
  let executable: String
  let version: String
  let shortVersion: String
  let team: String
  /// The digest of the root that the signature leads to.
  let root: [UInt8]
  let groups: [AppIdentifier]
  let clouds: [AppIdentifier]
  /// What it says of types and documents.
  let declarations: AppDeclarations

  /// Throws what is wrong with the signature, or with what is signed.
  init(_ bundle: CodeBundle, _ verification: Verification) throws(AppFailure) {
    guard verification.isGood, let signer = verification.signer else {
      throw .refused(
        bundle: bundle.name,
        verification.findings.isEmpty ? [Bundles.Finding(.unsigned)] : verification.findings)
    }
    let info = bundle.info
    guard let identifier = AppIdentifier(info.identifier) else {
      let reason = "it must begin with a letter or digit and have at most \(AppIdentifier.longest) characters"
      throw .refused(bundle: bundle.name, [Bundles.Finding(.badIdentifier, detail: reason)])
    }
    self.identifier = identifier
    name = info.name.isEmpty ? String(bundle.name.dropLast(BundleName.suffix.count)) : info.name
    executable = info.executable ?? ""
    version = info.buildVersion
    shortVersion = info.shortVersion
    guard let root = signer.chain.last?.fingerprint else {
      throw .refused(bundle: bundle.name, [Bundles.Finding(.untrusted)])
    }
    team = signer.team
    self.root = root
    groups = try Self.identifiers(["com.apple.security.application-groups"], in: verification.entitlements)
    clouds = try Self.identifiers(
      [
        "com.apple.developer.icloud-container-identifiers",
        "com.apple.developer.ubiquity-container-identifiers",
      ], in: verification.entitlements)
    do throws(Bundles.Finding) { declarations = try info.declarations() } catch {
      throw .refused(bundle: bundle.name, [error])
    }
  }

  /// What several entitlements list, each once, the first first.
  private static func identifiers(
    _ keys: [String], in entitlements: PropertyList.Dictionary
  ) throws(AppFailure) -> [AppIdentifier] {
    var found: [AppIdentifier] = []
    for key in keys {
      for text in try entitlements.strings(key) ?? [] {
        guard let identifier = AppIdentifier(text) else {
          throw .badEntitlement(
            key: key,
            reason: "'\(text)' can't be a container: it may contain only letters, digits, '-' and '.'"
          )
        }
        if !found.contains(where: { $0.isSame(as: identifier) }) { found.append(identifier) }
      }
    }
    return found
  }

  /// Whose it is.
  var signer: Team { Team(team, root: root) }

  /// As the registry has it.
  func installed(as place: BundlePlace, for user: UInt32?, seal: [UInt8], at time: Int64) -> InstalledApp {
    InstalledApp(
      identifier: identifier, user: user, name: name, executable: executable, version: version,
      shortVersion: shortVersion, team: team, root: root, path: place.path, seal: seal, installed: time,
      groups: groups,
      clouds: clouds)
  }
}
