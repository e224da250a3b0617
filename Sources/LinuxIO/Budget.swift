// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import Synchronization

// What users and apps share, and how much of it each may have.
//
//  1. Whatever somebody can make grow is counted here, by kind, for the user who made it and, if it came
//     through an app's view, for that view as well. The ids that an account has been given besides its own
//     count as that account.
//  2. A user may have a quarter of what is still free, a view half of what its user may have. So the first
//     user gets a fifth of everything, the next ones a little less, and there is always something left for
//     whoever comes next. Of names on the way to what is granted, which stay for years, everybody has as many
//     of their own.
//  3. Root, or the user whose daemon this is, may have all of it, and a reserve that is nobody else's.
//  4. Whoever is over budget is refused alone. That is counted and logged, one line for each user, kind and
//     minute.

/// The account that is charged for a resource.
package struct Payer: Hashable, Sendable {
  package let user: UInt32
  /// The app's view that the request came through; 0 for the whole tree.
  package let view: UInt32

  /// `user` may be an id that an account has been given besides its own; then that account is charged.
  package init(user: UInt32, view: UInt32 = 0) {
    self.user = SubordinateUsers.ofThisMachine.account(of: user)
    self.view = view
  }
}

/// See the rules above.
package final class Budget: Sendable {
  package enum Kind: Int, CaseIterable, Sendable {
    /// Entries in the tables of what is open: memory.
    case openFiles, openDirectories
    /// Descriptors that the daemon keeps for somebody.
    case descriptors
    case locks
    /// Requests that wait without a thread.
    case waiting
    /// Of these, reads that wait for a volume: the kernel sends only so many of all users' at once.
    case reads
    /// Bytes of what they have to say, and of listings that are being read.
    case memory
    case views, requests
    /// Names on the way to what a user has granted apps.
    case grantedNames
  }

  /// How much there is of each kind, for all or for everybody.
  package struct Limits: Sendable {
    private var pools: [Int]

    /// `descriptors` is how many the daemon may keep for others, and `memory` how much it may use.
    package init(descriptors: Int, memory: Int = MemoryLimit.ofThisProcess) {
      pools = Kind.allCases.map { kind in
        switch kind {
        case .openFiles, .openDirectories: 1 << 20
        case .descriptors: max(descriptors, 64)
        case .locks: 1 << 17
        case .waiting: 1 << 14
        case .reads: 1 << 13
        case .memory: Self.share(of: memory)
        case .views: 1000
        case .grantedNames: 50_000
        // Each is a thread.
        case .requests: 256
        }
      }
    }

    /// A sixteenth, but enough for some requests of a megabyte each.
    private static func share(of memory: Int) -> Int { min(max(memory / 16, 1 << 24), 1 << 30) }

    package subscript(kind: Kind) -> Int {
      get { pools[kind.rawValue] }
      set { pools[kind.rawValue] = max(newValue, 0) }
    }
  }

  private let limits: Limits
  private let daemonUser: UInt32
  private let say: @Sendable (String) -> Void
  private let shards = (0..<16).map { _ in BudgetAccounts() }
  private let totals = (0..<Kind.allCases.count).map { _ in Total() }
  private let refused = Mutex(Refusals())

  /// `say` gets a line for the log.
  package init(_ limits: Limits, daemonUser: UInt32 = 0, say: @escaping @Sendable (String) -> Void = { _ in })
  {
    self.limits = limits
    self.daemonUser = daemonUser
    self.say = say
  }

  /// Charges the payer; throws the errno of that kind if they are over budget.
  package func take(_ kind: Kind, _ count: Int = 1, by payer: Payer) throws(Errno) {
    guard charge(kind, count, to: payer, isLimited: true) else {
      refuse(kind, payer.user)
      throw kind.errno
    }
  }

  /// Charges the payer if they are within budget; nothing is counted or logged if not.
  package func takeQuietly(_ kind: Kind, _ count: Int = 1, by payer: Payer) -> Bool {
    charge(kind, count, to: payer, isLimited: true)
  }

  /// Throws what ``take(_:_:by:)`` would throw.
  package func check(_ kind: Kind, _ count: Int = 1, by payer: Payer) throws(Errno) {
    try take(kind, count, by: payer)
    give(kind, count, by: payer)
  }

  /// Charges the payer whether or not they are over budget.
  package func charge(_ kind: Kind, _ count: Int = 1, to payer: Payer) {
    _ = charge(kind, count, to: payer, isLimited: false)
  }

  /// The reverse of both.
  package func give(_ kind: Kind, _ count: Int = 1, by payer: Payer) {
    guard count != 0 else { return }
    totals[kind.rawValue].count.wrappingSubtract(count, ordering: .relaxed)
    let user = Party.user(payer.user)
    shard(user).add(-count, kind, user)
    guard payer.view != 0 else { return }
    let view = Party.view(payer.view)
    shard(view).add(-count, kind, view)
  }

  /// Counts a refusal that was decided elsewhere, and logs it.
  package func refuse(_ kind: Kind, _ user: UInt32) {
    let isNews = refused.withLock { $0.note(kind, user, minute: coarseSeconds() / 60) }
    if isNews { say("user \(user) has reached the limit for \(kind.words); more are refused") }
  }

  /// How much of a kind is in use.
  package func total(_ kind: Kind) -> Int { totals[kind.rawValue].count.load(ordering: .relaxed) }

  /// How much of a kind a user has, or a view of theirs.
  package func count(_ kind: Kind, of payer: Payer) -> Int {
    let account = payer.view == 0 ? Party.user(payer.user) : Party.view(payer.view)
    return shard(account).count(kind, account)
  }

  /// What was refused to whom.
  package var refusals: [Refusal] { refused.withLock { $0.all } }

  /// What was refused to one user.
  package struct Refusal: Codable, Sendable {
    package var user: UInt32
    package var kind: String
    package var count: UInt64
  }

  // MARK: Inside

  private func charge(_ kind: Kind, _ count: Int, to payer: Payer, isLimited: Bool) -> Bool {
    let user = Party.user(payer.user)
    var share = Int.max
    if isLimited, payer.view == 0, mayHaveAll(payer.user), !kind.isEverybodys {
      // What they have themselves is theirs already, so it need not be looked up.
      guard count <= 0 || free(kind) >= count else { return false }
    } else if isLimited {
      share = self.share(of: kind, payer.user)
    }
    guard shard(user).add(count, kind, user, upTo: share) else { return false }
    if payer.view != 0 {
      let view = Party.view(payer.view)
      guard shard(view).add(count, kind, view, upTo: share == .max ? .max : share / 2) else {
        shard(user).add(-count, kind, user)
        return false
      }
    }
    totals[kind.rawValue].count.wrappingAdd(count, ordering: .relaxed)
    return true
  }

  /// How much of a kind a user may have by now.
  private func share(of kind: Kind, _ user: UInt32) -> Int {
    if kind.isEverybodys { return limits[kind] }
    if mayHaveAll(user) { return free(kind) + shard(.user(user)).count(kind, .user(user)) }
    return (free(kind) - limits[kind] / 16) / 4
  }

  private func mayHaveAll(_ user: UInt32) -> Bool { user == 0 || user == daemonUser }
  private func free(_ kind: Kind) -> Int { limits[kind] - total(kind) }

  private func shard(_ account: Party) -> BudgetAccounts { shards[Int(account.raw & 15)] }
}

extension Budget.Kind {
  /// Whether everybody has as many of their own, root and the daemon's user too; of other kinds there are so
  /// many for all.
  package var isEverybodys: Bool { self == .grantedNames }

  /// What whoever is over budget is told.
  package var errno: Errno {
    switch self {
    case .openFiles, .openDirectories, .descriptors: .EMFILE
    case .locks, .waiting: .ENOLCK
    case .grantedNames: .EDQUOT
    case .reads: .EIO
    case .memory, .views, .requests: .EBUSY
    }
  }

  /// For people.
  package var words: String {
    switch self {
    case .openFiles: "open files"
    case .openDirectories: "open directories"
    case .descriptors: "descriptors of the daemon"
    case .locks: "locks"
    case .waiting: "waiting requests"
    case .reads: "reads that wait"
    case .memory: "memory for waiting requests"
    case .views: "running apps"
    case .grantedNames: "grants"
    case .requests: "control requests"
    }
  }
}

/// All of one kind.
private final class Total: Sendable {
  let count = Atomic<Int>(0)
}

/// What was refused, and what of that has been logged.
private struct Refusals {
  private struct Key: Hashable {
    let user: UInt32
    let kind: Budget.Kind
  }
  private var counts: [Key: (count: UInt64, minute: UInt32)] = [:]
  private var lines: (minute: UInt32, count: Int) = (0, 0)
  /// However many users there are, what is kept of them and the log stay short.
  private static let keyLimit = 1024
  private static let linesPerMinute = 60

  /// True if the log is to have it.
  mutating func note(_ kind: Budget.Kind, _ user: UInt32, minute: UInt32) -> Bool {
    let key = Key(user: user, kind: kind)
    if counts.count >= Self.keyLimit { counts = counts.filter { $0.value.minute == minute } }
    guard let known = counts[key] ?? (counts.count < Self.keyLimit ? (0, .max) : nil) else { return false }
    let isNews = known.minute != minute && hasLine(minute)
    counts[key] = (known.count + 1, isNews ? minute : known.minute)
    return isNews
  }

  private mutating func hasLine(_ minute: UInt32) -> Bool {
    if lines.minute != minute { lines = (minute, 0) }
    lines.count += 1
    return lines.count <= Self.linesPerMinute
  }

  var all: [Budget.Refusal] {
    counts.map { Budget.Refusal(user: $0.key.user, kind: $0.key.kind.words, count: $0.value.count) }
      .inOrder { ($0.user, $0.kind) < ($1.user, $1.kind) }
  }
}
