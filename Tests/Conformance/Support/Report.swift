// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// Prints verdicts as they come and keeps count.
package struct Report {
  private let known: [String: String]
  private let json: Bool
  private var passed = 0
  private var failed = 0
  private var skipped = 0
  private var expected = 0

  /// A report in which the checks in `known` are expected to fail.
  package init(known: [String: String], json: Bool) {
    self.known = known
    self.json = json
  }

  /// Takes in the outcome of one check.
  package mutating func add(_ name: String, _ verdict: Verdict) {
    switch (verdict, known[name]) {
    case (.passed, nil):
      passed += 1
      line("ok", name, nil)
    case (.passed, .some(let reason)):
      failed += 1
      line("not ok", name, "expected to fail (\(reason)), but it passed")
    case (.failed(let text), nil):
      failed += 1
      line("not ok", name, text)
    case (.failed, .some(let reason)):
      expected += 1
      line("known", name, reason)
    case (.skipped(let reason), _):
      skipped += 1
      line("skip", name, reason)
    }
  }

  /// Prints the totals; true if there was no failure.
  package func finish() -> Bool {
    let count = passed + failed + skipped + expected
    if json {
      let totals = [("checks", count), ("passed", passed), ("failed", failed), ("skipped", skipped)]
      put("{" + (totals + [("known", expected)]).map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}")
    } else {
      let tail = expected == 0 ? "" : ", \(expected) known"
      put("\(count) checks: \(passed) passed, \(failed) failed, \(skipped) skipped\(tail)")
    }
    return failed == 0
  }

  private func line(_ verdict: String, _ name: String, _ detail: String?) {
    guard json else {
      // One line a check, whatever a program printed.
      let tail = detail.map { ": " + $0.split(whereSeparator: \.isNewline).joined(separator: " | ") } ?? ""
      return put("\(verdict) \(name)\(tail)")
    }
    let fields = [("name", name), ("verdict", verdict)] + (detail.map { [("detail", $0)] } ?? [])
    put("{" + fields.map { "\(quoted($0)):\(quoted($1))" }.joined(separator: ",") + "}")
  }

  private func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\u{0}"..."\u{1f}":
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  /// Unbuffered: a buffer would be printed once more by each forked child.
  private func put(_ text: String) {
    let bytes = Array((text + "\n").utf8)
    _ = write(1, bytes, bytes.count)
  }
}
