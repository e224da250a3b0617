// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A change of a list, as Mac's `chmod` knows them.
///
/// Entries are counted from 0. A list without entries is to most of them as good as none.
package enum ListEdit: Equatable, Sendable {
  /// `+a`: where canonical order wants it, or into an entry that says the same of the same.
  case add([AccessControlEntry])
  /// `+a#`: exactly here, whatever the order becomes.
  case insert([AccessControlEntry], at: Int)
  /// `-a`: takes away what these say, wherever it is said.
  case subtract([AccessControlEntry])
  /// `-a#`.
  case remove(at: Int)
  /// `=a#`.
  case replace(at: Int, with: [AccessControlEntry])
  /// `-E`: a list of these, and nothing else of the old one.
  case replaceAll([AccessControlEntry])
  /// `-i`: what was inherited counts as said here.
  case disown
  /// `-I`: what was inherited goes.
  case removeInherited
  /// `-N`: no list at all.
  case removeList
}

/// Why a list can't be changed like that; nothing was changed.
package enum ListEditError: Error, Equatable, Sendable {
  case noList
  case notCanonical
  /// There are only so many entries.
  case noEntry(at: Int, count: Int)
  /// Nothing is said of this principal with this verb.
  case nothingMatches(AccessControlEntry)
  /// It would have so many entries.
  case tooManyEntries(Int)
}

extension ListEdit {
  /// The list after the change; nil stands for no list.
  ///
  /// Taking the last entry away leaves an empty list, which is not the same as none.
  package func applied(to current: AccessControlList?) throws(ListEditError) -> AccessControlList? {
    var list = current ?? AccessControlList([])
    switch self {
    case .add(let entries):
      guard list.isCanonical else { throw .notCanonical }
      for entry in entries { list.add(entry) }
    case .insert(let entries, let index):
      try list.insert(entries, at: list.entries.isEmpty ? 0 : index)
    case .subtract(let entries):
      guard !list.entries.isEmpty else { throw .noList }
      for entry in entries { try list.subtract(entry) }
    case .remove(let index):
      guard !list.entries.isEmpty else { throw .noList }
      try list.remove(at: index)
    case .replace(let index, let entries):
      if !list.entries.isEmpty { try list.remove(at: index) }
      try list.insert(entries, at: list.entries.isEmpty ? 0 : index)
    case .replaceAll(let entries): list = AccessControlList(entries)
    case .disown:
      guard !list.entries.isEmpty else { throw .noList }
      for index in list.entries.indices { list.entries[index].inheritance.remove(.inherited) }
    case .removeInherited:
      guard !list.entries.isEmpty else { throw .noList }
      list.entries.removeAll { $0.inheritance.contains(.inherited) }
    case .removeList: return nil
    }
    guard list.entries.count <= AccessControlList.maximumCount else {
      throw .tooManyEntries(list.entries.count)
    }
    return list
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
  ) throws(ListEditError) {
    guard (0...entries.count).contains(index) else { throw .noEntry(at: index, count: entries.count) }
    entries.insert(contentsOf: new, at: index)
  }

  fileprivate mutating func remove(at index: Int) throws(ListEditError) {
    guard entries.indices.contains(index) else { throw .noEntry(at: index, count: entries.count) }
    entries.remove(at: index)
  }

  /// Takes rights and inheritance out of every entry of this principal and verb, inherited or not.
  ///
  /// An entry goes where no right is left of it.
  fileprivate mutating func subtract(_ entry: AccessControlEntry) throws(ListEditError) {
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
