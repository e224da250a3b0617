// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import TestSupport
internal import Testing

/// A piece of work on a store that is killed again and again, a little later each time.
///
/// It is killed at some two hundred of its system calls, or, with `INSULA_STOPS=all` (`make stops`), at each.
struct StoppedWork {
  let words: [String]

  private static let program = String(Program.insula.dropLast("insula".count)) + "insula-stopped"
  private static let stopsAtAll = ProcessInfo.processInfo.environment["INSULA_STOPS"] == "all"

  /// Whether the work was done before it could be killed.
  private func stop(at stop: Int) throws -> (isDone: Bool, stops: Int) {
    let arguments = [Self.program, "\(stop)"] + words
    var result = try Program.run(arguments)
    // A program that another test starts just then has what we have open, until it runs.
    _ = try eventually {
      guard result.errors.contains("in use") else { return true }
      result = try Program.run(arguments)
      return false
    }
    switch result.status {
    case 0: return (true, Int(result.output.split(separator: "\n").last ?? "") ?? 0)
    case 9: return (false, stop)
    default: throw MountedStore.Failure(words: result.errors)
    }
  }

  /// Does it without being stopped.
  func finish() throws { #expect(try stop(at: 0).isDone) }

  /// `begin` makes what it begins with, `check` looks at what is left.
  func forEachStop(
    points wanted: Int = 200, begin: () throws -> Void, check: (_ at: String) throws -> Void
  ) throws {
    try begin()
    let whole = try stop(at: .max)
    #expect(whole.isDone && whole.stops > 2 * wanted, "\(whole.stops) stops")
    try check("the end")
    let step = Self.stopsAtAll ? 1 : max(2, whole.stops / (wanted + wanted / 20))
    var points = 0
    // How many calls there are varies with what threads wait for: where there were too few, those between
    // come next.
    for start in [1, 1 + step / 2] where points < wanted {
      for stop in stride(from: start, to: whole.stops * 2, by: step) {
        try begin()
        let isDone = try self.stop(at: stop).isDone
        try check("\(stop) of about \(whole.stops)")
        if isDone { break }
        points += 1
      }
    }
    #expect(points >= wanted)
  }
}
