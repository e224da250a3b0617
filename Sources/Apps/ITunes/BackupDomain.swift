// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Policy
internal import Store

/// A part of a backup in iTunes' form: what belongs to one container.
enum BackupDomain {
  case app(AppIdentifier)
  case group(AppIdentifier)

  private static let apps = "AppDomain-"
  private static let groups = "AppDomainGroup-"

  /// Nil for what is no container's.
  init?(_ text: String) {
    func identifier(after prefix: String) -> AppIdentifier? {
      text.utf8.starts(with: prefix.utf8) ? AppIdentifier(String(text.dropFirst(prefix.count))) : nil
    }
    if let app = identifier(after: Self.apps) {
      self = .app(app)
    } else if let group = identifier(after: Self.groups) {
      self = .group(group)
    } else {
      return nil
    }
  }

  /// Nil for a container that is in no such backup.
  init?(_ container: AppDescription.Container) {
    guard let identifier = AppIdentifier(container.identifier) else { return nil }
    switch ContainerKind(rawValue: container.kind) {
    case .data: self = .app(identifier)
    case .group: self = .group(identifier)
    case .cloud, nil: return nil
    }
  }

  var text: String {
    switch self {
    case .app(let app): Self.apps + app.text
    case .group(let group): Self.groups + group.text
    }
  }

  /// Whether a name at its top is that of data.
  func has(_ name: some Collection<UInt8>) -> Bool {
    if case .app = self { return ContainerLayout.isDataName(name) }
    return !name.elementsEqual(ContainerLayout.metadataName.utf8)
  }

  /// What the data of a file are called: the SHA-1 of where it is.
  func id(of path: some Sequence<UInt8>) throws(BackupFlaw) -> String {
    do throws(CryptoFailure) {
      var digest = try Digest(.sha1)
      (Array("\(text)-".utf8) + path).withUnsafeBytes { digest.update($0) }
      return digest.finish().asHexadecimal
    } catch {
      throw BackupFlaw("this machine's libcrypto gives no SHA-1")
    }
  }

  /// The directory in which data of such a name are.
  static func folder(of id: String) -> String { String(id.prefix(2)) }
}
