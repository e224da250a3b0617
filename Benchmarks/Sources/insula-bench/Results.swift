// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The results of one row.
struct Row: Codable {
  let name: String
  let title: String
  let unit: Unit
  /// By contender.
  var series: [String: Series]

  /// The rates of a contender relative to another, round by round.
  func ratios(of contender: String, to other: String) -> Spread? {
    ratios(of: contender, toBestOf: [other])
  }

  /// The rates of a contender relative to the best of some others in the same round.
  func ratios(of contender: String, toBestOf others: [String]) -> Spread? {
    guard let samples = series[contender]?.samples else { return nil }
    let rivals = others.compactMap { series[$0]?.samples }.filter { !$0.isEmpty }
    guard !rivals.isEmpty else { return nil }
    return Spread(
      samples.indices.compactMap { round in
        let best = rivals.compactMap { round < $0.count ? $0[round].rate : nil }.max()
        return best.map { samples[round].rate / $0 }
      })
  }

  /// The rates of a contender.
  func rates(of contender: String) -> Spread? { Spread(series[contender]?.samples.map(\.rate) ?? []) }

  /// The microseconds of CPU that the serving process spent on one operation.
  func cpu(of contender: String) -> Spread? {
    Spread(series[contender]?.samples.compactMap(\.cpuMicroseconds) ?? [])
  }
}

/// The samples of one contender in one row, a sample a round.
struct Series: Codable {
  var samples: [Sample]
  /// Why there are no more samples.
  var failure: String?
}

/// The median of some values, with the quartiles around it.
struct Spread {
  let median: Double
  let lower: Double
  let upper: Double

  /// Nil for no values.
  init?(_ values: [Double]) {
    guard !values.isEmpty else { return nil }
    let sorted = values.sorted()
    func quantile(_ part: Double) -> Double {
      let place = part * Double(sorted.count - 1)
      let index = Int(place)
      let next = min(index + 1, sorted.count - 1)
      return sorted[index] + (place - Double(index)) * (sorted[next] - sorted[index])
    }
    median = quantile(0.5)
    lower = quantile(0.25)
    upper = quantile(0.75)
  }
}
