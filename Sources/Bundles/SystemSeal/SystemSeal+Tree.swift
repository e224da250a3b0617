// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// In what a tree is not what its seal says.
package struct SystemFinding: Codable, Equatable, Sendable, CustomStringConvertible {
  package enum Kind: String, Codable, Sendable {
    case added, missing, type, mode, owner, contents, target, attributes
  }

  package let kind: Kind
  package let path: String

  package init(kind: Kind, path: String) {
    self.kind = kind
    self.path = path
  }

  package var description: String {
    switch kind {
    case .added: "\(path): is not in the seal"
    case .missing: "\(path): is missing"
    case .type: "\(path): has a different type from the one that was sealed"
    case .mode: "\(path): has a different mode from the one that was sealed"
    case .owner: "\(path): has a different owner from the one that was sealed"
    case .contents: "\(path): has different contents from those that were sealed"
    case .target: "\(path): has a different target from the one that was sealed"
    case .attributes: "\(path): has different attributes from those that were sealed"
    }
  }
}

extension SystemSeal {
  /// How the owners of things in a tree count.
  package enum Owners: Sendable {
    /// What is in it will be given its owners when it is installed.
    case notYet
    /// This one is the store's owner.
    case installed(uid: UInt32, gid: UInt32)
  }

  /// Seals a tree that is open for reading.
  ///
  /// Whatever its files' owners are here, they will be the store's owner's, unless they are to be kept: then
  /// only root's are.
  package init(
    of top: FD, version: String, team: String, keepingOwners: Bool,
    progress: @escaping (Int64) -> Void = { _ in }
  ) throws(SystemSealFailure) {
    var walk = SystemSealWalk(keepingOwners ? .owner(uid: 0, gid: 0) : .everything, progress: progress)
    self.init(version: version, team: team, sorted: try walk.walk(top))
  }

  /// All in which a tree is not what the seal says, by path; empty if it is.
  package func findings(
    in top: FD, _ owners: Owners, progress: @escaping (Int64) -> Void = { _ in }
  ) throws(SystemSealFailure) -> [SystemFinding] {
    var walk: SystemSealWalk
    var comparesOwners = true
    switch owners {
    case .notYet:
      walk = SystemSealWalk(.everything, progress: progress)
      comparesOwners = false
    case .installed(let uid, let gid): walk = SystemSealWalk(.owner(uid: uid, gid: gid), progress: progress)
    }
    return Self.differences(entries[...], try walk.walk(top)[...], comparesOwners)
  }

  private static func differences(
    _ sealed: ArraySlice<Entry>, _ found: ArraySlice<Entry>, _ comparesOwners: Bool
  ) -> [SystemFinding] {
    var sealed = sealed
    var found = found
    var findings: [SystemFinding] = []
    while sealed.first != nil || found.first != nil {
      let one = sealed.first
      let other = found.first
      if let one, let other, one.path == other.path {
        if let kind = difference(one, other, comparesOwners) {
          findings.append(SystemFinding(kind: kind, path: one.text))
        }
        sealed.removeFirst()
        found.removeFirst()
      } else if let one, other.map({ one.path.lexicographicallyPrecedes($0.path) }) ?? true {
        findings.append(SystemFinding(kind: .missing, path: one.text))
        sealed.removeFirst()
      } else if let other {
        findings.append(SystemFinding(kind: .added, path: other.text))
        found.removeFirst()
      }
    }
    return findings
  }

  private static func difference(
    _ sealed: Entry, _ found: Entry, _ comparesOwners: Bool
  ) -> SystemFinding.Kind? {
    switch (sealed.kind, found.kind) {
    case (.directory, .directory): break
    case (.file, .file): if sealed.kind != found.kind { return .contents }
    case (.link, .link): if sealed.kind != found.kind { return .target }
    default: return .type
    }
    if sealed.mode != found.mode { return .mode }
    if comparesOwners, sealed.uid != found.uid || sealed.gid != found.gid { return .owner }
    return sealed.attributes == found.attributes ? nil : .attributes
  }
}
