// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import FoundationEssentials

/// The results of a run with the facts needed to read them; what `latest.json` holds.
struct Report: Codable {
  /// What was measured on and with what: label and value, in order.
  let facts: [[String]]
  /// The contenders in order; the first is the plain directory that the others are compared to.
  let contenders: [String]
  let rounds: Int
  let secondsPerSample: Double
  var rows: [Row]

  func json() throws(Failure) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    do {
      return Array(try encoder.encode(self)) + [10]
    } catch {
      throw Failure("JSON: \(error)")
    }
  }

  func markdown(_ expectations: Expectations?) -> String {
    guard let plain = contenders.first else { return "" }
    let others = contenders.dropFirst()
    let rivals = expectations?.rivals.filter(contenders.contains) ?? []
    let comparesRivals = expectations.map { contenders.contains($0.contender) && !rivals.isEmpty } ?? false

    // Two builds: the question is whether they cost the same, and two digits would not answer it.
    let builds = rivals.isEmpty && others.count == 2 ? Array(others) : []

    var header = ["row", plain] + others
    if !builds.isEmpty { header.append(builds.joined(separator: " / ")) }
    if comparesRivals, let expectations { header.append("\(expectations.contender) / best rival") }
    header += others.map { "\($0) CPU" } + ["expected", ""]
    var table = [header]
    for row in rows {
      var cells = [row.title, rate(row, plain)]
      cells += others.map { name in
        row.series[name]?.failure == nil ? ratio(row.ratios(of: name, to: plain)) : "failed"
      }
      if comparesRivals, let expectations {
        cells.append(ratio(row.ratios(of: expectations.contender, toBestOf: rivals)))
      }
      if let one = builds.first, let other = builds.last {
        cells.append(row.ratios(of: one, to: other).map(Self.fine) ?? "-")
      }
      cells += others.map { row.cpu(of: $0).map { Self.time($0.median) } ?? "-" }
      let verdict = expectations?.verdict(on: row, plain: plain)
      cells.append(verdict?.text ?? "")
      cells.append(verdict?.outcome.rawValue ?? "")
      table.append(cells)
    }

    var lines = ["# Benchmark results", ""]
    lines += facts.map { "- \($0.joined(separator: ": "))" }
    lines += [
      "- Rounds: \(rounds) (programs fewer), \(Self.text(secondsPerSample)) s a sample", "",
      "`\(plain)` is what the plain directory does in a second. "
        + "The columns after it are ratios to that in the same",
      "round: the median, and the quartiles in brackets; "
        + "above 1 is faster. CPU is the serving process's time",
      "for each operation (or MiB, or run).", "",
    ]
    lines += MarkdownTable.lines(table)
    let failures = rows.flatMap { row in
      contenders.compactMap { name in row.series[name]?.failure.map { "- \(row.name), \(name): \($0)" } }
    }
    if !failures.isEmpty { lines += ["", "Failed:", ""] + failures }
    return lines.joined(separator: "\n") + "\n"
  }

  private func rate(_ row: Row, _ contender: String) -> String {
    row.rates(of: contender).map { "\(Self.text($0.median)) \(row.unit.rawValue)" } ?? "failed"
  }

  private func ratio(_ spread: Spread?) -> String {
    spread.map { "\(Self.text($0.median)) (\(Self.text($0.lower))-\(Self.text($0.upper)))" } ?? "-"
  }

  private static func fine(_ spread: Spread) -> String {
    func text(_ value: Double) -> String { self.text(value, places: 3) }
    return "\(text(spread.median)) (\(text(spread.lower))-\(text(spread.upper)))"
  }

  /// A time with its unit.
  static func time(_ microseconds: Double) -> String {
    if microseconds < 0.01 { return "0" }
    return microseconds < 10_000 ? "\(text(microseconds)) µs" : "\(text(microseconds / 1000)) ms"
  }

  /// A number with two or three digits that matter, and thousands apart.
  static func text(_ value: Double) -> String {
    guard value.isFinite, abs(value) < 1e15 else { return "?" }
    if value < 0 { return "-" + text(-value) }
    if value >= 100 {
      var digits = String(Int(value.rounded()))
      var groups: [String] = []
      while digits.count > 3 {
        groups.insert(String(digits.suffix(3)), at: 0)
        digits.removeLast(3)
      }
      return ([digits] + groups).joined(separator: ",")
    }
    return text(value, places: value >= 10 ? 1 : value >= 0.1 || value == 0 ? 2 : 3)
  }

  private static func text(_ value: Double, places: Int) -> String {
    let scale = places == 1 ? 10 : places == 2 ? 100 : 1000
    let scaled = Int((value * Double(scale)).rounded())
    let fraction = String(scaled % scale)
    return "\(scaled / scale)." + String(repeating: "0", count: places - fraction.count) + fraction
  }
}

/// A table that reads well both as text and when rendered.
enum MarkdownTable {
  static func lines(_ rows: [[String]]) -> [String] {
    guard let header = rows.first else { return [] }
    let widths = header.indices.map { column in
      max(3, rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0)
    }
    func line(_ cells: [String]) -> String {
      let padded = zip(cells, widths).enumerated().map { index, cell in
        let space = String(repeating: " ", count: cell.1 - cell.0.count)
        return index == 0 ? cell.0 + space : space + cell.0
      }
      return "| " + padded.joined(separator: " | ") + " |"
    }
    let rule = widths.enumerated().map { index, width in
      index == 0 ? String(repeating: "-", count: width) : String(repeating: "-", count: width - 1) + ":"
    }
    return [line(header), line(rule)] + rows.dropFirst().map(line)
  }
}
