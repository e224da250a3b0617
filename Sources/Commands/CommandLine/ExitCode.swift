// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles

/// How `insula` ends; scripts may rely on these numbers.
package enum ExitCode: Hashable, Sendable {
  case ok
  case failed
  case usage
  case busy
  case noStore
  case wrongFormat
  case notMounted
  case notPermitted
  case problemsFound
  case undecided
  /// What is wrong with a bundle; each kind has a number of its own.
  case found(BundleProblem)
  /// What an app has ended with.
  case program(Int32)

  /// The number that the process ends with.
  package var rawValue: Int32 {
    switch self {
    case .ok: 0
    case .failed: 1
    case .usage: 2
    case .busy: 3
    case .noStore: 4
    case .wrongFormat: 5
    case .notMounted: 6
    case .notPermitted: 7
    case .problemsFound: 8
    case .undecided: 9
    case .found(let problem): problem.number
    case .program(let status): status
    }
  }

  /// Tells what a process meant that has ended with a number.
  init?(rawValue: Int32) {
    guard
      let code = (Self.general + BundleProblem.all.map(Self.found)).first(where: { $0.rawValue == rawValue })
    else { return nil }
    self = code
  }

  /// Those that any verb may end with.
  static let general: [ExitCode] = [
    .ok, .failed, .usage, .busy, .noStore, .wrongFormat, .notMounted, .notPermitted, .problemsFound,
    .undecided,
  ]

  /// Numbers and meanings, for the help and the README.
  static var table: [(number: String, meaning: String)] {
    let numbers = BundleProblem.all.map(\.number)
    let range = "\(numbers.min() ?? 0) to \(numbers.max() ?? 0)"
    return general.map { ("\($0.rawValue)", $0.meaning) } + [
      (range, "what is wrong with a bundle; `insula help verify` has the table")
    ]
  }

  /// What programs know it by, in errors as JSON.
  var name: String {
    switch self {
    case .ok: "ok"
    case .failed: "failed"
    case .usage: "usage"
    case .busy: "busy"
    case .noStore: "no-store"
    case .wrongFormat: "wrong-format"
    case .notMounted: "not-mounted"
    case .notPermitted: "not-permitted"
    case .problemsFound: "problems-found"
    case .undecided: "undecided"
    case .found(let problem): problem.kind.rawValue
    case .program: "program"
    }
  }

  var meaning: String {
    switch self {
    case .ok: "done"
    case .failed: "failed; the message says why"
    case .usage: "usage error"
    case .busy: "busy: the store or the mount is in use, and the message says by whom"
    case .noStore: "there is no store here, or it is incomplete or damaged"
    case .wrongFormat: "the store has the format of another version"
    case .notMounted: "nothing is mounted here"
    case .notPermitted: "not permitted to this user"
    case .problemsFound: "`check`, `config` or `doctor` has found something that needs attention"
    case .undecided: "inside an app: the user has decided nothing, or has cancelled"
    case .found(let problem): problem.meaning
    case .program: "the exit status of the app"
    }
  }
}
