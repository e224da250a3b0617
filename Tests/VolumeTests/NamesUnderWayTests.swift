// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What is seen of a path counts only if nobody has changed its names meanwhile.
struct NamesUnderWayTests {
  private let grants = Grants(Budget(Budget.Limits(descriptors: 64)))
  private static let (top, parent, other) = (number(1), number(2), number(3))

  private static func number(_ inode: UInt64) -> ObjectNumber { ObjectNumber(inode: inode, device: 1) }

  private static func step(_ name: String, in directory: ObjectNumber) -> ResolvedPath.Step {
    ResolvedPath.Step(Array(name.utf8), in: directory)
  }

  private static func path(_ text: String) -> [[UInt8]] { GrantPath.names(Array(text.utf8)) }

  private static func entry(
    _ id: Int64, _ path: String, _ steps: [ResolvedPath.Step]
  ) throws -> Grants.Entry {
    let record = GrantRecord(
      id: id, identifier: try #require(AppIdentifier("org.example.writer")), user: 1000,
      team: Team("T", root: nil), path: Self.path(path), isWritable: true, isDirectory: false,
      identity: ObjectIdentity(inode: 9, handle: [8, 0, 1], created: 0), granted: 0)
    return Grants.Entry(record: record, steps: steps)
  }

  private static let steps = [step("p", in: top), step("x", in: parent)]

  private func put(_ entry: Grants.Entry, insteadOf old: Grants.Entry? = nil, since began: UInt64)
    -> Grants.Outcome
  {
    grants.put(entry, insteadOf: old, seen: entry.steps, since: began)
  }

  @Test func aPathIsNotedIfNobodyHasChangedIt() throws {
    let entry = try Self.entry(1, "p/x", Self.steps)
    let began = grants.time
    // Others' names are nothing to it.
    grants.begin(NamesUnderWay.Names(Self.step("y", in: Self.parent)))
    grants.begin(NamesUnderWay.Names(Self.steps[0]))
    #expect(put(entry, since: began) == .changing(Self.steps[0]) && grants.entry(1) == nil)
    #expect(grants.end(NamesUnderWay.Names(Self.steps[0])).isEmpty)
    #expect(put(entry, since: began) == .changed && grants.entry(1) == nil)
    #expect(put(entry, since: grants.time) == .done && grants.entry(1)?.record.path == Self.path("p/x"))
    let before = grants.time
    grants.noteChange(in: Self.parent)
    #expect(put(entry, insteadOf: entry, since: before) == .changed)
    #expect(put(entry, insteadOf: entry, since: grants.time) == .done)
  }

  @Test func whatCanNotBeKnownYetIsLookedAtLater() throws {
    var entry = try Self.entry(1, "p/x", Self.steps)
    grants.put(entry)
    for _ in 0..<2 { grants.begin(NamesUnderWay.Names(Self.steps[1])) }
    let known = entry
    entry.record.identity = ObjectIdentity(inode: 10, handle: [8, 0, 2], created: 0)
    #expect(put(entry, insteadOf: known, since: grants.time) == .changing(Self.steps[1]))
    #expect(grants.entry(1)?.record.identity == known.record.identity)
    // Two change it.
    #expect(grants.end(NamesUnderWay.Names(Self.steps[1])).isEmpty)
    #expect(grants.end(NamesUnderWay.Names(Self.steps[1])) == [1])
    #expect(put(entry, insteadOf: known, since: grants.time) == .done)
    #expect(grants.entry(1)?.record.identity == entry.record.identity)
  }

  /// Somebody has looked at a grant, which was moved, or is for other uses by now.
  @Test func aLookDoesNotUndoWhatOthersDo() throws {
    let entry = try Self.entry(1, "p/x", Self.steps)
    var changed = entry
    changed.record.isWritable = false
    grants.put(changed)
    #expect(put(entry, insteadOf: entry, since: grants.time) == .done)
    #expect(grants.entry(1)?.record.isWritable == false)
    let moved = try Self.entry(1, "q/x", Self.steps)
    #expect(put(entry, insteadOf: moved, since: grants.time) == .changed)
    grants.remove(1)
    #expect(put(entry, insteadOf: entry, since: grants.time) == .changed && grants.entry(1) == nil)
  }

  /// Something granted is moved into a directory above which somebody else renames.
  @Test(arguments: [false, true]) func aPathThatIsBeingChangedIsNone(isKnown: Bool) throws {
    let source = Self.step("a", in: Self.other)
    grants.put(try Self.entry(1, "a", [source]))
    // What is known of the directory moves with it, and so does what comes there.
    if isKnown { grants.put(try Self.entry(2, "p/x", Self.steps)) }
    let target = Self.step("b", in: Self.parent)
    let names = [source, target]
    let relocation = Grants.Relocation(
      source: source, path: Self.path("q/b"), steps: [Self.step("q", in: Self.top), target],
      isWithinOneDirectory: false, mover: nil, target: target)
    let exchange = NamesUnderWay.Names(Self.step("p", in: Self.top), Self.step("q", in: Self.top))
    grants.begin(NamesUnderWay.Names(source, target))
    grants.begin(exchange)
    let relocated = grants.relocate([relocation], since: grants.time, besides: names, isLast: false).relocated
    #expect((relocated != nil) == isKnown)
    if isKnown {
      #expect(relocated?.left.isEmpty == true && grants.entry(1)?.record.path == Self.path("p/b"))
    } else {
      #expect(grants.entry(1)?.record.path == Self.path("a"))
      let last = grants.relocate([relocation], since: grants.time, besides: names, isLast: true).relocated
      #expect(last?.left.map(\.record.id) == [1] && last?.moves.isEmpty == true)
      _ = grants.end(exchange)
      let known = grants.relocate([relocation], since: grants.time, besides: names, isLast: false).relocated
      #expect(known?.left.isEmpty == true)
    }
  }

  /// Somebody moves ten thousand grants: that takes long, and is nothing to other renames.
  @Test func aRenameDoesNotWaitForOthersGrants() throws {
    let isDone = Condition(false)
    let (name, other) = (Self.step("a", in: Self.other), Self.step("b", in: Self.other))
    let isAtOnce = try grants.state.withLock { _ in
      let thread = try JoinableThread(name: "rename") { [grants] in
        let names = NamesUnderWay.Names(name, other)
        grants.begin(names)
        if !grants.mayTouch(Self.other), grants.end(names).isEmpty { isDone.change { $0 = true } }
      }
      thread.detach()
      return isDone.wait(milliseconds: 20_000) { $0 }
    }
    #expect(isAtOnce)
  }

  /// Whoever waits for a look waits once, and for nobody else's.
  @Test func aLookThatHangsIsWaitedForOnce() throws {
    let looks = GrantLooks()
    let (isLetGo, looked) = (Condition(false), Condition([Int64]()))
    let look: GrantLooks.Look = { ids, _ in
      if ids.contains(1) { isLetGo.wait { $0 } }
      looked.change { $0 += ids }
    }
    let occasion = GrantLooks.Occasion()
    looks.look(at: [1000: [1]], on: occasion, look)
    looks.look(at: [1001: [2]], on: occasion, look)
    #expect(looked.withLock { $0 } == [2])
    let began = monotonicNanoseconds()
    for id in 3...200 as ClosedRange<Int64> { looks.look(at: [1000: [id]], on: occasion, look) }
    #expect(monotonicNanoseconds() - began < 100_000_000_000)
    isLetGo.change { $0 = true }
    #expect(looked.wait(milliseconds: 20_000) { $0.count == 200 })
    #expect(looked.withLock { $0 } == [2, 1] + (3...200))
  }
}
