// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
package import LinuxIO
internal import Policy
package import Store
package import Volume

/// Notes what is refused and done while a store is served.
///
/// A thread of its own writes: no request waits for a disk for the sake of the log, but one that has ended
/// workers. What is allowed takes no lock of it. What somebody is told is done is in the log by then, as far
/// as the disk has room.
package final class EventLog: RefusalListener {
  private struct State {
    var waiting: [LogEntry] = []
    var refusals = RefusalTable()
    /// How many entries were given to the thread, and how many of those it has done with.
    var given: UInt64 = 0
    var done: UInt64 = 0
    /// Whether somebody waits for what is waiting.
    var isUrgent = false
    var isEnding = false
    var hasEnded = false
    var isSaid = false
  }

  private let log: StoreLog
  private let journal: Journal?
  private let state = Condition(State())

  /// Entries that wait for the thread.
  private static let mostWaiting = 4096
  /// For how long refusals are gathered, so that many are one write.
  private static let gatherMilliseconds = 50
  /// For how long whoever has done something waits for a disk that hangs.
  private static let patienceMilliseconds = 1000

  /// Begins to write.
  package init(_ store: Store, journal: Journal?) throws(Errno) {
    log = StoreLog(store)
    self.journal = journal
    let thread = try JoinableThread(name: "log") { [log, journal, state] in
      Self.write(to: log, journal, state)
    }
    thread.detach()
  }

  // MARK: What is done

  /// Notes it, and waits until it is written.
  package func record(_ entries: [LogEntry]) {
    waitUntilDone(add(entries, isUrgent: true))
  }

  private func waitUntilDone(_ number: UInt64) {
    _ = state.wait(milliseconds: Self.patienceMilliseconds) { $0.done >= number || $0.hasEnded }
  }

  package func record(_ entry: LogEntry) { record([entry]) }

  /// Notes it, for a thread that must not wait.
  package func recordLater(_ entry: LogEntry) { _ = add([entry], isUrgent: false) }

  private func add(_ entries: [LogEntry], isUrgent: Bool) -> UInt64 {
    state.change { state in
      let taken = entries.prefix(max(0, Self.mostWaiting - state.waiting.count))
      state.waiting += taken
      state.given += UInt64(taken.count)
      if isUrgent { state.isUrgent = true }
      return state.given
    }
  }

  /// Writes what is left, and ends.
  package func finish() {
    state.change { $0.isEnding = true }
    _ = state.wait(milliseconds: 2 * Self.patienceMilliseconds) { $0.hasEnded }
  }

  /// Deletes what is in it of a user; what is about to be written of them comes first.
  func forget(_ user: UInt32) throws(StoreError) {
    let given = state.change { state in
      state.refusals.forget(user)
      state.isUrgent = true
      return state.given
    }
    waitUntilDone(given)
    try log.forget(user)
  }

  /// What is in it.
  package func page(_ query: LogQuery) -> LogPage { log.page(query) }

  // MARK: What is refused

  package func refused(_ refusal: Refusal, path: () -> [UInt8]?) {
    let now = RefusalTable.Moment.now
    let isNoted = state.withLock { $0.refusals.note(refusal, at: now) }
    guard isNoted || refusal.rule == .deadly else { return }
    // Now that there will be a line.
    let entry = LogEntry(refusal, path: path(), at: now.milliseconds)
    // Nobody hides it behind many refusals: each costs two workers.
    if refusal.rule == .deadly { DaemonLog.write(entry.textOfDeaths) }
    guard isNoted else { return }
    let number = state.change { state -> UInt64? in
      state.refusals.add(entry, length: entry.length, for: refusal)
      guard state.waiting.count < Self.mostWaiting else { return nil }
      state.waiting.append(entry)
      state.given += 1
      if refusal.rule == .deadly { state.isUrgent = true }
      return state.given
    }
    // The next request may end this worker, and the line with it.
    if refusal.rule == .deadly, let number { waitUntilDone(number) }
  }

  // MARK: The thread

  private static func write(to log: StoreLog, _ journal: Journal?, _ state: Condition<State>) {
    while true {
      let isQuiet = state.withLock { $0.refusals.isQuiet }
      if isQuiet {
        state.wait { !$0.waiting.isEmpty || $0.isEnding }
      } else {
        _ = state.wait(milliseconds: 1000) { !$0.waiting.isEmpty || $0.isEnding }
      }
      _ = state.wait(milliseconds: gatherMilliseconds) { $0.isUrgent || $0.isEnding }
      let (entries, given, isLast) = state.withLock { state in
        let entries = state.waiting + state.refusals.due(at: .now, isLast: state.isEnding)
        state.waiting = []
        state.isUrgent = false
        return (entries, state.given, state.isEnding)
      }
      put(entries, log, journal, state)
      state.change { state in
        state.done = given
        state.hasEnded = isLast
      }
      if isLast { return }
    }
  }

  private static func put(
    _ entries: [LogEntry], _ log: StoreLog, _ journal: Journal?, _ state: Condition<State>
  ) {
    guard !entries.isEmpty else { return }
    journal?.send(entries)
    do throws(Errno) {
      try log.append(entries)
      state.withLock { $0.isSaid = false }
    } catch {
      // Once, until it works again: the daemon's own log is on that disk too, maybe.
      let isNew = state.withLock { state in
        defer { state.isSaid = true }
        return !state.isSaid
      }
      if isNew, error != .EROFS { DaemonLog.write("can't write state/log: \(error.message)") }
    }
  }
}

extension RefusalTable.Moment {
  static var now: Self { Self(nanoseconds: monotonicNanoseconds(), milliseconds: wallMilliseconds()) }
}

extension LogEntry {
  fileprivate init(_ refusal: Refusal, path: [UInt8]?, at time: Int64) {
    let process = ProcessID.process(ofThread: refusal.thread)
    self.init(
      .denied, user: refusal.user, app: refusal.app?.text, pid: process?.id, time: time)
    setPath(path)
    program = process?.name
    operation = refusal.operation.rawValue
    rule = refusal.rule.rawValue
  }

  /// A request by which workers have died, for the daemon's log.
  fileprivate var textOfDeaths: String {
    let who = app.map { "app \($0) of user \(user ?? 0)" } ?? "user \(user ?? 0)"
    let what = "\(operation ?? "use") \(path.map { "/" + $0.sanitized } ?? "what has no path")"
    return "two processes that serve died by a request of \(who) (\(what)); it is answered with an I/O error"
  }

  /// About how long its line is.
  fileprivate var length: Int {
    128 + (path?.utf8.count ?? 0) + (pathBytes?.utf8.count ?? 0) + (app?.utf8.count ?? 0)
  }

  /// One that happens now.
  package init(
    now event: Event, user: UInt32? = nil, app: String? = nil, by: UInt32? = nil, pid: Int32? = nil,
    path: String? = nil, ending: Ending? = nil, detail: String? = nil
  ) {
    self.init(
      event, user: user, app: app, by: by, pid: pid, path: path, detail: detail, time: wallMilliseconds())
    self.ending = ending
  }
}

/// Notes what is done: the log of a daemon, or where there is none the store's.
package typealias EventRecorder = @Sendable ([LogEntry]) -> Void
