// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

// What is refused, as far as it is to get a line in the log.
//
//  1. The first time that an app of a user's is refused something gets a line at once. What is refused again
//     is counted, and the count gets a line each minute.
//  2. An app of a user's has a number of bytes for such lines, which grows slowly up to a limit. Who has used
//     them up has what follows counted as a whole, which also gets a line each minute.
//  3. Whoever has been quiet for a minute is forgotten. So what is kept is bounded by how many apps of users
//     are refused something in a minute, and for each by a number.
//
// Whoever asks gives the time, by a clock that only goes forward and by the one on the wall.

/// See the rules above.
struct RefusalTable {
  /// An app of a user's, or the user in the whole tree.
  private struct Source: Hashable {
    let account: UInt32
    let app: AppIdentifier?
  }

  fileprivate struct Repeated {
    /// Its line; nil as long as that is being made.
    var entry: LogEntry?
    var more: UInt64 = 0
    var last: Int64 = 0
    /// When it was last told, and when it last happened.
    var told: UInt64
    var seen: UInt64
  }

  fileprivate struct Known {
    var bytes = RefusalTable.burst
    var filled: UInt64
    var repeated: [Int: Repeated] = [:]
    /// What gets no line of its own, since when.
    var unlisted: UInt64 = 0
    var unlistedSince: UInt64 = 0
    var last: Int64 = 0
    var seen: UInt64
    let user: UInt32
  }

  /// A moment by both clocks: in nanoseconds, and in milliseconds since 1970.
  struct Moment {
    let nanoseconds: UInt64
    let milliseconds: Int64
  }

  /// The bytes that lines of one source may have at once, and what comes back each second.
  static let burst = 16 << 10
  static let bytesEachSecond = 32
  /// What a line is taken to have before it is made.
  fileprivate static let guess = 256
  /// What of one source is counted by itself.
  static let mostRepeated = 16
  static let mostSources = 4096
  static let minute: UInt64 = 60_000_000_000

  private var sources: [Source: Known] = [:]
  /// What was refused to more sources than there may be.
  private(set) var lost: UInt64 = 0

  init() {}

  /// Whether there is anything to tell in a while.
  var isQuiet: Bool { sources.isEmpty }
  var count: Int { sources.count }

  /// Notes a refusal; whether it is to get a line, which ``add(_:_:for:)`` then gets.
  mutating func note(_ refusal: Refusal, at now: Moment) -> Bool {
    let source = Source(account: Payer(user: refusal.user).user, app: refusal.app)
    guard sources[source] != nil || sources.count < Self.mostSources else {
      lost &+= 1
      return false
    }
    return sources[source, default: Known(filled: now.nanoseconds, seen: now.nanoseconds, user: refusal.user)]
      .note(refusal.key, at: now)
  }

  /// The line of what was just noted; `length` is how long it is.
  mutating func add(_ entry: LogEntry, length: Int, for refusal: Refusal) {
    let source = Source(account: Payer(user: refusal.user).user, app: refusal.app)
    guard let known = sources[source] else { return }
    sources[source]?.bytes = known.bytes - max(0, length - Self.guess)
    sources[source]?.repeated[refusal.key]?.entry = entry
  }

  /// Forgets what was refused to a user.
  ///
  /// What was counted for another account, because the user was not known yet, goes with it.
  mutating func forget(_ user: UInt32) {
    sources = sources.filter { source, known in
      source.account != user && known.user != user
        && !known.repeated.values.contains { $0.entry?.user == user }
    }
  }

  /// What is to be told by now; `isLast`: all that is left.
  mutating func due(at now: Moment, isLast: Bool = false) -> [LogEntry] {
    var entries: [LogEntry] = []
    for source in Array(sources.keys) {
      guard var known = sources[source] else { continue }
      entries += known.due(at: now, app: source.app, isLast: isLast)
      sources[source] = known.isForgotten(at: now) ? nil : known
    }
    return entries
  }
}

extension RefusalTable.Known {
  fileprivate mutating func note(_ key: Int, at now: RefusalTable.Moment) -> Bool {
    seen = now.nanoseconds
    last = now.milliseconds
    if repeated[key] != nil {
      repeated[key]?.more &+= 1
      repeated[key]?.last = now.milliseconds
      repeated[key]?.seen = now.nanoseconds
      return false
    }
    fill(at: now)
    guard bytes >= RefusalTable.guess, makeRoom() else {
      if unlisted == 0 { unlistedSince = now.nanoseconds }
      unlisted &+= 1
      return false
    }
    bytes -= RefusalTable.guess
    repeated[key] = RefusalTable.Repeated(told: now.nanoseconds, seen: now.nanoseconds)
    return true
  }

  private mutating func fill(at now: RefusalTable.Moment) {
    let seconds = (now.nanoseconds &- filled) / 1_000_000_000
    guard seconds > 0 else { return }
    filled &+= seconds &* 1_000_000_000
    let more = Int(clamping: min(seconds, 1 << 20)) * RefusalTable.bytesEachSecond
    bytes = min(RefusalTable.burst, bytes + more)
  }

  /// Forgets the oldest one of which there is nothing left to tell; false if there is none.
  private mutating func makeRoom() -> Bool {
    guard repeated.count >= RefusalTable.mostRepeated else { return true }
    let idle = repeated.filter { $0.value.more == 0 }.min { $0.value.seen < $1.value.seen }
    guard let idle else { return false }
    repeated[idle.key] = nil
    return true
  }

  fileprivate mutating func due(
    at now: RefusalTable.Moment, app: AppIdentifier?, isLast: Bool
  ) -> [LogEntry] {
    func isDue(_ since: UInt64) -> Bool { isLast || now.nanoseconds &- since >= RefusalTable.minute }
    var entries: [LogEntry] = []
    for (key, one) in repeated where isDue(one.told) {
      if one.more == 0 {
        if isDue(one.seen) { repeated[key] = nil }
        continue
      }
      if var entry = one.entry {
        entry.more = one.more
        entry.until = one.last
        entries.append(entry)
      }
      repeated[key]?.more = 0
      repeated[key]?.told = now.nanoseconds
    }
    if unlisted > 0, isDue(unlistedSince) {
      var entry = LogEntry(.denied, user: user, app: app?.text, time: last)
      entry.more = unlisted
      entries.append(entry)
      unlisted = 0
    }
    return entries
  }

  /// Whether it is as if nothing had happened.
  fileprivate func isForgotten(at now: RefusalTable.Moment) -> Bool {
    guard repeated.isEmpty, unlisted == 0 else { return false }
    let needed = UInt64(max(0, RefusalTable.burst - bytes) / RefusalTable.bytesEachSecond)
    return now.nanoseconds &- filled >= needed &* 1_000_000_000
      && now.nanoseconds &- seen >= RefusalTable.minute
  }
}
