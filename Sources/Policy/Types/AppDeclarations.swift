// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// How much an app wants to be the one that opens documents of a type (LSHandlerRank).
package enum HandlerRank: String, Comparable, Sendable {
  case owner = "Owner"
  case `default` = "Default"
  case alternate = "Alternate"
  case none = "None"

  /// The one that is asked first is the smallest.
  private var order: Int {
    switch self {
    case .owner: 0
    case .default: 1
    case .alternate: 2
    case .none: 3
    }
  }

  package static func < (one: HandlerRank, other: HandlerRank) -> Bool { one.order < other.order }
}

/// What an app says of types and documents: the declarations in its Info.plist that count after it was
/// installed.
package struct AppDeclarations: Equatable, Sendable {
  /// Documents that the app opens: an entry of CFBundleDocumentTypes.
  package struct Claim: Equatable, Sendable {
    package let name: String
    package let rank: HandlerRank
    /// Whether documents of these extensions are directories that look like one file.
    package let isPackage: Bool
    package let types: [String]
    /// In lower case, `*` for all; they count where there are no types.
    package let extensions: [String]

    package init(name: String, rank: HandlerRank, isPackage: Bool, types: [String], extensions: [String]) {
      self.name = name
      self.rank = rank
      self.isPackage = isPackage
      self.types = types
      self.extensions = extensions
    }
  }

  /// Types that are the app's own.
  package var exported: [DeclaredType]
  /// Types of others that it knows.
  package var imported: [DeclaredType]
  package var claims: [Claim]
  /// LSSupportsOpeningDocumentsInPlace.
  package var opensInPlace: Bool
  /// Whether its Documents are shown to its user among their files (UIFileSharingEnabled,
  /// UISupportsDocumentBrowser).
  package var sharesDocuments: Bool

  package init(
    exported: [DeclaredType] = [], imported: [DeclaredType] = [], claims: [Claim] = [],
    opensInPlace: Bool = false, sharesDocuments: Bool = false
  ) {
    self.exported = exported
    self.imported = imported
    self.claims = claims
    self.opensInPlace = opensInPlace
    self.sharesDocuments = sharesDocuments
  }

  // MARK: As text

  /// A line for each declaration, in fields that tabs keep apart: as the registry has it.
  package var text: String {
    var lines = exported.map { "E\t" + $0.line(separatedBy: "\t") }
    lines += imported.map { "I\t" + $0.line(separatedBy: "\t") }
    lines += claims.map {
      let lists = [$0.types, $0.extensions].map { $0.joined(separator: " ") }
      return (["D", $0.rank.rawValue, $0.isPackage ? "P" : ""] + lists + [$0.name]).joined(separator: "\t")
    }
    if opensInPlace { lines.append("O") }
    if sharesDocuments { lines.append("S") }
    return lines.joined(separator: "\n")
  }

  /// Reads that text; what it does not know is a later version's, and passed over.
  package init(text: String) {
    self.init()
    for line in Substring(text).parted(at: "\n") {
      let fields = line.parted(at: "\t", omittingEmpty: false)
      switch fields[0] {
      case "E": if let type = DeclaredType(fields: fields.dropFirst()) { exported.append(type) }
      case "I": if let type = DeclaredType(fields: fields.dropFirst()) { imported.append(type) }
      case "D" where fields.count == 6:
        func list(_ index: Int) -> [String] { fields[index].parted(at: " ").map(String.init) }
        claims.append(
          Claim(
            name: String(fields[5]), rank: HandlerRank(rawValue: String(fields[1])) ?? .none,
            isPackage: fields[2] == "P", types: list(3), extensions: list(4)))
      case "O": opensInPlace = true
      case "S": sharesDocuments = true
      default: break
      }
    }
  }
}

extension Substring {
  /// Its parts between the bytes of an ASCII character, which a mark behind it doesn't change.
  func parted(at separator: Unicode.Scalar, omittingEmpty: Bool = true) -> [Substring] {
    utf8.split(separator: UInt8(ascii: separator), omittingEmptySubsequences: omittingEmpty).map {
      Substring($0)
    }
  }
}

extension TypeLayer {
  /// What apps declare, the first app first: what one exports counts before what another imports.
  ///
  /// Removing an app may leave a circle that it has hidden. Whoever only imports a type is to break no other
  /// app's, so those are cut before those that are exported.
  package convenience init(_ apps: [AppDeclarations], over table: TypeTable) {
    let exported = TypeCircle.cutting(apps.flatMap(\.exported))
    self.init(
      TypeCircle.cutting(exported + apps.flatMap(\.imported), from: exported.count),
      packages: apps.flatMap(\.claims).filter(\.isPackage).flatMap(\.extensions), over: table)
  }
}
