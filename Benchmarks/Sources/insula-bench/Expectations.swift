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
    let failed = row.series[contender]?.failure != nil
    if let least = atLeastOfPlain[row.name] {
      let ratio = row.ratios(of: contender, to: plain)
      return Verdict(text: "≥ \(least) of plain", met: failed ? false : ratio.map { $0.median >= least })
    }
    if let least = atLeastOfBestRival[row.name] {
      let ratio = row.ratios(of: contender, toBestOf: rivals)
      return Verdict(text: "≥ \(least) of best rival", met: failed ? false : ratio.map { $0.median >= least })
    }
    return nil
  }
}

/// An expectation of one row.
struct Verdict {
  let text: String
  /// Nil if it could not be measured.
  let met: Bool?
}
