// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import LinuxIO
internal import Policy

extension Completion {
  /// What must be asked for: apps, identities, roots.
  ///
  /// Where that fails nothing is offered, and nothing is said: a person is typing.
  func values(_ context: Context) -> [Candidate] {
    let found: [Candidate]
    switch kind {
    case .app: found = (try? apps(context)) ?? []
    case .identity: found = (try? identities(context)) ?? []
    case .root: found = (try? roots(context)) ?? []
    default: found = []
    }
    return found.map { Candidate(word: prefix + $0.word, help: $0.help) }.filter(fits)
  }

  private func apps(_ context: Context) throws -> [Candidate] {
    let context = try context.configured()
    let uid = try AppsAccess.user(user, context)
    let apps = try AppsAccess.find(store, context).apps(for: uid)
    var found: [Candidate] = []
    for app in apps {
      let name = Self.isPlain(app.name) ? app.name : ""
      found.append(Candidate(word: app.identifier, help: name))
      if !name.isEmpty, !name.contains(".") { found.append(Candidate(word: name, help: app.identifier)) }
    }
    return found.filter { Self.isPlain($0.word) }
  }

  private func identities(_ context: Context) throws -> [Candidate] {
    guard let place = try context.openIdentities() else { return [] }
    return try IdentityDirectory(place.fd).list().map { Candidate(word: $0.name) }
      .filter { Self.isPlain($0.word) }
  }

  /// By name, or by fingerprint where a name can't be typed as it is.
  private func roots(_ context: Context) throws -> [Candidate] {
    try context.trust(ofStore: store).roots.map { root in
      let fingerprint = String(root.fingerprintText.prefix(16))
      return Self.isPlain(root.name)
        ? Candidate(word: root.name, help: fingerprint) : Candidate(word: fingerprint)
    }
  }

  /// Whether a name means nothing to any shell but itself.
  ///
  /// Anyone may give an app or a certificate any name, and what is offered here gets into a command line. The
  /// shells quote it; this does not rely on that.
  static func isPlain(_ name: String) -> Bool {
    guard !name.isEmpty, !name.hasPrefix("-"), !name.hasPrefix(":"), name.utf8.count <= 255 else {
      return false
    }
    return name.unicodeScalars.allSatisfy { scalar in
      switch scalar.properties.generalCategory {
      case .uppercaseLetter, .lowercaseLetter, .otherLetter, .titlecaseLetter, .decimalNumber: true
      default: " -_.".unicodeScalars.contains(scalar)
      }
    }
  }
}
