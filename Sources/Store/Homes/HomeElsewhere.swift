// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// A home that lies outside of the store.
package struct HomeElsewhere: Sendable {
  /// By what this process gets into it; nil while it is away.
  package let target: RedirectedNames.Target?
  /// Where its name is.
  package let place: RedirectedNames.Place
  fileprivate let store: Store

  /// Whether another store has used it, or one of its neighbors: those have a directory beside ours.
  var hasOtherStores: Bool {
    let known = [HomeSource.leasesName, store.description.uuid]
    let others = try? target?.source.use { (source) throws(Errno) in
      let own = try source.openDirectory(HomeSource.ownName)
      return try own.fd.entries().contains { !known.contains(String(decoding: $0.name, as: UTF8.self)) }
    }
    return others ?? true
  }

  /// Does something in the home, if its name leads there still; where that ends meanwhile, it leads nowhere.
  package func ifThere<Result>(_ body: () -> Result) -> Result? {
    guard let target, RedirectedNames.leads(place, to: target) else { return nil }
    return RedirectedNames.only(target, at: place, body)
  }

  /// A directory of the store's own on the same filesystem; nil if it is missing and nothing is to be put
  /// there.
  fileprivate func openOwn(_ name: String, making: Bool = true) throws(StoreError) -> OwnedFD? {
    guard let target else { return nil }
    return try explaining("open", "\(HomeSource.ownName)/\(name) beside the home") {
      () throws(Errno) -> OwnedFD? in
      try target.workshop.use { (workshop) throws(Errno) -> OwnedFD? in
        if making { return try workshop.openDirectory(name, makingWith: 0o700) }
        do throws(Errno) { return try workshop.openDirectory(name) } catch .ENOENT { return nil }
      }
    }
  }

  func openStaging() throws(StoreError) -> OwnedFD? { try openOwn("staging") }

  /// The directory of removed containers; nil while the home is away.
  func openRemoved(making: Bool) throws(StoreError) -> OwnedFD? {
    try openOwn(StoreLayout.removedName, making: making)
  }

  /// The directory of updates that wait; nil while the home is away.
  package func openUpdates(making: Bool) throws(StoreError) -> OwnedFD? {
    try openOwn(StoreLayout.updatesName, making: making)
  }
}

extension Store {
  /// The home that a path below the root of the tree leads into, if it lies elsewhere.
  package func homeElsewhere(of path: String) -> HomeElsewhere? {
    guard let home = Homes.name(in: path), let users = try? tree.openDirectory("Users"),
      HomeLink.isOne(home, in: users.fd), let status = try? users.fd.status()
    else { return nil }
    let name = Array(home.utf8)
    return HomeElsewhere(
      target: RedirectedNames.target(of: name, in: users.fd),
      place: RedirectedNames.Place(name, in: status), store: self)
  }

  /// The home of that name, if it lies elsewhere and is there.
  package func homeElsewhere(named home: [UInt8]) -> HomeElsewhere? {
    let found = homeElsewhere(of: "Users/\(String(decoding: home, as: UTF8.self))")
    return found?.target == nil ? nil : found
  }

  /// Whether a home lies elsewhere.
  package func liesElsewhere(_ home: String) -> Bool { homeElsewhere(of: "Users/\(home)") != nil }

  /// The directory for what is not finished of a place in the tree, which is on the same filesystem.
  package func openStaging(for path: String) throws(StoreError) -> OwnedFD {
    if let staging = try homeElsewhere(of: path)?.openStaging() { return staging }
    return try openStaging()
  }

  /// The same for updates that wait.
  package func openUpdates(for path: String) throws(StoreError) -> OwnedFD {
    if let updates = try homeElsewhere(of: path)?.openUpdates(making: true) { return updates }
    return try openUpdates()
  }

  /// Gives a home that lies elsewhere its name in the tree; nothing may have that.
  package func link(_ home: String, to source: String) throws(Errno) {
    let users = try tree.openDirectory("Users")
    try HomeLink.make(home, to: source, in: users.fd)
    try users.fd.synchronize(dataOnly: false)
  }

  /// Takes the name of a home away that lies elsewhere.
  package func unlink(_ home: String) throws(Errno) {
    let users = try tree.openDirectory("Users")
    guard HomeLink.isOne(home, in: users.fd) else { return }
    try users.fd.remove(home, directory: false)
    try users.fd.synchronize(dataOnly: false)
  }
}
