// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A change of an ACL, as Mac's `chmod` knows them.
///
/// Entries are counted from 0. Most changes treat an ACL without entries like no ACL.
package enum ACLEdit: Equatable, Sendable {
  /// `+a`: at its place in canonical order, or merged into an entry with the same principal and verb.
  case add([AccessControlEntry])
  /// `+a#`: exactly here, whatever the order becomes.
  case insert([AccessControlEntry], at: Int)
  /// `-a`: takes away what these say, wherever it is said.
  case subtract([AccessControlEntry])
  /// `-a#`.
  case remove(at: Int)
  /// `=a#`.
  case replace(at: Int, with: [AccessControlEntry])
  /// `-E`: an ACL of these, and nothing else of the old one.
  case replaceAll([AccessControlEntry])
  /// `-i`: what was inherited counts as said here.
  case disown
  /// `-I`: what was inherited goes.
  case removeInherited
  /// `-N`: no ACL at all.
  case removeACL
}

/// Why an ACL can't be changed like that; nothing was changed.
package enum ACLEditError: Error, Equatable, Sendable {
  case noACL
  case notCanonical
  /// There are only so many entries.
  case noEntry(at: Int, count: Int)
  /// Nothing is said of this principal with this verb.
  case nothingMatches(AccessControlEntry)
  /// It would have so many entries.
  case tooManyEntries(Int)
}

extension ACLEdit {
  /// The ACL after the change; nil stands for no ACL.
  ///
  /// Taking the last entry away leaves an empty ACL, which is not the same as none.
  package func applied(to current: AccessControlList?) throws(ACLEditError) -> AccessControlList? {
    var acl = current ?? AccessControlList([])
    switch self {
    case .add(let entries):
      guard acl.isCanonical else { throw .notCanonical }
      for entry in entries { acl.add(entry) }
    case .insert(let entries, let index):
      try acl.insert(entries, at: acl.entries.isEmpty ? 0 : index)
    case .subtract(let entries):
      guard !acl.entries.isEmpty else { throw .noACL }
      for entry in entries { try acl.subtract(entry) }
    case .remove(let index):
      guard !acl.entries.isEmpty else { throw .noACL }
      try acl.remove(at: index)
    case .replace(let index, let entries):
      if !acl.entries.isEmpty { try acl.remove(at: index) }
      try acl.insert(entries, at: acl.entries.isEmpty ? 0 : index)
    case .replaceAll(let entries): acl = AccessControlList(entries)
    case .disown:
      guard !acl.entries.isEmpty else { throw .noACL }
      for index in acl.entries.indices { acl.entries[index].inheritance.remove(.inherited) }
    case .removeInherited:
      guard !acl.entries.isEmpty else { throw .noACL }
      acl.entries.removeAll { $0.inheritance.contains(.inherited) }
    case .removeACL: return nil
    }
    guard acl.entries.count <= AccessControlList.maximumCount else {
      throw .tooManyEntries(acl.entries.count)
    }
    return acl
  }
}

extension AccessControlList {
  /// Joins rights to the entry that says them already of the same principal, with the same verb and
  /// inheritance.
  ///
  /// Of several such entries one that says exactly this leaves nothing to do; otherwise it is the last.
  fileprivate mutating func add(_ entry: AccessControlEntry) {
    let same = entries.indices.filter {
      entries[$0].isAbout(entry) && entries[$0].inheritance == entry.inheritance
    }
    if same.contains(where: { entries[$0].rights == entry.rights }) { return }
    if let index = same.last {
      entries[index].rights.formUnion(entry.rights)
    } else {
      entries.insert(entry, at: canonicalIndex(of: entry))
    }
  }

  fileprivate mutating func insert(
    _ new: [AccessControlEntry], at index: Int
  ) throws(ACLEditError) {
    guard (0...entries.count).contains(index) else { throw .noEntry(at: index, count: entries.count) }
    entries.insert(contentsOf: new, at: index)
  }

  fileprivate mutating func remove(at index: Int) throws(ACLEditError) {
    guard entries.indices.contains(index) else { throw .noEntry(at: index, count: entries.count) }
    entries.remove(at: index)
  }

  /// Takes rights and inheritance out of every entry of this principal and verb, inherited or not.
  ///
  /// An entry goes where no right is left of it.
  fileprivate mutating func subtract(_ entry: AccessControlEntry) throws(ACLEditError) {
    guard entries.contains(where: { $0.isAbout(entry) }) else { throw .nothingMatches(entry) }
    entries = entries.compactMap { existing in
      guard existing.isAbout(entry) else { return existing }
      var rest = existing
      rest.rights.subtract(entry.rights)
      rest.inheritance.subtract(entry.inheritance)
      // It has no effect anywhere, and no command can take it away.
      return rest.rights.subtracting(.synchronize).isEmpty ? nil : rest
    }
  }
}

extension AccessControlEntry {
  fileprivate func isAbout(_ other: AccessControlEntry) -> Bool {
    principal == other.principal && kind == other.kind
  }
}
