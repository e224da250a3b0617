// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What of the tree is backed up: everything but what these rules leave out.
///
/// It follows from a place and the marks on the objects that lead there, and from nothing else. What is left
/// out takes everything in it along.
package enum BackupSet {
  /// Why something is not backed up.
  package enum Reason: String, Codable, Sendable, CaseIterable {
    /// Apps make it again.
    case caches
    case temporary
    /// An installed app is installed again.
    case bundle
    /// The system domain is signed, and is installed again.
    case system
    /// Other machines keep it.
    case network
    /// It is on other disks.
    case volumes
    /// Its user has thrown it away.
    case trash
    /// Somebody has marked it.
    case excluded
  }

  /// A place that is not backed up.
  struct Rule: Sendable {
    /// Names below the root of the tree; `*` is any home or container.
    let path: [String]
    let reason: Reason

    init(_ path: String, _ reason: Reason) {
      self.path = path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
      self.reason = reason
    }
  }

  static let rules = [
    Rule("System", .system), Rule("Network", .network), Rule("Volumes", .volumes), Rule(".Trash", .trash),
    Rule("Library/Caches", .caches), Rule("Users/*/.Trash", .trash),
    Rule("Users/*/Library/Caches", .caches), Rule("Users/*/.cache", .caches),
    Rule("\(anyContainer)/Data/tmp", .temporary), Rule("\(anyContainer)/Data/Library/Caches", .caches),
    Rule("\(anyContainer)/Data/.cache", .caches), Rule("\(anyGroup)/Library/Caches", .caches),
  ]

  private static let anyContainer = "Users/*/\(ContainerLayout.directory(of: .data))/*"
  private static let anyGroup = "Users/*/\(ContainerLayout.directory(of: .group))/*"

  /// Why a place is not backed up; nil if its path does not say so.
  ///
  /// That it is a bundle, or is marked, no path says.
  package static func reason(at path: [[UInt8]]) -> Reason? {
    rules.first { rule in
      rule.path.count <= path.count
        && zip(rule.path, path).allSatisfy { $0 == "*" ? !isShared($1) : $1.elementsEqual($0.utf8) }
    }?.reason
  }

  /// The folder that is no home, though it is where those are.
  package static let shared = "Shared"
  private static func isShared(_ name: [UInt8]) -> Bool { name.elementsEqual(shared.utf8) }

  /// Why what is in a zone is not backed up, if that follows from the zone alone.
  package static func reason(in zone: Zone) -> Reason? {
    guard zone.isReadOnlyRegion else { return nil }
    return zone == .system ? .system : .bundle
  }
}
