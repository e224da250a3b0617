// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a machine does to get a lease: it is told what came of the last step, and says the next one.
package struct LeaseAcquisition: Sendable {
  /// What the highest number says of the lease.
  package enum Top: Equatable, Sendable {
    /// Nobody ever had it.
    case none
    /// Who had it has given it back, or is known to have ended.
    case free(number: UInt64)
    case held(number: UInt64, text: [UInt8])

    package var number: UInt64 {
      switch self {
      case .none: 0
      case .free(let number), .held(let number, _): number
      }
    }
  }

  package enum Step: Equatable, Sendable {
    /// Look for the highest number.
    case look
    /// Wait a moment, then look.
    case pause
    /// Make this number, if nobody has.
    case take(UInt64)
    /// The lease is ours.
    case use(number: UInt64, LeaseTerm)
    /// Another machine has it and renews it.
    case giveUp
  }

  private enum Phase {
    case looking
    /// `asked`: when it was looked for the number before.
    case taking(UInt64, asked: UInt64)
    case confirming(UInt64, LeaseTerm)
  }

  package let times: LeaseTimes
  private var phase = Phase.looking
  /// What was seen first, and when.
  private var seen: (top: Top, since: UInt64)?

  package init(_ times: LeaseTimes) { self.times = times }

  /// It was looked for the highest number, between two moments.
  package mutating func looked(_ top: Top, asked: UInt64, answered: UInt64) -> Step {
    if case .confirming(let number, let term) = phase {
      if top.number == number, !term.isOver(at: answered) { return .use(number: number, term) }
      phase = .looking
      seen = nil
    }
    guard case .held = top else { return take(after: top, asked: asked) }
    guard let before = seen else {
      seen = (top, answered)
      return .pause
    }
    guard before.top == top else {
      // Whoever goes on all the same begins with that.
      seen = (top, answered)
      return .giveUp
    }
    // Whoever looks late has waited no less.
    guard asked >= before.since &+ times.silence else { return .pause }
    return take(after: top, asked: asked)
  }

  private mutating func take(after top: Top, asked: UInt64) -> Step {
    phase = .taking(top.number &+ 1, asked: asked)
    return .take(top.number &+ 1)
  }

  /// The number was made, or somebody has made it before.
  package mutating func took(_ isMade: Bool, begun: UInt64, done: UInt64) -> Step {
    guard case .taking(let number, let asked) = phase else { return .look }
    phase = .looking
    seen = nil
    // What was seen so long ago may have been renewed, or taken and given back, by others meanwhile.
    guard isMade, done < asked &+ times.hold else { return .look }
    phase = .confirming(number, LeaseTerm(begun: begun, times))
    return .look
  }
}
