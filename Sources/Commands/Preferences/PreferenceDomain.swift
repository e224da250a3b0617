// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// A group of preferences: those of one app, or those that all apps go by.
struct PreferenceDomain: Equatable {
  /// As it is typed: an app's identifier, usually.
  let name: String

  /// What all apps go by.
  static let global = PreferenceDomain(known: "NSGlobalDomain")
  /// Other words for that, as on a Mac.
  static let globalWords = ["-g", "-globalDomain", "Apple Global Domain"]
  private static let globalFile = ".GlobalPreferences"

  private init(known name: String) { self.name = name }

  /// Understands a word; nil if no file can have the name.
  init?(_ word: String) {
    if Self.globalWords.contains(word) {
      self = .global
      return
    }
    guard !word.isEmpty, word.utf8.count <= 200, !word.hasPrefix("."), !word.hasPrefix("-"),
      word.unicodeScalars.allSatisfy({ $0 != "/" && $0.isPrintable })
    else { return nil }
    name = word
  }

  /// The domain whose list a file is; nil for other files.
  init?(fileName: String) {
    guard fileName.hasSuffix(Self.suffix) else { return nil }
    let name = String(fileName.dropLast(Self.suffix.count))
    if name == Self.globalFile {
      self = .global
    } else {
      self.init(name)
      if self == .global { return nil }
    }
  }

  var fileName: String { (self == .global ? Self.globalFile : name) + Self.suffix }

  private static let suffix = ".plist"
}

extension CommandDescription {
  /// The domain that was named; nil if none was.
  func domain(_ word: String?) throws(UsageError) -> PreferenceDomain? {
    guard let word else { return nil }
    guard let domain = PreferenceDomain(word) else {
      throw error("'\(word)' is not a domain; give the identifier of an app, or NSGlobalDomain")
    }
    return domain
  }

  /// What is the same for all commands about preferences.
  static let domainArgument = Argument(
    name: "DOMAIN", help: "an app's identifier, or NSGlobalDomain (-g) for what all apps go by", kind: .app)
}
