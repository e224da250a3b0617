// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// Whether homes are as their owners need them.

extension StoreCheck {
  mutating func checkHomes() throws(StoreError) {
    let path = store.path + "/tree"
    // A missing Users directory was reported above.
    guard let homes = try? Homes(tree: store.tree, path: path, mode: store.description.mode) else { return }
    let registry = try? Registry.existing(of: store)
    let owners = ownersOfHomes
    let known = (try? registry?.namesOfHomesElsewhere()) ?? []
    for home in try homes.list() {
      if home.isAway {
        if !known.contains(Array(home.name.utf8)) { foundLink(home.name, in: homes) }
        continue
      }
      checkOwner(of: home, "\(path)/Users/\(home.name)")
      guard let care = homes.care(for: home, owners: owners) else {
        found(
          .failure, "\(path)/Users/\(home.name)", "can't be examined: \(home.problem ?? "it has gone")",
          "check the disk that it is on, and what is mounted there")
        continue
      }
      for fault in care.faults() { check(fault, in: home, care) }
      for place in [""] + HomeDirectory.all.map(\.path) {
        homeDirectories.insert(["Users", home.name].map { Array($0.utf8) } + place.names)
      }
    }
  }

  /// Nil if they can't be known; why the registry can't be read is said elsewhere.
  private var ownersOfHomes: Set<UInt32>? {
    do throws(StoreError) {
      return try store.ownersOfHomes(Registry.existing(of: store))
    } catch {
      return nil
    }
  }

  /// A home that lies elsewhere, of which the list of volumes says nothing.
  private mutating func foundLink(_ name: String, in homes: Homes) {
    guard let source = HomeLink.source(of: name, in: homes.users.fd) else { return }
    let (store, shown) = (store, source.sanitized)
    found(
      .failure, "\(store.path)/tree/Users/\(name)",
      "says that the home is in \(shown), but the store knows of no such volume",
      "'insula check --repair' removes the link, and 'insula user add \(name) --home \(shown)' takes the "
        + "home again; nothing of it is lost"
    ) { () throws(Errno) in
      do throws(StoreError) {
        try Registry.existing(of: store)?.noteLostHome(name, at: source)
      } catch {
        throw .EIO
      }
      try store.unlink(name)
    }
  }

  private mutating func checkOwner(of home: Homes.Home, _ path: String) {
    let named = Account.named(home.name)
    if home.account == nil {
      let adopting = "'insula user add \(home.name) --adopt' gives it to the account of that name"
      found(
        .warning, path, "belongs to uid \(home.uid), which no account has",
        named != nil
          ? adopting
          : "create the account again with this uid, or run 'insula user remove \(home.name) --delete-home'")
    } else if let named, named.uid != home.uid, home.uid == 0 {
      found(
        .warning, path, "belongs to root, not to \(home.name)",
        "'insula user add \(home.name) --adopt' gives it to the account of that name")
    }
  }

  private mutating func check(_ fault: HomeFault, in home: Homes.Home, _ care: HomeCare) {
    let place = "\(store.path)/tree/Users/\(home.name)" + (fault.path.isEmpty ? "" : "/\(fault.path)")
    let mend = { () throws(Errno) in try care.mend(fault) }
    let repair = "'insula check --repair'"
    switch fault.kind {
    case .missing:
      found(
        .warning, place, "is missing from the home", "\(repair) creates it, and so can its owner with mkdir",
        repair: mend)
    case .notADirectory(let what):
      found(
        .failure, place, "is \(what), where homes have a directory",
        "move it away while the store is not mounted; then \(repair) creates the directory")
    case .owner(let uid):
      found(
        .failure, place, "belongs to uid \(uid) instead of \(home.uid), whose home it is in",
        "\(repair) gives it to the owner of the home; what is in it stays whose it is", repair: mend)
    case .othersDirectory(let uid):
      let owner = Account.numbered(uid)?.name ?? "uid \(uid)"
      found(
        .failure, place, "belongs to \(owner) instead of uid \(home.uid), and something is in it",
        "move it away while the store is not mounted, or give it to uid \(home.uid) with chown if all of "
          + "it is theirs; then \(repair) creates what is missing")
    case .mode(let mode):
      let canUse = mode & 0o700 == 0o700
      found(
        .warning, place,
        "has mode \(octal(mode)), so " + (canUse ? "everyone may write to it" : "its owner can't use it"),
        "\(repair) corrects the mode, and so can its owner with chmod", repair: mend)
    case .acl:
      found(
        .warning, place, "lacks what the ACL of a new one says (against its removal, for example)",
        "\(repair) adds those entries and leaves all others", repair: mend)
    case .unreadable:
      found(
        .failure, place, "has an ACL or flags that can't be read, so only root may use it",
        "\(repair) gives it those of a new home", repair: mend)
    }
  }
}

extension String {
  fileprivate var names: [[UInt8]] { parts(between: "/").map { Array($0.utf8) } }
}
