// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// How `insula` ends; scripts may rely on these numbers.
package enum ExitCode: Int32, CaseIterable, Sendable {
  case ok = 0
  case failed = 1
  case usage = 2
  case busy = 3
  case noStore = 4
  case wrongFormat = 5
  case notMounted = 6
  case notPermitted = 7
  case problemsFound = 8

  /// For the help and the README.
  var meaning: String {
    switch self {
    case .ok: "done"
    case .failed: "failed; the message says why"
    case .usage: "the command line makes no sense"
    case .busy: "busy: the store or the mount is in use, and the message says by whom"
    case .noStore: "there is no store here, or it is half-made or damaged"
    case .wrongFormat: "the store has a format of another version"
    case .notMounted: "nothing is mounted here"
    case .notPermitted: "not permitted to this user"
    case .problemsFound: "`check` or `doctor` has found something that needs attention"
    }
  }
}
