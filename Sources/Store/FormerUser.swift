// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// Users are numbers, and a number is given to somebody else once its account is gone. So what counts for a
// number is forgotten when its last home is removed, and before an account gets its first one.
//
//  1. With a home goes what is noted of things in it, and nothing that its owner has in another home.
//  2. As long as a user has a home, nothing else is forgotten; nor while a home is away whose owner nobody
//     knows. Root's number is never given to anybody else.
//  3. An account may have used the store without a home. What it has decided stays when it gets one.
//  4. A home that was ejected is its owner's still. It comes back, or its owner gets another one: nothing is
//     forgotten then. When that other one is removed, what is not in it is the ejected one's, and stays.
//  5. Who is about to get a home may be the one who had the last one, and nobody can tell. So what is
//     forgotten then is out of the account's reach, and no data are deleted: root has them.

/// Whose number may count for somebody else from now on.
package struct FormerUser: Equatable, Sendable {
  package let user: UInt32
  /// A home of the user's that was removed just now.
  package var removedHome: String?
  /// Whether that is all; otherwise the user has no home any more, unless there is another one.
  package var isHomeAlone = false
  /// The account that has the number now, and is about to get a home.
  package var successor: String?
  /// Whether that home is there already, as somebody else's, and about to be adopted.
  package var isHomeBack = false

  package init(
    _ user: UInt32, removedHome: String? = nil, isHomeAlone: Bool = false, successor: String? = nil,
    isHomeBack: Bool = false
  ) {
    self.user = user
    self.removedHome = removedHome
    self.isHomeAlone = isHomeAlone
    self.successor = successor
    self.isHomeBack = isHomeBack
  }
}

/// What is to be forgotten of a number.
package struct ForgottenParts: OptionSet, Sendable {
  package let rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }
  /// What the registry has.
  package static let decisions = ForgottenParts(rawValue: 1)
  package static let log = ForgottenParts(rawValue: 2)
  package static let trash = ForgottenParts(rawValue: 4)
  package static let all: ForgottenParts = [.decisions, .log, .trash]
}

/// Whether a user has a home.
enum HomeOwnership: Equatable {
  case yes, no
  /// A home is away, and nobody knows whose it is.
  case unknown(home: String)
}

extension Store {
  /// What is to be forgotten of somebody.
  ///
  /// Throws if that can't be told and there is something.
  package func parts(
    toForgetOf former: FormerUser, in registry: Registry
  ) throws(StoreError) -> ForgottenParts {
    let isRootless = description.mode == .rootless
    guard former.user != 0, !former.isHomeAlone else { return [] }
    // Whose store it is has used it before there was a home.
    if former.successor != nil, isRootless { return [] }
    // What was decided under the number is another account's, which has another number by now: it follows
    // that one when the next worker starts.
    if former.successor == nil, try registry.changedHolder(of: former.user, .users) != nil { return [] }
    switch try ownership(of: former.user, registry, countingEjected: former.successor == nil) {
    case .yes: return []
    case .no: break
    case .unknown(let home):
      guard try registry.hasDecisions(of: former.user) else { return [] }
      throw .homeOwnerUnknown(user: former.user, path: "\(path)/tree/Users/\(home)")
    }
    guard let name = former.successor else { return isRootless ? .decisions : .all }
    return switch try registry.holder(of: former.user, named: name, homeIsBack: former.isHomeBack) {
    case .account: []
    case .former: .all
    // At worst somebody is asked once more. Nothing that they may have thrown away themselves is taken.
    case .unknown: try registry.hasDecisions(of: former.user) ? [.decisions, .log] : .log
    }
  }

  /// Whether a user has a home: in the store, or on a volume, be that there or not.
  ///
  /// One that was ejected counts as well, unless an account is about to get a home: that may be somebody else
  /// by now.
  func ownership(
    of user: UInt32, _ registry: Registry, countingEjected: Bool = true
  ) throws(StoreError) -> HomeOwnership {
    let owners = try registry.ownersOfHomesElsewhere()
    var unknown: String?
    for home in try Homes(tree: tree, path: path + "/tree", mode: description.mode).owners() {
      let owner = home.owner ?? owners[Array(home.name.utf8)]
      if owner == user { return .yes }
      if owner == nil { unknown = home.name }
    }
    for home in try countingEjected ? registry.ejectedHomes() : [] {
      // One that nobody has seen is theirs who have something in it.
      let isTheirs: Bool
      if let owner = home.owner {
        isTheirs = owner == user
      } else {
        isTheirs = try registry.hasThings(of: user, inHome: home.name)
      }
      if isTheirs { return .yes }
    }
    return unknown.map { .unknown(home: $0) } ?? .no
  }

  /// Who has a home: in the store, or on a volume, be that there or not; nil if somebody may have one of whom
  /// that is not known.
  func ownersOfHomes(_ registry: Registry?) throws(StoreError) -> Set<UInt32>? {
    let elsewhere = try registry?.ownersOfHomesElsewhere() ?? [:]
    var owners = Set(elsewhere.values)
    for home in try Homes(tree: tree, path: path + "/tree", mode: description.mode).owners() {
      guard let owner = home.owner ?? elsewhere[Array(home.name.utf8)] else { return nil }
      owners.insert(owner)
    }
    for home in try registry?.ejectedHomes() ?? [] {
      guard let owner = home.owner else { return nil }
      owners.insert(owner)
    }
    return owners
  }

  /// Forgets what is noted of things in a home of a user's that was removed; nothing while it is there.
  package func forget(home name: String, of user: UInt32, in registry: Registry) throws(StoreError) {
    try Homes.checkName(name)
    let users = try explaining("open", path + "/tree/Users") { () throws(Errno) in
      try tree.openDirectory("Users")
    }
    guard !users.fd.has(name) else { return }
    guard try registry.isInEjectedHome("Users/\(name)/.") else {
      return try registry.forget(home: name, of: user)
    }
    try registry.forget(home: name, of: user, whereRemovedAre: { openDirectory(of: $0) != nil })
  }
}
