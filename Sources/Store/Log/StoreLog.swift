// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import Synchronization

/// What was refused and done in a store: `state/log`.
///
/// Each account has files of its own, one for what it was refused and one for all else, and so has what
/// concerns all users. Each has a bound, at which the older half of it goes: whatever somebody does a million
/// times takes the place of nobody else's entries, and what apps are refused takes that of nothing but
/// refusals.
///
/// Only one process writes at a time: the one that has the store's lock.
package final class StoreLog: Sendable {
  private let store: Store
  private struct State {
    var isOpen = false
    /// The last number in each file.
    var last: [String: UInt64] = [:]
    var highest: UInt64 = 0
  }
  private let state = Mutex(State())
  /// Held while files are written, so that lines come in the order of their numbers.
  private let writing = Mutex(())

  package static let directoryName = "log"
  private static let deniedLimit = 1 << 20
  private static let otherLimit = 512 << 10
  private static let oldSuffix = ".old"
  private static let machine = "machine"

  private let accounts: LocalAccounts

  package init(_ store: Store, _ accounts: LocalAccounts = .users) {
    self.store = store
    self.accounts = accounts
  }

  /// The name of the file that an entry belongs to.
  private static func name(_ entry: LogEntry) -> String {
    let owner = entry.user.map { "\(Payer(user: $0).user)" } ?? machine
    return owner + (entry.event == .denied ? ".denied" : ".done")
  }

  // MARK: Writing

  /// Adds entries, to each file by one write; they get their numbers.
  package func append(_ entries: [LogEntry]) throws(Errno) {
    guard !entries.isEmpty else { return }
    try writing.withLock { _ throws(Errno) in
      let directory = try store.state.openDirectory(Self.directoryName, makingWith: 0o700)
      open(directory.fd)
      var lines: [String: [UInt8]] = [:]
      var last: [String: UInt64] = [:]
      var number = state.withLock { $0.highest }
      for user in Set(entries.compactMap(\.user)) { noteHolder(of: user, after: number, in: directory.fd) }
      for var entry in entries {
        number += 1
        entry.number = number
        let name = Self.name(entry)
        lines[name, default: []] += LogFile.line(entry)
        last[name] = number
      }
      var failure: Errno?
      for (name, bytes) in lines {
        let limit = name.hasSuffix(".denied") ? Self.deniedLimit : Self.otherLimit
        do throws(Errno) {
          try LogFile.append(bytes, to: name, old: name + Self.oldSuffix, limit: limit, in: directory.fd)
        } catch {
          failure = error
        }
      }
      // Not before they can be read.
      state.withLock { state in
        state.highest = number
        state.last.merge(last) { $1 }
      }
      if let failure { throw failure }
    }
  }

  // MARK: Whose it is

  /// Notes whose a number's entries are, before the first one; from then on, those of another account that
  /// had the number are nobody's but root's.
  ///
  /// Where that can't be noted it is not forgotten: what is noted still says that it was another account.
  private func noteHolder(of user: UInt32, after number: UInt64, in directory: FD) {
    guard store.description.mode == .system, let name = accounts.name(of: user) else { return }
    var holder = LogHolder(of: user, in: directory)
    if holder?.has(user, accounts, store) == true {
      if holder?.name == name { return }
      holder?.name = name
    } else {
      holder = LogHolder(name: name, since: holder == nil ? 0 : number)
    }
    try? holder?.write(for: user, in: directory)
  }

  /// What is there of some numbers is another account's, unless it is noted, or known by these names, that it
  /// is the one's that has the number now.
  package func handOver(_ users: some Sequence<UInt32>, _ names: [UInt32: String]) {
    writing.withLock { _ in
      guard let directory = try? store.state.openDirectory(Self.directoryName) else { return }
      open(directory.fd)
      let number = state.withLock { $0.highest }
      for user in users where LogHolder(of: user, in: directory.fd) == nil {
        let known = names[user].map { LogHolder(name: $0, since: 0) }
        if known?.has(user, accounts, store) == true { continue }
        try? LogHolder(name: accounts.name(of: user) ?? "", since: number).write(for: user, in: directory.fd)
      }
    }
  }

  /// The last entry that an account must not see of those of its number.
  private func lastOfOthers(_ user: UInt32, in directory: FD) -> UInt64 {
    guard store.description.mode == .system, let holder = LogHolder(of: user, in: directory) else { return 0 }
    return holder.has(user, accounts, store) ? holder.since : .max
  }

  /// Deletes what is in it of a user: the next holder of the number has no business with it.
  ///
  /// What is written afterwards has higher numbers all the same.
  package func forget(_ user: UInt32) throws(StoreError) {
    try explaining("delete the log of uid \(user) in", "\(store.path)/state") { () throws(Errno) in
      try writing.withLock { _ throws(Errno) in
        guard let directory = try? store.state.openDirectory(Self.directoryName) else { return }
        open(directory.fd)
        for kind in Self.kinds {
          for name in ["\(user)\(kind)\(Self.oldSuffix)", "\(user)\(kind)"] where directory.fd.has(name) {
            try directory.fd.remove(name, directory: false)
          }
          state.withLock { _ = $0.last.removeValue(forKey: "\(user)\(kind)") }
        }
        // The last, since what is left is still known as another account's.
        let holder = "\(user)\(LogHolder.suffix)"
        if directory.fd.has(holder) { try directory.fd.remove(holder, directory: false) }
        // It may have been taken for a number of another account's.
        let account = SubordinateUsers.ofThisMachine.holder(of: user)
        if account != user { try Self.removeEntries(of: user, from: "\(account)", in: directory.fd) }
      }
    }
  }

  private static func removeEntries(
    of user: UInt32, from owner: String, in directory: FD
  ) throws(Errno) {
    for kind in kinds {
      for name in ["\(owner)\(kind)\(oldSuffix)", "\(owner)\(kind)"] {
        try LogFile.rewrite(name, by: rewrittenName, in: directory) { $0.user != user }
      }
    }
  }

  /// What a process leaves that is stopped while it deletes entries.
  private static let rewrittenName = ".rewritten"

  private static let kinds = [".denied", ".done"]

  /// Looks once where the numbers stand.
  private func open(_ directory: FD) {
    guard !state.withLock({ $0.isOpen }) else { return }
    var last: [String: UInt64] = [:]
    var highest: UInt64 = 0
    for entry in (try? directory.entries()) ?? [] {
      let name = String(decoding: entry.name, as: UTF8.self)
      if name.hasSuffix(LogHolder.suffix) {
        // What is written from here on comes after what was another account's.
        highest = max(highest, LogHolder(name, in: directory)?.since ?? 0)
        continue
      }
      let base = name.hasSuffix(Self.oldSuffix) ? String(name.dropLast(Self.oldSuffix.utf8.count)) : name
      guard name != Self.rewrittenName, let file = LogFile(name, in: directory) else { continue }
      last[base] = max(last[base] ?? 0, file.lastNumber())
    }
    state.withLock { state in
      guard !state.isOpen else { return }
      state.isOpen = true
      state.last = last
      state.highest = max(highest, last.values.max() ?? 0)
    }
  }

  // MARK: Reading

  /// What is asked for: a page of it, oldest first.
  ///
  /// For somebody who may see all of it, unless it names a user.
  package func page(_ query: LogQuery) -> LogPage {
    guard let directory = try? store.state.openDirectory(Self.directoryName) else {
      return LogPage(entries: [], next: query.after, isMore: false)
    }
    // Another process may have written since.
    if store.lockDescriptor == nil { state.withLock { $0.isOpen = false } }
    open(directory.fd)
    let (last, highest) = state.withLock { ($0.last, $0.highest) }
    let hidden = query.user.map { lastOfOthers($0, in: directory.fd) } ?? 0
    let others = OthersEntries(of: query.user, after: hidden, store)
    var found: [(entry: LogEntry, length: Int)] = []
    // From here on there may be more in a file.
    var end = UInt64.max
    for (name, number) in last where number > query.after && query.mayBe(in: name) {
      let read = read(name, in: directory.fd, query, others)
      if read.count == LogPage.mostEntries { end = min(end, read.last?.entry.number ?? end) }
      found += read
    }
    found = found.filter { $0.entry.number <= end }.inOrder { $0.entry.number < $1.entry.number }
    var page: [LogEntry] = []
    var bytes = 0
    for (entry, length) in found {
      if page.count == LogPage.mostEntries || bytes + length > LogPage.mostBytes, !page.isEmpty {
        return LogPage(entries: page, next: page.last?.number ?? query.after, isMore: true)
      }
      page.append(entry)
      bytes += length
    }
    let isCut = end < .max
    return LogPage(entries: page, next: isCut ? end : max(highest, query.after), isMore: isCut)
  }

  /// The first entries of a file and of the one before it, as many as there may be in a page.
  private func read(
    _ name: String, in directory: FD, _ query: LogQuery, _ others: OthersEntries
  ) -> [(entry: LogEntry, length: Int)] {
    var found: [(entry: LogEntry, length: Int)] = []
    // Opened in this order, a new file that is begun meanwhile hides none; then both are the same.
    let current = LogFile(name, in: directory)
    let old = LogFile(name + Self.oldSuffix, in: directory)
    func add(_ entry: LogEntry, _ length: Int) -> Bool {
      if query.matches(entry, others), entry.number > found.last?.entry.number ?? 0 {
        found.append((entry, length))
      }
      return found.count < LogPage.mostEntries
    }
    if let old { old.entries(after: query.after, add) }
    if found.count < LogPage.mostEntries, let current { current.entries(after: query.after, add) }
    return found
  }

  fileprivate static func owner(_ name: String) -> Substring { name.prefix { $0 != "." } }
  fileprivate static var everybodys: String { machine }
}

/// Which entries somebody sees that are about another number: those of the IDs that their account was given
/// besides its own, and of nobody who is an account or has a home.
///
/// Files are those of accounts, as far as these were known when an entry was written.
private final class OthersEntries {
  private let user: UInt32?
  /// The last entry that is another account's, which had the same number.
  let last: UInt64
  private let store: Store
  private lazy var owners = store.homeOwners
  private var known: [UInt32: Bool] = [:]

  init(of user: UInt32?, after last: UInt64, _ store: Store) {
    self.user = user
    self.last = last
    self.store = store
  }

  func areSeen(of owner: UInt32) -> Bool {
    if let seen = known[owner] { return seen }
    let users = SubordinateUsers.ofThisMachine
    let seen =
      users.holder(of: owner) == user && !owners.contains(owner) && !users.numbers.find(owner)
    known[owner] = seen
    return seen
  }
}

/// Which entries somebody wants.
package struct LogQuery: Codable, Equatable, Sendable {
  /// Those after one of that number.
  package var after: UInt64 = 0
  /// Of that user's and of the machine's; nil for all.
  ///
  /// An account's include those of the IDs that it was given besides its own.
  package var user: UInt32?
  package var app: String?
  /// In milliseconds since 1970.
  package var since: Int64?
  package var deniedOnly = false

  package init(
    after: UInt64 = 0, user: UInt32? = nil, app: String? = nil, since: Int64? = nil, deniedOnly: Bool = false
  ) {
    self.after = after
    self.user = user
    self.app = app
    self.since = since
    self.deniedOnly = deniedOnly
  }

  fileprivate func mayBe(in file: String) -> Bool {
    if deniedOnly, !file.hasSuffix(".denied") { return false }
    guard let user else { return true }
    let owner = StoreLog.owner(file)
    // Before it was an account's, an ID had files of its own; before it was known to be an account itself,
    // it had none.
    return owner == StoreLog.everybodys || owner == "\(user)"
      || owner == "\(SubordinateUsers.ofThisMachine.holder(of: user))"
  }

  fileprivate func matches(_ entry: LogEntry, _ others: OthersEntries) -> Bool {
    if let since, (entry.until ?? entry.time) < since { return false }
    if let user, let owner = entry.user {
      if entry.number <= others.last || owner != user && !others.areSeen(of: owner) { return false }
    }
    return app.map { $0.lowercased() == entry.app?.lowercased() } ?? true
  }
}

/// Part of what was asked for, and where to go on.
package struct LogPage: Codable, Equatable, Sendable {
  package let entries: [LogEntry]
  /// What to ask for after these.
  package let next: UInt64
  /// Whether there is more by now.
  package let isMore: Bool

  /// No answer is longer than what a socket takes at once.
  static let mostEntries = 200
  static let mostBytes = 48 << 10

  package init(entries: [LogEntry], next: UInt64, isMore: Bool) {
    self.entries = entries
    self.next = next
    self.isMore = isMore
  }
}
