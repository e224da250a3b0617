// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import Fuse
internal import Glibc
internal import LinuxIO
package import Policy
internal import Store
internal import Synchronization
package import Volume

/// An app that runs: its view, and the process that waits for its end.
///
/// That process holds the app's namespaces together: when it ends, so does all that runs in them, and the
/// view with them.
package final class RunningView: Sendable {
  package let number: UInt64
  package let launch: AppLaunch
  package var user: UInt32 { process.user }
  package var pid: Int32 { process.pid }
  /// In seconds since 1970.
  package let since: Int64
  package let view: View
  /// Of the view's own connection, since this process serves it.
  let requests = RequestCounter()
  /// The leases on its containers, where other stores can reach these.
  let hold: ContainerHold?
  /// What its user opens with it while it runs.
  let opened = OpenedDocuments()
  private let process: ClientProcess
  /// How often the app has been given a socket.
  private let sockets = Atomic<Int>(0)
  private let ends = Mutex(KnownEnd())
  /// What the next worker is to know of it.
  private let kept: SharedMemory?

  init(
    _ number: UInt64, _ launch: AppLaunch, user: UInt32, pid: Int32, since: Int64? = nil, _ process: SharedFD,
    _ view: View, _ hold: ContainerHold? = nil, kept: SharedMemory? = nil
  ) {
    self.hold = hold
    self.number = number
    self.launch = launch
    self.since = since ?? Int64(time(nil))
    self.kept = kept
    self.process = ClientProcess(user: user, pid: pid, process)
    self.view = view
  }

  /// Counts that the app is given a socket; false if it has been often enough.
  ///
  /// Each is a mount that lasts as long as somebody has it open. A start needs one, and another one if the
  /// answer was lost.
  func takesSocket() -> Bool { sockets.wrappingAdd(1, ordering: .relaxed).oldValue < 2 }

  /// Whether it runs; its view may be there for a little longer.
  package var isAlive: Bool { process.isAlive }

  // MARK: How it ends

  /// What is known by now of its end.
  var knownEnd: KnownEnd { ends.withLock { $0 } }

  /// Notes what the process that has waited for it says; what it says a second time makes no difference.
  func note(_ ending: AppEnding) { ends.withLock { if $0.told == nil { $0.told = ending } } }

  /// Notes why the daemon ends it, in a sentence for its user; false if that is known already.
  func note(why: String) -> Bool {
    ends.withLock { end in
      guard end.why == nil else { return false }
      end.why = why
      return true
    }
  }

  /// Notes that somebody wants it to end, before it can have ended of that.
  func note(_ wish: KnownEnd.Wish) { ends.withLock { $0.wish = wish } }

  /// Whether the process at the other end of a connection is the one that waits for it.
  ///
  /// Both run, so one number means one process: nobody else has got it meanwhile.
  func isWaitedFor(by caller: ControlCaller, _ theirs: SharedFD) -> Bool {
    guard caller.pid > 0, caller.pid == pid, caller.uid == user, isAlive else { return false }
    return theirs.isRunningProcess && isAlive
  }

  /// Sends the app a signal: the process that waits for it passes it on.
  func send(_ signal: Int32) throws(Errno) { try process.send(signal) }
}

/// An app that begins to run for a user, from a bundle.
struct AppStart: Sendable {
  fileprivate let number: UInt64
  fileprivate let app: AppOfUser
  fileprivate let path: ExactText
}

/// The apps that run, by their views.
package final class RunningViews: Sendable {
  private struct State {
    var last: UInt64 = 0
    var views: [UInt64: RunningView] = [:]
    /// What each of them takes of its user's budget.
    var shares: [UInt64: BudgetShare] = [:]
    /// Those that are about to run.
    var starts: [UInt64: AppStart] = [:]
    /// Those of them that took too long: they get no view any more.
    var calledOff: Set<UInt64> = []
    /// Of these none begins to run: something is just being done to what they have.
    var closed: Set<AppOfUser> = []
    /// Bundles of which another version is just taking the place, or nothing.
    var changing: Set<ExactText> = []
    /// Bundles from which nothing begins to run: an update waits, and what runs is being ended for it.
    var awaited: [ExactText: Int] = [:]
    var isEnding = false
    /// How many views have ended, and whether nobody is to wait for more.
    var ended: UInt64 = 0
    var isOver = false

    mutating func add(_ view: RunningView, _ share: BudgetShare) {
      views[view.number] = view
      shares[view.number] = share
    }
  }
  /// Changed when a view has ended.
  private let state = Condition(State())

  private let budget: Budget
  private let patience: Int
  /// Are told which view of whom has ended; they must not wait.
  private let listeners = Mutex<[@Sendable (_ view: UInt64, _ user: UInt32) -> Void]>([])

  init(_ budget: Budget, patienceMilliseconds: Int = RunningViews.patienceMilliseconds) {
    self.budget = budget
    patience = patienceMilliseconds
  }

  /// The views of an app, of a user, or all; with `ended` also those of apps that have ended just now.
  package func all(
    of identifier: AppIdentifier? = nil, user: UInt32? = nil, ended: Bool = false
  ) -> [RunningView] {
    state.withLock { $0.views.values.inOrder { $0.number < $1.number } }.filter {
      (identifier.map($0.launch.app.identifier.isSame) ?? true)
        && (user == nil || $0.user == user) && (ended || $0.isAlive)
    }
  }

  /// The views of a user, or all, once those of some apps have begun that were about to; with those of apps
  /// that have ended just now.
  ///
  /// What takes too long to begin does not begin.
  func all(user: UInt32?, afterStartsOf identifiers: [AppIdentifier]) -> [RunningView] {
    endStarts { start in identifiers.contains { start.app.isOf($0, user) } }
    return all(user: user, ended: true)
  }

  /// Those that run something in a bundle, or in the system domain.
  func all(using path: String) -> [RunningView] {
    all().filter { $0.launch.runs(from: path) }
  }

  /// The view that a process of a user's has begun last.
  func latest(of pid: Int32, user: UInt32) -> RunningView? {
    let found = state.withLock { state in
      state.views.values.filter { $0.pid == pid && $0.user == user }.max { $0.number < $1.number }
    }
    return found.flatMap { $0.isAlive ? $0 : nil }
  }

  /// The one whose view the volume knows by this number.
  func one(ofView number: UInt32) -> RunningView? {
    state.withLock { $0.views.values.first { $0.view.number == number } }
  }

  var count: Int { state.withLock { $0.views.count } }

  /// The one that a process waits for; the last one, if it has begun several.
  func one(waitedForBy caller: ControlCaller, _ process: SharedFD) -> RunningView? {
    let views = state.withLock { $0.views.values.filter { $0.pid == caller.pid } }
    return views.filter { $0.isWaitedFor(by: caller, process) }.max { $0.number < $1.number }
  }

  /// Room for one more view of a user; EBUSY if they have as many as one may have, those included that are
  /// about to begin or that end but are still there.
  func room(for user: UInt32) throws(Errno) -> BudgetShare {
    try BudgetShare(.views, of: Payer(user: user), in: budget)
  }

  func has(_ number: UInt64) -> Bool { state.withLock { $0.views[number] != nil } }

  func number() -> UInt64 {
    state.withLock { state in
      state.last += 1
      return state.last
    }
  }

  /// Has a view known from here on that runs already, as another worker has left it.
  func add(_ view: RunningView, _ share: BudgetShare) {
    state.withLock { $0.add(view, share) }
  }

  /// Has the view of an app known that is about to run; false if the app is not to begin any more.
  ///
  /// So whoever has ended the starts of an app finds every view of it that there can be.
  func add(_ view: RunningView, _ share: BudgetShare, of start: AppStart) -> Bool {
    state.withLock { state in
      guard Self.mayBegin(start, in: state) else { return false }
      state.add(view, share)
      return true
    }
  }

  /// Whether an app that is about to run may go on with that.
  func mayBegin(_ start: AppStart) -> Bool { state.withLock { Self.mayBegin(start, in: $0) } }

  private static func mayBegin(_ start: AppStart, in state: borrowing State) -> Bool {
    state.starts[start.number] != nil && !state.calledOff.contains(start.number) && !state.isEnding
  }

  /// The connection of a view has ended.
  func remove(_ number: UInt64) {
    let ended = state.change { state in
      state.shares[number] = nil
      state.ended += 1
      return state.views.removeValue(forKey: number)
    }
    guard let ended else { return }
    for body in listeners.withLock({ $0 }) { body(number, ended.user) }
  }

  /// Has someone told when a view has ended.
  func whenEnded(_ body: @escaping @Sendable (_ view: UInt64, _ user: UInt32) -> Void) {
    listeners.withLock { $0.append(body) }
  }

  /// Waits until more views have ended than `count`, and returns how many; nil once it is over.
  func waitForEnds(after count: UInt64) -> UInt64? {
    state.wait(until: { $0.isOver || $0.ended > count }) { $0.isOver ? nil : $0.ended }
  }

  /// Has nobody wait for the end of views any more.
  func stopWaitingForEnds() { state.change { $0.isOver = true } }

  var isOver: Bool { state.withLock { $0.isOver } }

  // MARK: What is not to happen at once

  /// An app begins to run for a user from a bundle, which stays as it is until ``started(_:)``; nil if it
  /// does not, or if nothing begins any more.
  ///
  /// It waits until nothing is being done to what the app has, which takes no longer than a rename.
  func start(_ app: AppOfUser, from path: String) -> AppStart? {
    let path = ExactText(path)
    return state.wait(until: { !$0.closed.contains(app) }) { state in
      guard !state.isEnding, state.awaited[path] == nil, !state.changing.contains(path),
        !state.changing.contains(Self.system)
      else { return nil }
      state.last += 1
      let start = AppStart(number: state.last, app: app, path: path)
      state.starts[start.number] = start
      return start
    }
  }

  func started(_ start: AppStart) {
    state.change { state in
      state.starts[start.number] = nil
      state.calledOff.remove(start.number)
    }
  }

  /// Waits for those that are about to run; what has no view after a while gets none.
  ///
  /// How long a start takes is its app's to say, and the disk's or server's of its user's home.
  private func endStarts(_ isMeant: (AppStart) -> Bool) {
    let numbers = state.withLock { state in
      Set(state.starts.values.filter(isMeant).map(\.number)).subtracting(state.calledOff)
    }
    _ = state.wait(milliseconds: patience) { state in numbers.allSatisfy { state.starts[$0] == nil } }
    state.withLock { state in
      for number in numbers where state.starts[number] != nil { state.calledOff.insert(number) }
    }
  }

  /// Does `body`, while nothing begins to run from these bundles; what was just beginning has begun before,
  /// or does not begin.
  func keepingFromStarting<Result, Failure: Error>(
    _ paths: [String], _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let paths = Set(paths.map(ExactText.init))
    state.withLock { state in
      for path in paths { state.awaited[path, default: 0] += 1 }
    }
    defer {
      state.withLock { state in
        for path in paths { Self.countDown(&state.awaited[path]) }
      }
    }
    endStarts { paths.contains($0.path) }
    return try body()
  }

  private static func countDown(_ count: inout Int?) {
    let left = (count ?? 1) - 1
    count = left > 0 ? left : nil
  }

  /// Whether an app runs for a user, begins to, or has ended just now.
  func has(_ app: AppOfUser) -> Bool { state.withLock { Self.has(app, in: $0) } }

  private static func has(_ app: AppOfUser, in state: borrowing State) -> Bool {
    state.starts.values.contains { $0.app == app }
      || state.views.values.contains { AppOfUser($0.launch.app.identifier, $0.user) == app }
  }

  /// Does something to what an app has that does not run, and does not begin to meanwhile; EBUSY if it runs.
  func keepingClosed(_ app: AppOfUser, _ body: () throws(Errno) -> Void) throws(Errno) {
    let isClosed = state.withLock { state in
      !Self.has(app, in: state) && state.closed.insert(app).inserted
    }
    guard isClosed else { throw .EBUSY }
    defer { state.change { _ = $0.closed.remove(app) } }
    try body()
  }

  private static let system = ExactText("System")

  /// Changes what is at a path, from which nothing runs meanwhile; EBUSY if something does.
  ///
  /// What was just beginning has begun before, or does not begin: one user's home that does not answer keeps
  /// nobody from changing an app that is everyone's.
  func changing(_ path: String, _ body: () throws(Errno) -> Void) throws(Errno) {
    let place = ExactText(path)
    let isFree = state.withLock { state in
      !Self.isUsed(path, in: state) && state.changing.insert(place).inserted
    }
    guard isFree else { throw .EBUSY }
    defer { _ = state.withLock { $0.changing.remove(place) } }
    endStarts { place == Self.system || $0.path == place }
    guard !state.withLock({ Self.isUsed(path, in: $0) }) else { throw .EBUSY }
    try body()
  }

  private static func isUsed(_ path: String, in state: borrowing State) -> Bool {
    state.views.values.contains { $0.launch.runs(from: path) && $0.isAlive }
  }

  // MARK: The end

  /// How long an app has to end when it is asked to.
  static let patienceMilliseconds = 5000

  /// Asks apps to end, and ends those that don't; returns those that are still there after that.
  @discardableResult
  func end(_ views: [RunningView], isCancelled: () -> Bool = { false }) -> [RunningView] {
    for view in views { try? view.send(SIGTERM) }
    wait(for: views, milliseconds: Self.patienceMilliseconds, isCancelled)
    for view in views where view.isAlive { try? view.send(SIGKILL) }
    wait(for: views, milliseconds: Self.patienceMilliseconds, isCancelled)
    return remaining(of: views)
  }

  /// Nothing begins to run from here on, and what runs is ended, since the store is unmounted; by a user, or
  /// by whoever ends the daemon.
  func endAll(by user: UInt32? = nil) {
    state.withLock { $0.isEnding = true }
    let views = state.withLock { Array($0.views.values) }
    guard !views.isEmpty else { return }
    for view in views where view.isAlive {
      view.note(.unmount(by: user))
      DaemonLog.write("ending \(view.launch.app.identifier) of uid \(view.user), pid \(view.pid)")
    }
    for view in end(views) {
      DaemonLog.write(
        "the view of \(view.launch.app.identifier), pid \(view.pid), is still in use; removing it anyway")
    }
  }

  /// Those whose views are there.
  private func remaining(of views: [RunningView]) -> [RunningView] {
    state.withLock { Self.remaining(of: views, in: $0) }
  }

  private static func remaining(of views: [RunningView], in state: borrowing State) -> [RunningView] {
    views.filter { state.views[$0.number] != nil }
  }

  /// Waits until their views are gone.
  ///
  /// The end of a view wakes us. That who asked has hung up wakes nobody, so it is asked for now and then.
  private func wait(for views: [RunningView], milliseconds: Int, _ isCancelled: () -> Bool) {
    let end = monotonicNanoseconds() &+ UInt64(milliseconds) * 1_000_000
    while monotonicNanoseconds() < end, !isCancelled() {
      let areGone = state.wait(milliseconds: 100) { Self.remaining(of: views, in: $0).isEmpty }
      if areGone { return }
    }
  }
}
