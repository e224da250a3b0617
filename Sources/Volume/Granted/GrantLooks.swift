// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Looks along the paths of grants again, those of each user on a thread of that user's.
///
/// A disk on the way may not answer, and somebody may hold a directory there: then nobody waits for it whose
/// request has changed a name, since the kernel holds a directory for that request.
final class GrantLooks: Sendable {
  /// Why some are looked at.
  struct Occasion: Hashable, Sendable {
    /// The name that has come or gone, if it was one.
    var step: ResolvedPath.Step?
    /// The app that has changed it, if it was one.
    var mover: GrantHolder?
    /// Whether it may be gone without having another name.
    var isUpdate = false
  }
  private struct Line {
    /// The number of the oldest piece that is not done.
    var oldest: UInt64
    /// When that began.
    var began = monotonicNanoseconds()
    var waiting: [Occasion: Set<Int64>] = [:]
    /// The number of the oldest piece that waits.
    var next: UInt64 = 0
  }
  private struct State {
    var last: UInt64 = 0
    var lines: [UInt32: Line] = [:]
  }
  private let state = Condition(State())

  /// How long somebody waits for a look, once for each that hangs.
  private static let patienceMilliseconds = 1000

  typealias Look = @Sendable (_ ids: [Int64], _ occasion: Occasion) -> Void

  /// Looks at grants of some users; returns when that is done, or takes too long.
  func look(
    at grants: [UInt32: [Int64]], on occasion: Occasion, waiting isWaiting: Bool = true,
    _ look: @escaping Look
  ) {
    let begun = grants.compactMap { user, ids in
      begin(ids, of: user, occasion, look).map { (user: user, number: $0) }
    }
    guard isWaiting, !begun.isEmpty else { return }
    _ = state.wait(milliseconds: Self.patienceMilliseconds) { state in
      begun.allSatisfy { begun in state.lines[begun.user].map { $0.oldest > begun.number } ?? true }
    }
  }

  /// The result is its number; nil if nobody is to wait for it, since what is before it hangs.
  private func begin(
    _ ids: [Int64], of user: UInt32, _ occasion: Occasion, _ look: @escaping Look
  ) -> UInt64? {
    let (number, isFirst, hangs) = state.withLock { state -> (UInt64, Bool, Bool) in
      state.last += 1
      let isFirst = state.lines[user] == nil
      var line = state.lines[user] ?? Line(oldest: state.last)
      if line.waiting.isEmpty { line.next = state.last }
      line.waiting[occasion, default: []].formUnion(ids)
      state.lines[user] = line
      let patience = UInt64(Self.patienceMilliseconds) &* 1_000_000
      return (state.last, isFirst, !isFirst && monotonicNanoseconds() &- line.began >= patience)
    }
    guard isFirst else { return hangs ? nil : number }
    let work = { @Sendable [self] in serve(user, look) }
    if let thread = try? JoinableThread(name: "look", work) { thread.detach() } else { work() }
    return number
  }

  private func serve(_ user: UInt32, _ look: Look) {
    while let pieces = next(user) {
      for (occasion, ids) in pieces { look(ids.inOrder(by: <), occasion) }
    }
  }

  private func next(_ user: UInt32) -> [Occasion: Set<Int64>]? {
    state.change { state in
      guard let line = state.lines[user], !line.waiting.isEmpty else {
        state.lines[user] = nil
        return nil
      }
      state.lines[user] = Line(oldest: line.next)
      return line.waiting
    }
  }
}
