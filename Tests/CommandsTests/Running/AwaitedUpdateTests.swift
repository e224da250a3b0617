// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
@testable internal import Daemon
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Apps that can't be started, since an update of them waits and what runs of them is being ended.
struct AwaitedUpdateTests {
  private static let path = "Applications/Notes.app"
  private let views = RunningViews(Budget(Budget.Limits(descriptors: 0)))

  private func start(_ user: UInt32, from path: String = path) throws -> Bool {
    let app = AppOfUser(try #require(AppIdentifier("org.example.notes")), user)
    guard let start = views.start(app, from: path) else { return false }
    views.started(start)
    return true
  }

  /// Two users, and two bundles; what two have asked for ends with the second one.
  @Test func nothingBeginsFromTheBundleMeanwhile() throws {
    #expect(try start(501))
    try views.keepingFromStarting([Self.path]) { () throws in
      #expect(try !start(501) && !start(502))
      #expect(try start(501, from: "Users/anna/Applications/Notes.app"))
      try views.keepingFromStarting([Self.path]) { () throws in #expect(try !start(501)) }
      #expect(try !start(501))
      #expect(throws: Never.self) { try views.changing(Self.path) { () throws(Errno) in } }
    }
    #expect(try start(501) && start(502))
  }

  /// What has begun to start is there before the others are looked for.
  @Test func whatIsJustBeginningIsWaitedFor() throws {
    let app = AppOfUser(try #require(AppIdentifier("org.example.notes")), 501)
    let begins = try #require(views.start(app, from: Self.path))
    let order = Condition([String]())
    let ending = try JoinableThread(name: "ending") { [views] in
      views.keepingFromStarting([Self.path]) { order.change { $0.append("ends") } }
    }
    // From here on it waits.
    #expect(try eventually { try !start(502) })
    order.change { $0.append("begun") }
    #expect(views.mayBegin(begins))
    views.started(begins)
    ending.join()
    #expect(order.withLock { $0 } == ["begun", "ends"])
  }

  /// The attack: an app takes long to start, so that it begins after all that ran of it was ended.
  ///
  /// The starts of two users, from one bundle and from two; one from another bundle goes on, and so does what
  /// begins after that.
  @Test func whatTakesTooLongToBeginDoesNotBegin() throws {
    let views = RunningViews(Budget(Budget.Limits(descriptors: 0)), patienceMilliseconds: 20)
    let notes = try #require(AppIdentifier("org.example.notes"))
    let draw = try #require(AppIdentifier("org.example.draw"))
    let mine = try #require(views.start(AppOfUser(notes, 501), from: Self.path))
    let theirs = try #require(views.start(AppOfUser(notes, 502), from: Self.path))
    let other = try #require(views.start(AppOfUser(draw, 501), from: "Applications/Draw.app"))
    views.keepingFromStarting([Self.path]) {
      #expect(!views.mayBegin(mine) && !views.mayBegin(theirs) && views.mayBegin(other))
    }
    #expect(!views.mayBegin(mine) && !views.mayBegin(theirs) && views.mayBegin(other))
    let later = try #require(views.start(AppOfUser(notes, 501), from: Self.path))
    let latest = try #require(views.start(AppOfUser(notes, 502), from: Self.path))
    #expect(views.mayBegin(later) && views.mayBegin(latest))
    // The same where what a user has of some apps becomes another one's.
    #expect(views.all(user: 501, afterStartsOf: [notes]).isEmpty)
    #expect(!views.mayBegin(later) && views.mayBegin(latest) && views.mayBegin(other))
    for start in [mine, theirs, later, latest] { views.started(start) }
    #expect(!views.mayBegin(latest) && views.mayBegin(other))
    // Nothing begins where all is ended.
    views.endAll()
    #expect(!views.mayBegin(other))
  }

  /// The attack: a start waits for its user's disk without an end, and everyone's app can't be changed.
  ///
  /// The starts of two users from one bundle, and one from another; then another change, which does not wait
  /// for them again.
  @Test func hangingStartsKeepNothingFromBeingChanged() throws {
    let views = RunningViews(Budget(Budget.Limits(descriptors: 0)), patienceMilliseconds: 20)
    let notes = try #require(AppIdentifier("org.example.notes"))
    let draw = try #require(AppIdentifier("org.example.draw"))
    let mine = try #require(views.start(AppOfUser(notes, 501), from: Self.path))
    let theirs = try #require(views.start(AppOfUser(notes, 502), from: Self.path))
    let other = try #require(views.start(AppOfUser(draw, 501), from: "Applications/Draw.app"))
    var changes = 0
    for _ in 0..<2 {
      try views.changing(Self.path) { () throws(Errno) in
        changes += 1
        #expect(!views.mayBegin(mine) && !views.mayBegin(theirs) && views.mayBegin(other))
        #expect(views.start(AppOfUser(notes, 503), from: Self.path) == nil)
      }
    }
    #expect(changes == 2)
    let later = try #require(views.start(AppOfUser(notes, 502), from: Self.path))
    #expect(views.mayBegin(later))
    // The system domain is changed for all of them.
    try views.changing("System") { () throws(Errno) in
      changes += 1
      #expect(!views.mayBegin(later) && !views.mayBegin(other))
    }
    #expect(changes == 3)
  }

  /// One that has its view by then counts as what runs, also where the start was waited for.
  @Test func changesWaitForStartsThatGoOn() throws {
    let app = AppOfUser(try #require(AppIdentifier("org.example.notes")), 501)
    let begins = try #require(views.start(app, from: Self.path))
    let order = Condition([String]())
    let changing = try JoinableThread(name: "changing") { [views] in
      try? views.changing(Self.path) { () throws(Errno) in order.change { $0.append("changed") } }
    }
    // From here on it waits.
    #expect(try eventually { try !start(502) })
    order.change { $0.append("begun") }
    #expect(views.mayBegin(begins))
    views.started(begins)
    changing.join()
    #expect(order.withLock { $0 } == ["begun", "changed"])
  }
}
