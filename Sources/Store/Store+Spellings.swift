// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Policy

// What must not be in a store that ignores case: two spellings of one name in a directory.

extension Store {
  /// A name as a directory has it: where case makes no difference, as it is found on the mount.
  package func spelling(of name: [UInt8], in directory: FD) throws(Errno) -> [UInt8] {
    guard description.ignoresCase, !directory.has(name), let folded = foldedName(name) else { return name }
    let listing = try directory.reopened(O_RDONLY | O_DIRECTORY)
    let found = try listing.fd.entries { other, _ in foldedName(other.buffer) == folded }
    return found.map(\.name).min { $0.lexicographicallyPrecedes($1) } ?? name
  }

  /// Throws EEXIST if a directory has a name in another spelling, where that is the same name.
  ///
  /// For what is put into the tree by other ways than its mount.
  package func refuseOtherSpelling(of name: String, in directory: FD) throws(Errno) {
    guard description.ignoresCase else { return }
    let bytes = Array(name.utf8)
    guard let folded = foldedName(bytes) else { throw .EILSEQ }
    let listing = try directory.reopened(O_RDONLY | O_DIRECTORY)
    let others = try listing.fd.entries(atMost: .max) { other, _ in
      foldedName(other.buffer) == folded && !other.buffer.elementsEqual(bytes)
    }
    if !others.isEmpty { throw .EEXIST }
  }
}

/// The names in the directory that a check walks through, by what their spellings have in common.
struct CheckedSpellings {
  private var visit = -1
  private var names: [[UInt8]: [UInt8]] = [:]

  /// What is wrong with a name, and what to do.
  mutating func problem(of name: [UInt8], visit: Int) -> (problem: String, advice: String)? {
    if visit != self.visit {
      self.visit = visit
      names = [:]
    }
    guard let folded = foldedName(name) else {
      return (
        "has a name that is not valid text, which nothing gets in a store that ignores case",
        "rename it on the mount, where it is found by exactly this name"
      )
    }
    guard let other = names.updateValue(name, forKey: folded) else { return nil }
    let known = String(decoding: other, as: UTF8.self)
    return (
      "has the same name as \(known) beside it, since the store ignores case",
      "rename one of them on the mount; each is found by exactly its own spelling"
    )
  }
}
