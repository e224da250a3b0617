// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What is told of what the gate refuses, and to whom.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct RefusalTests {
  private final class Listener: RefusalListener {
    struct Told: Equatable {
      let app: String?
      let user: UInt32
      let operation: RefusedOperation
      let rule: RefusalRule
      let path: String?
    }
    let told = Mutex<[Told]>([])
    let keys = Mutex<[Int]>([])

    func refused(_ refusal: Refusal, path: () -> [UInt8]?) {
      let path = path().map { String(decoding: $0, as: UTF8.self) }
      told.withLock {
        $0.append(
          Told(
            app: refusal.app?.text, user: refusal.user, operation: refusal.operation, rule: refusal.rule,
            path: path))
      }
      keys.withLock { $0.append(refusal.key) }
    }

    func take() -> [Told] {
      told.withLock { told in
        defer { told = [] }
        return told
      }
    }
  }

  @Test func notesSayWhatWasLeft() {
    for denial in Denial.allCases {
      for zone in [nil] + Zone.allCases.map(Optional.some) {
        for reach in [
          nil, Reach.nothing, .everything, .read, [.beside, .revocable], [.write, .keepsItsPlace],
        ] {
          let note = RefusalNote(denial, zone, reach)
          #expect(RefusalNote(note.number) == note)
        }
      }
    }
    #expect(RefusalNote(0) == nil && RefusalNote(.max) == nil)
  }

  /// As the session does, which takes the reason from the thread that serves.
  private func refuse(
    _ view: View, _ operation: RefusedOperation, _ path: String, by caller: Caller,
    _ body: (View, Name, NodeID) throws(Errno) -> Void
  ) throws -> Errno? {
    let end = view.errno { (view) throws(Errno) in
      try view.at(path) { (name, parent) throws(Errno) in
        do throws(Errno) {
          try body(view, name, parent)
        } catch {
          let note = RefusalNote.take()
          if note != 0 {
            view.refused(RefusedRequest(operation, of: parent, name: name, by: caller, note: note))
          }
          throw error
        }
      }
    }
    return end
  }

  private func make(
    _ view: View, _ path: String, by caller: Caller
  ) throws -> Errno? {
    try refuse(view, .makeDirectory, path, by: caller) { (view, name, parent) throws(Errno) in
      _ = try view.makeDirectory(name, in: parent, mode: 0o755, by: caller)
    }
  }

  @Test func reasonsReachWhoWantsToKnow() throws {
    let listener = Listener()
    let tree = try Tree(refusals: listener)
    #expect(try make(tree.view, "System/new", by: .root) == .EROFS)
    #expect(try make(tree.view, "new", by: .root) == .EROFS)
    #expect(
      try refuse(tree.view, .removeDirectory, "Users", by: .root) { (view, name, parent) throws(Errno) in
        try view.remove(name, in: parent, directory: true, by: .root)
      } != nil)
    #expect(
      listener.take().map { "\($0.operation.rawValue) \($0.path ?? "-") \($0.rule.rawValue) \($0.user)" } == [
        "make-directory System/new system 0", "make-directory new standard 0",
        "remove-directory Users standard 0",
      ])
    // The mode refuses users something all day.
    try tree.view.makeDirectory("Users/Shared/closed", mode: 0o700)
    #expect(try make(tree.view, "Users/Shared/closed/new", by: .alice) == .EACCES)
    #expect(listener.take().isEmpty)
    // What is allowed leaves nothing behind, nor does what is simply not there.
    #expect(try make(tree.view, "Users/Shared/closed/new", by: .root) == nil)
    #expect(tree.view.errno { (view) throws(Errno) in try view.find("Users/Shared/nothing") } == .ENOENT)
    #expect(RefusalNote.take() == 0)
  }

  @Test func appsAreToldApart() throws {
    let listener = Listener()
    let tree = try Tree(refusals: listener)
    try tree.view.makeDirectory("Users/Shared/mine", mode: 0o777)
    try tree.view.makeDirectory("Users/Shared/closed", mode: 0o700)
    let app = try #require(AppIdentifier("org.example.app"))
    let places = [
      ScopePlace("Users/Shared/mine", .read), ScopePlace("Users/Shared/closed", [.read, .write]),
    ]
    let view = try View(tree.volume, scope: Scope(places), of: app, user: Caller.alice.uid)
    view.started(RecordingConnection(passthrough: false, canWithdraw: true))
    defer { view.ended() }
    #expect(try make(view, "Users/Shared/mine/x", by: .alice) == .EPERM)
    // What the mode refuses an app is worth a line.
    #expect(try make(view, "Users/Shared/closed/x", by: .alice) == .EACCES)
    #expect(
      listener.take() == [
        .init(
          app: app.text, user: Caller.alice.uid, operation: .makeDirectory, rule: .view,
          path: "Users/Shared/mine/x"),
        .init(
          app: app.text, user: Caller.alice.uid, operation: .makeDirectory, rule: .mode,
          path: "Users/Shared/closed/x"),
      ])
    // Another user who has come into the view takes nothing of the app's.
    _ = try make(view, "Users/Shared/mine/x", by: .bob)
    #expect(listener.take().allSatisfy { $0.app == nil && $0.user == Caller.bob.uid })
  }

  @Test func sameThingsHaveOneKey() throws {
    let listener = Listener()
    let tree = try Tree(refusals: listener)
    for name in ["a", "a", "b", "a\nb"] { _ = try make(tree.view, "System/" + name, by: .root) }
    let keys = listener.keys.withLock { $0 }
    #expect(keys.count == 4 && keys[0] == keys[1] && Set(keys).count == 3)
    #expect(listener.take().last?.path == "System/a\nb")
  }
}
