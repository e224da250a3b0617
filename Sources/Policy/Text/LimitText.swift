// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Why a text or a number is no limit, as an end of a sentence.
package struct LimitRefusal: Error, Equatable, Sendable {
  package let reason: String

  package init(reason: String) { self.reason = reason }
}

extension ResourceLimits.Kind {
  /// What a limit may be: with less no program starts, and more than the greatest no machine has.
  package var range: ClosedRange<Int64> {
    switch self {
    case .memory: 16 << 20...1 << 50
    case .processes: 1...4_194_304
    case .cpu: 1...100_000
    case .openFiles: 16...1_048_576
    }
  }

  /// Reads what a person or a bundle has written.
  package func value(of text: String) throws(LimitRefusal) -> Int64 {
    // A number that long is none; and it is shown in the message.
    guard text.utf8.count <= SizeText.longest else {
      throw LimitRefusal(reason: "it is too long; \(advice)")
    }
    guard let (number, unit) = SizeText.parts(of: text), let factor = factor(of: unit) else {
      throw LimitRefusal(reason: "'\(text.sanitized)' is not what it takes; \(advice)")
    }
    let value = number.multipliedReportingOverflow(by: factor)
    return try checked(value.overflow ? .max : value.partialValue)
  }

  /// The number itself, if it is one that can be a limit.
  package func checked(_ value: Int64) throws(LimitRefusal) -> Int64 {
    guard range.contains(value) else {
      throw LimitRefusal(
        reason: "it must be at least \(shown(range.lowerBound)) and at most \(shown(range.upperBound))")
    }
    return value
  }

  /// A limit in words.
  package func text(of value: Int64) -> String {
    switch self {
    case .memory: "\(shown(value)) of memory"
    case .processes: value == 1 ? "1 process" : "\(value) processes"
    case .cpu: "\(shown(value)) of a CPU"
    case .openFiles: "\(value) open files"
    }
  }

  private func shown(_ value: Int64) -> String {
    switch self {
    case .memory: Self.size(value)
    case .cpu: "\(value)%"
    case .processes, .openFiles: "\(value)"
    }
  }

  /// In the largest unit of which it is a whole number.
  private static func size(_ bytes: Int64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")]
    guard bytes > 0, let (shift, name) = units.first(where: { bytes & (1 << Int64($0.0) - 1) == 0 }) else {
      return "\(bytes) bytes"
    }
    return "\(bytes >> Int64(shift)) \(name)"
  }

  private func factor(of unit: String) -> Int64? {
    switch self {
    case .memory: SizeText.factor(of: unit)
    case .cpu: unit == "%" ? 1 : nil
    case .processes, .openFiles: unit.isEmpty ? 1 : nil
    }
  }

  private var advice: String {
    switch self {
    case .memory: "write a size with K, M, G or T, as in 512M"
    case .cpu: "write percent of one CPU, as in 50% or 150%"
    case .processes, .openFiles: "write a number"
    }
  }
}
