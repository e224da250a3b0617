// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A standard directory, by what is to be found in it: each domain has one at a place of its own, or none.
///
/// The constants and paths are those of macOS's `NSSearchPathForDirectoriesInDomains` and `sysdir(3)`.
package struct SearchDirectory: Sendable {
  /// The word that one asks for it with.
  package let name: String
  /// Relative to the prefix of the domain; several where it stands for several.
  private let paths: [String]
  private let domains: [Domain]
  /// Whether the system's lies in `/System`, and not where the machine's own is.
  private let isInSystem: Bool

  private init(
    _ name: String, _ paths: String..., in domains: [Domain] = [.user, .local, .network, .system],
    isInSystem: Bool = false
  ) {
    self.name = name
    self.paths = paths
    self.domains = domains
    self.isInSystem = isInSystem
  }

  /// All of them, in the order of the numbers that they have on a Mac.
  package static let all: [SearchDirectory] = [
    SearchDirectory("applications", "Applications"),
    SearchDirectory("demo-applications", "Applications/Demos"),
    SearchDirectory("developer-applications", "Developer/Applications"),
    SearchDirectory("admin-applications", "Applications/Utilities"),
    SearchDirectory("library", "Library", isInSystem: true),
    SearchDirectory("developer", "Developer"),
    SearchDirectory("users", "Users", in: [.local, .network]),
    SearchDirectory("documentation", "Library/Documentation", isInSystem: true),
    SearchDirectory("documents", "Documents", in: [.user]),
    SearchDirectory("core-services", "Library/CoreServices", in: [.system], isInSystem: true),
    SearchDirectory("autosaved-information", "Library/Autosave Information", in: [.user]),
    SearchDirectory("desktop", "Desktop", in: [.user]),
    SearchDirectory("caches", "Library/Caches"),
    SearchDirectory("application-support", "Library/Application Support"),
    SearchDirectory("downloads", "Downloads", in: [.user]),
    SearchDirectory("input-methods", "Library/Input Methods"),
    SearchDirectory("movies", "Movies", in: [.user]),
    SearchDirectory("music", "Music", in: [.user]),
    SearchDirectory("pictures", "Pictures", in: [.user]),
    SearchDirectory("printer-descriptions", "Library/Printers/PPDs", isInSystem: true),
    SearchDirectory("public", "Public", in: [.user]),
    SearchDirectory("preference-panes", "Library/PreferencePanes"),
    SearchDirectory(
      "all-applications", "Applications", "Applications/Utilities", "Developer/Applications",
      "Applications/Demos"),
    SearchDirectory("all-libraries", "Library", "Developer", isInSystem: true),
    SearchDirectory("trash", ".Trash", in: [.user]),
  ]

  /// The one of that name.
  package static func named(_ name: String) -> SearchDirectory? { all.first { $0.name == name } }

  /// The domains in which there is one, in the order in which they are searched.
  package var possibleDomains: [Domain] { domains }

  /// One place of it.
  package struct Place: Equatable, Sendable {
    package let domain: Domain
    /// Below the root of the tree.
    package let path: String
  }

  /// Its places in some domains, in the order user, local, network, system, whether anything is there or not.
  ///
  /// `home` is the user's, below the root of the tree. Where the system's is the machine's own, it is not
  /// told twice.
  package func places(in asked: Set<Domain>, home: String?) -> [Place] {
    var asked = asked
    if asked.isSuperset(of: [.local, .system]), domains.contains(.local), !staysApart {
      asked.remove(.system)
    }
    var places: [Place] = []
    for domain in [Domain.user, .local, .network, .system]
    where asked.contains(domain) && domains.contains(domain) {
      for path in paths {
        guard let place = Self.place(path, in: domain, home: home, isInSystem: isInSystem),
          !places.contains(where: { $0.path == place })
        else { continue }
        places.append(Place(domain: domain, path: place))
      }
    }
    return places
  }

  /// Whether the system's is told beside the machine's.
  private var staysApart: Bool { ["library", "users", "documentation", "all-libraries"].contains(name) }

  private static func place(
    _ path: String, in domain: Domain, home: String?, isInSystem: Bool
  ) -> String? {
    switch domain {
    case .user: home.map { "\($0)/\(path)" }
    case .local: path
    case .network: "Network/\(path)"
    // What is developers' has no place in the system's library.
    case .system: isInSystem && path.hasPrefix("Library") ? "System/\(path)" : path
    }
  }
}
