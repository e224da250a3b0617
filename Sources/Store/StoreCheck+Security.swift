// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// A directory in which a check looks at everything: the tree in the store, or a home that lies elsewhere.
struct CheckedPlace {
  /// Where it is.
  let path: String
  /// What that is in the mounted tree.
  let treePath: [[UInt8]]

  func text(_ names: [[UInt8]]) -> String {
    ([path] + names.map { String(decoding: $0, as: UTF8.self) }).joined(separator: "/")
  }
}

// Whether ACLs and flags can be understood. Those that can't count as the strictest; what they once said
// nobody can tell.

extension StoreCheck {
  mutating func checkSecurity(of entry: DeepWalk.Entry, in place: CheckedPlace) {
    guard let object = try? entry.directory.child(entry.name) else { return }
    // A deep tree has long paths: only what is found needs its own.
    checkSecurity(of: object.fd, in: place) { entry.path }
  }

  mutating func checkSecurity(of object: FD, in place: CheckedPlace, path: () -> [[UInt8]]) {
    let metadata = Metadata(isSystem: store.description.mode == .system)
    guard let damage = try? metadata.damage(of: object), damage.acl || damage.flags || damage.hasBackingACL
    else { return }
    let names = path()
    let path = place.text(names)
    if damage.hasBackingACL { foundBackingACL(path) }
    guard damage.acl || damage.flags else { return }
    // What a new home has in that place is known, and was looked at with the home.
    let treePath = place.treePath + names
    if homeDirectories.contains(treePath) { return }
    let mounted = (["MOUNT"] + treePath.map { String(decoding: $0, as: UTF8.self) }).joined(separator: "/")
    if damage.acl {
      found(
        .failure, path, "has an ACL that can't be read, so only root may use it",
        "on the mount, as root or its owner, run "
          + "'insula acl -N \(mounted)' to remove it or 'insula acl -E' to replace it"
      )
    }
    if damage.flags {
      found(
        .failure, path, "has flags that can't be read, so it can't be changed",
        "on the mount, as root, run 'insula flags \(mounted) noschg' to clear them")
    }
  }

  /// A home that was there before, or what root has put into the store, can have thousands of them.
  private mutating func foundBackingACL(_ path: String) {
    backingACLs += 1
    guard backingACLs <= Self.mostBackingACLs else { return }
    found(
      .warning, path,
      "has a POSIX ACL, which is not evaluated, so in the tree only its owner and root may use it",
      "'setfacl -b \(path)' removes it; look at the mode that remains, and give rights to others with "
        + "'insula acl' on the mount")
  }

  /// Counts those of a place that were not named; the next place begins anew.
  mutating func countBackingACLs(in place: CheckedPlace) {
    defer { backingACLs = 0 }
    guard backingACLs > Self.mostBackingACLs else { return }
    found(
      .warning, place.path,
      "has \(backingACLs - Self.mostBackingACLs) more objects with a POSIX ACL",
      "'getfacl -R -s -p \(place.path)' lists them")
  }

  /// So many of them are named.
  private static let mostBackingACLs = 20
}
