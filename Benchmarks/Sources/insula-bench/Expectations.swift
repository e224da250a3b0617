// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import FoundationEssentials

/// What the design promises of one contender; data in `expectations.json`, shown beside the results, never
/// enforced.
struct Expectations: Codable {
  let contender: String
  let rivals: [String]
  /// By row: the least ratio to the plain directory.
  let atLeastOfPlain: [String: Double]
  /// By row: the least ratio to the better of the rivals.
  let atLeastOfBestRival: [String: Double]

  static func read(_ path: String) throws(Failure) -> Expectations {
    guard let bytes = readFile(path) else { throw Failure.call("read", path) }
    do {
      return try JSONDecoder().decode(Expectations.self, from: Data(bytes))
    } catch {
      throw Failure("\(path): \(error)")
    }
  }

  /// What is expected of a row, and whether its result meets it; nil if nothing is.
  func verdict(on row: Row, plain: String) -> Verdict? {
    if let least = atLeastOfPlain[row.name] {
      return Verdict(
        text: "≥ \(least) of plain", outcome: outcome(row, row.ratios(of: contender, to: plain), least))
    }
    if let least = atLeastOfBestRival[row.name] {
      return Verdict(
        text: "≥ \(least) of best rival",
        outcome: outcome(row, row.ratios(of: contender, toBestOf: rivals), least))
    }
    return nil
  }

  private func outcome(_ row: Row, _ ratio: Spread?, _ least: Double) -> Verdict.Outcome {
    if row.series[contender]?.failure != nil { return .missed }
    guard let ratio else { return .notMeasured }
    if ratio.lower >= least { return .met }
    return ratio.upper < least ? .missed : .undecided
  }
}

/// An expectation of one row.
struct Verdict {
  enum Outcome: String {
    case met
    case missed = "**missed**"
    /// The quartiles lie on both sides of what is expected.
    case undecided
    case notMeasured = ""
  }

  let text: String
  let outcome: Outcome
}
