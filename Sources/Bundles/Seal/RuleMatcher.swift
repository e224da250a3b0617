// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Finds the rule for a path: of all whose pattern is somewhere in it, the one that weighs most.
///
/// All patterns are one automaton, whose states are made when a path first leads to them, so that a path
/// costs one look into a table for each byte, however many rules there are and whatever they say. When they
/// have become large, all states are dropped and made anew as they are needed.
struct RuleMatcher {
  private enum Step {
    case byte(ByteSet, next: UInt32)
    case split(UInt32, UInt32)
    case start(next: UInt32)
    case end(next: UInt32)
    /// The pattern of this rule was found.
    case found(rule: Int)
  }

  /// How many steps all patterns together may have, and how many states may be made of them.
  private static let stepLimit = 20_000
  /// How many parts of patterns may be visited to make the steps: what is empty has none, however often it is
  /// repeated.
  private static let visitLimit = 100_000
  private static let stateLimit = 10_000
  /// How much the states may take that are there at a time, in bytes: each thread of a walk has its own.
  private static let memoryLimit = 4 << 20

  private let weights: [Double]
  private var steps: [Step] = []
  private var visits = 0
  /// Where each pattern begins; it may begin anywhere in a path.
  private var beginnings: [UInt32] = []
  /// The set of steps in which each path begins.
  private var first: [UInt32] = []
  /// The sets of steps that a path has led to.
  private var states: [[UInt32]] = []
  private var numbers: [[UInt32]: Int] = [:]
  /// How many were made, also of those that were dropped.
  private var made = 0
  /// What the states take.
  private(set) var memory = 0
  /// For each state the next one for each byte, plus one; 0 where it is not known yet.
  private var transitions: [UInt32] = []
  /// For each state the rule that wins if the path ends there; nil inside where none does.
  private var winners: [Int??] = []

  init(_ rules: [SealRule]) throws(Finding) {
    weights = rules.map(\.weight)
    for (number, rule) in rules.enumerated() {
      let found = try add(.found(rule: number))
      beginnings.append(try compile(PathPattern(rule.pattern), before: found))
    }
    first = closure(of: beginnings, atStart: true, atEnd: false)
    _ = try state(for: first)
  }

  /// The number of the rule for a path, which is not empty; nil if none has anything to say about it.
  mutating func rule(for path: some Sequence<UInt8>) throws(Finding) -> Int? {
    var state = 0
    for byte in path {
      let known = transitions[state << 8 | Int(byte)]
      state = known != 0 ? Int(known) - 1 : try follow(state, byte)
    }
    if let winner = winners[state] { return winner }
    let winner = winner(in: state)
    winners[state] = .some(winner)
    return winner
  }

  // MARK: States

  private mutating func follow(_ state: Int, _ byte: UInt8) throws(Finding) -> Int {
    var next = beginnings
    for index in states[state] {
      switch steps[Int(index)] {
      case .byte(let set, let following) where set.contains(byte): next.append(following)
      // Found once, found for good.
      case .found: next.append(index)
      default: break
      }
    }
    let set = closure(of: next, atStart: false, atEnd: false)
    if memory >= Self.memoryLimit {
      dropStates()
      _ = try self.state(for: first)
      return try self.state(for: set)
    }
    let target = try self.state(for: set)
    transitions[state << 8 | Int(byte)] = UInt32(target) + 1
    return target
  }

  private mutating func dropStates() {
    states = []
    numbers = [:]
    transitions = []
    winners = []
    memory = 0
  }

  private mutating func state(for set: [UInt32]) throws(Finding) -> Int {
    if let number = numbers[set] { return number }
    guard made < Self.stateLimit else {
      throw Finding(.badRules, detail: "the rules are too complex")
    }
    made += 1
    memory += (set.count + 256) * MemoryLayout<UInt32>.stride
    let number = states.count
    states.append(set)
    numbers[set] = number
    transitions.append(contentsOf: repeatElement(0, count: 256))
    winners.append(nil)
    return number
  }

  /// All steps that can be taken from some without another byte.
  private func closure(of first: [UInt32], atStart: Bool, atEnd: Bool) -> [UInt32] {
    var reached: Set<UInt32> = []
    var pending = first
    while let index = pending.popLast() {
      guard reached.insert(index).inserted else { continue }
      switch steps[Int(index)] {
      case .split(let one, let other): pending += [one, other]
      case .start(let next): if atStart { pending.append(next) }
      case .end(let next): if atEnd { pending.append(next) }
      case .byte, .found: break
      }
    }
    return reached.sorted()
  }

  private func winner(in state: Int) -> Int? {
    var best: Int?
    for index in closure(of: states[state], atStart: false, atEnd: true) {
      guard case .found(let rule) = steps[Int(index)] else { continue }
      // Of equals the first.
      if let other = best, weights[rule] < weights[other] || weights[rule] == weights[other] && rule > other {
        continue
      }
      best = rule
    }
    return best
  }

  // MARK: Steps

  private mutating func add(_ step: Step) throws(Finding) -> UInt32 {
    guard steps.count < Self.stepLimit else { throw Finding(.badRules, detail: "the rules are too long") }
    steps.append(step)
    return UInt32(steps.count - 1)
  }

  /// Adds the steps of a pattern that leads to `next`; returns the first.
  private mutating func compile(_ pattern: PathPattern, before next: UInt32) throws(Finding) -> UInt32 {
    visits += 1
    guard visits < Self.visitLimit else { throw Finding(.badRules, detail: "the rules are too long") }
    switch pattern {
    case .one(let set): return try add(.byte(set, next: next))
    case .start: return try add(.start(next: next))
    case .end: return try add(.end(next: next))
    case .sequence(let parts):
      var first = next
      for part in parts.reversed() { first = try compile(part, before: first) }
      return first
    case .choice(let branches):
      var first: UInt32?
      for branch in branches.reversed() {
        let this = try compile(branch, before: next)
        first = if let other = first { try add(.split(this, other)) } else { this }
      }
      return first ?? next
    case .repeated(let part, let low, let high):
      var first = next
      if let high {
        for _ in low..<high { first = try add(.split(compile(part, before: first), next)) }
      } else {
        // A loop: its split is there before what it leads to.
        let loop = try add(.split(next, next))
        steps[Int(loop)] = .split(try compile(part, before: loop), next)
        first = loop
      }
      for _ in 0..<low { first = try compile(part, before: first) }
      return first
    }
  }
}
