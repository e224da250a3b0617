// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A place that an app has, by the word that one asks for it with.
package enum AppPlace: Hashable, Sendable {
  case documents, inbox, library, caches, applicationSupport, preferences, temporary
  /// What the app has as its home.
  case home
  /// The app itself.
  case bundle
  /// What it shares with the other apps of a group.
  case group(AppIdentifier)
  /// What it has in iCloud: a container that it names, or its own.
  case cloud(AppIdentifier?)

  /// The words, as help shows them.
  package static let words = [
    "documents", "inbox", "library", "caches", "application-support", "preferences", "tmp", "bundle", "home",
    "group:GROUP", "icloud[:CONTAINER]",
  ]

  /// The words as they can be typed, as far as they don't depend on an app.
  package static let completions = words.map { String($0.prefix { $0 != "[" && $0 != "G" }) }

  private static let known: [(String, AppPlace)] = [
    ("documents", .documents), ("inbox", .inbox), ("library", .library), ("caches", .caches),
    ("application-support", .applicationSupport), ("preferences", .preferences), ("tmp", .temporary),
    ("bundle", .bundle), ("home", .home), ("icloud", .cloud(nil)),
  ]

  /// What LiveCode calls places, as scripts of its apps ask for them: there, an app's home is its bundle.
  package static let liveCode: [(word: String, place: AppPlace)] = [
    ("documents", .documents), ("library", .library), ("temporary", .temporary), ("cache", .caches),
    ("support", .applicationSupport), ("preferences", .preferences), ("resources", .bundle),
    ("engine", .bundle), ("home", .bundle),
  ]
  /// LiveCode's word for a place that is the user's and not the app's.
  package static let liveCodeDesktop = "desktop"

  /// Understands a word; nil if it means no place.
  package init?(_ word: String) {
    if let found = Self.known.first(where: { $0.0 == word }) {
      self = found.1
    } else if word.hasPrefix("group:"), let group = AppIdentifier(String(word.dropFirst("group:".count))) {
      self = .group(group)
    } else if word.hasPrefix("icloud:"), let cloud = AppIdentifier(String(word.dropFirst("icloud:".count))) {
      self = .cloud(cloud)
    } else {
      return nil
    }
  }

  /// The word for it.
  package var word: String {
    switch self {
    case .group(let group): "group:\(group)"
    case .cloud(let cloud?): "icloud:\(cloud)"
    default: Self.known.first { $0.1 == self }?.0 ?? ""
    }
  }

  /// Where it is below the app's container; nil for what is not in there.
  package var pathInContainer: String? {
    switch self {
    case .home: ContainerLayout.dataName
    case .documents: "\(ContainerLayout.dataName)/Documents"
    case .inbox: ContainerLayout.inboxPath
    case .library: "\(ContainerLayout.dataName)/Library"
    case .caches: "\(ContainerLayout.dataName)/Library/Caches"
    case .applicationSupport: "\(ContainerLayout.dataName)/Library/Application Support"
    case .preferences: "\(ContainerLayout.dataName)/Library/Preferences"
    case .temporary: "\(ContainerLayout.dataName)/tmp"
    case .bundle, .group, .cloud: nil
    }
  }
}
