// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

// The walk through the whole tree.

extension StoreCheck {
  /// How long a home may keep a check waiting that changes nothing, without a sign of life.
  private static let patienceMilliseconds = 10_000

  /// Walks the whole tree for what insula never puts there.
  ///
  /// While the store is served, a user may keep a look into their home waiting for as long as they like: that
  /// home is left out, and named.
  mutating func checkNodes() throws(Errno) {
    let tree = CheckedPlace(path: store.path + "/tree", treePath: [])
    var homes: [[UInt8]] = []
    let mayWait = repairing
    try walk(through: store.tree, tree) { entry in
      guard !mayWait, entry.depth == 1, entry.first.elementsEqual("Users".utf8), entry.type == UInt8(DT_DIR)
      else { return true }
      homes.append(entry.name)
      return false
    }
    countBackingACLs(in: tree)
    for name in homes { checkNodes(inHome: name, of: tree) }
  }

  private mutating func checkNodes(inHome name: [UInt8], of tree: CheckedPlace) {
    let users = Array("Users".utf8)
    let place = CheckedPlace(path: tree.text([users, name]), treePath: [users, name])
    var start = self
    start.findings = []
    let found = LeftThread.value(milliseconds: Self.patienceMilliseconds) { [start] lives in
      var check = start
      guard let home = try? check.store.tree.openDirectory(at: [users, name]) else { return check }
      try? check.walk(through: home.fd, place) { _ in
        lives()
        return true
      }
      check.countBackingACLs(in: place)
      return check
    }
    if let found {
      findings += found.findings
      return
    }
    self.found(
      .warning, place.path,
      "could not be looked at to its end: its disk does not answer, or somebody holds what is in it",
      "look again later")
  }

  /// `isWanted` is asked about everything, and says whether to go into it.
  private mutating func walk(
    through root: FD, _ place: CheckedPlace, _ isWanted: (DeepWalk.Entry) -> Bool
  ) throws(Errno) {
    var spellings = CheckedSpellings()
    try DeepWalk.through(root) { (entry) throws(Errno) in
      if store.description.ignoresCase, let it = spellings.problem(of: entry.name, visit: entry.visit) {
        found(.failure, place.text(entry.path), it.problem, it.advice)
      }
      let domain = place.treePath.first ?? entry.first
      switch entry.type {
      case UInt8(DT_BLK) where !mayHoldDevices(domain), UInt8(DT_CHR) where !mayHoldDevices(domain):
        found(
          .failure, place.text(entry.path), "is a device node, which insula never creates there",
          "remove it with 'rm' in the store")
      default: break
      }
      checkSecurity(of: entry, in: place)
      let isTree = place.treePath.isEmpty
      if isTree, entry.depth == 1, entry.first.elementsEqual("Users".utf8) {
        checkLeftover(entry, in: place)
      }
      return isWanted(entry) && entry.type == UInt8(DT_DIR)
    }
  }

  /// Whether root may have put device nodes into a directory: they are kept in the tree, but for the system
  /// domain.
  private func mayHoldDevices(_ domain: [UInt8]) -> Bool {
    store.description.mode == .system && !domain.isEmpty && !domain.elementsEqual("System".utf8)
  }
}
