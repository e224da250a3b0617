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
    guard views.start(app, from: path) else { return false }
    views.started(app, from: path)
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
    try #require(views.start(app, from: Self.path))
    let order = Condition([String]())
    let ending = try JoinableThread(name: "ending") { [views] in
      views.keepingFromStarting([Self.path]) { order.change { $0.append("ends") } }
    }
    // From here on it waits.
    #expect(try eventually { try !start(502) })
    order.change { $0.append("begun") }
    views.started(app, from: Self.path)
    ending.join()
    #expect(order.withLock { $0 } == ["begun", "ends"])
  }
}
