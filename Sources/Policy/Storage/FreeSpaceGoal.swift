// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a disk has room for, in bytes.
package struct DiskSpace: Codable, Equatable, Sendable {
  package let total: Int64
  /// What users may fill.
  package let free: Int64

  package init(total: Int64, free: Int64) {
    self.total = total
    self.free = free
  }
}

/// How much of a disk is to be free.
package enum FreeSpaceGoal: Equatable, Sendable {
  case percent(Int64)
  case bytes(Int64)

  /// Reads what a person has written: `20%`, `5G`.
  package init(_ text: String) throws(LimitRefusal) {
    guard let (number, unit) = SizeText.parts(of: text) else { throw Self.refusal(of: text) }
    if unit == "%" {
      guard (1...99).contains(number) else { throw LimitRefusal(reason: "it must be from 1% to 99%") }
      self = .percent(number)
      return
    }
    guard let factor = SizeText.factor(of: unit) else { throw Self.refusal(of: text) }
    let bytes = number.multipliedReportingOverflow(by: factor)
    guard number > 0, !bytes.overflow else {
      throw LimitRefusal(reason: "'\(text.sanitized)' is not a size that a disk can have")
    }
    self = .bytes(bytes.partialValue)
  }

  private static func refusal(of text: String) -> LimitRefusal {
    let shown = text.utf8.count <= SizeText.longest ? "'\(text.sanitized)' is neither" : "it is neither"
    return LimitRefusal(
      reason: "\(shown) a share of the disk, as 20%, nor a size with K, M, G or T, as 5G")
  }

  /// How many bytes are to become free on such a disk; 0 if there are enough.
  package func missing(on disk: DiskSpace) -> Int64 {
    let wanted =
      switch self {
      case .bytes(let bytes): bytes
      case .percent(let percent):
        disk.total / 100 * percent + disk.total % 100 * percent / 100
      }
    return max(0, wanted - max(0, disk.free))
  }
}

extension FreeSpaceGoal: Codable {
  /// As it is written.
  package var text: String {
    switch self {
    case .percent(let percent): "\(percent)%"
    case .bytes(let bytes): "\(bytes)"
    }
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    do throws(LimitRefusal) {
      try self.init(try Self.text(container))
    } catch {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "no goal: \(error.reason)")
    }
  }

  private static func text(_ container: any SingleValueDecodingContainer) throws(LimitRefusal) -> String {
    do { return try container.decode(String.self) } catch { throw LimitRefusal(reason: "it is no text") }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}
