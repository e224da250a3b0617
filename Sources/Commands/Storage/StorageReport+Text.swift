// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy

extension StorageReport {
  private static let barWidth: Int64 = 24

  /// Shows it as a table, with bars where a person looks; in detail, each part has a line.
  func show(inDetail: Bool, withUsers: Bool, at now: Int64, _ console: Console) {
    let bars = console.isTerminal
    console.print("Disk: \(available.words).")
    if bars { console.print(Self.bar(available.used, of: available.total, 60)) }
    if items.isEmpty { return console.say("No app uses any space.") }
    if inDetail {
      for item in items { show(item, withUsers, bars, console) }
    } else {
      showTable(withUsers, bars, console)
    }
    if others > 0 {
      console.print(
        "\(others) more, \(othersBytes.asSize); 'insula storage ID' shows one, '--user' those of a user.")
    }
    showAdvice(withUsers, console)
    if let oldest = items.compactMap({ $0.wasMeasuredBefore(now) }).min() {
      console.inform("some sizes are those of \(utcText(oldest)) or later; they are looked at again now")
    }
    if items.contains(where: { !$0.isComplete }) {
      console.inform("not everything could be counted; the sizes are at least those that are shown")
    }
  }

  private func showTable(_ withUsers: Bool, _ bars: Bool, _ console: Console) {
    let most = items.first?.sizes.total ?? 0
    let user = withUsers ? ["USER"] : []
    let head = ["APP"] + user + ["SIZE"] + (bars ? [""] : []) + ["PURGE", "LAST RAN", "PARTS"]
    console.print(
      table: [head]
        + items.map { item in
          let total = item.sizes.total
          // What is little next to the rest takes only room.
          let shown = item.sizes.largest.filter { !bars || $0.bytes >= total / 20 }
          let parts = shown.map { "\($0.part.words) \($0.bytes.asSize)" }
          return [item.app] + (withUsers ? [item.userWords] : []) + [total.asSize]
            + (bars ? [Self.bar(total, of: most, 12)] : [])
            + [
              item.purgeable > 0 ? item.purgeable.asSize : "-", item.lastRunWords,
              parts.joined(separator: ", "),
            ]
        })
    console.print(
      "In all \(used.total.asSize); a purge would free \(purgeable.asSize).")
  }

  private func show(_ item: Item, _ withUsers: Bool, _ bars: Bool, _ console: Console) {
    let total = item.sizes.total
    console.print("\(item.name) (\(item.app))\(withUsers ? ", \(item.userWords)" : ""): \(total.asSize)")
    console.print(
      table: item.sizes.largest.map { part, bytes in
        ["  \(part.words)", bytes.asSize] + (bars ? [Self.bar(bytes, of: total, Self.barWidth)] : [])
      })
    console.print("  last ran: \(item.lastRunWords); a purge would free \(item.purgeable.asSize)")
  }

  private func showAdvice(_ withUsers: Bool, _ console: Console) {
    var lines: [String] = []
    for item in items {
      for advice in item.advice {
        lines.append("  \(item.app)\(withUsers ? ", \(item.userWords)" : ""): \(advice.words).")
        lines += advice.examples.map { "    \($0)" }
      }
    }
    if !lines.isEmpty { console.print(lines: ["Advice:"] + lines) }
  }

  private static func bar(_ bytes: Int64, of whole: Int64, _ width: Int64) -> String {
    let full = bytes.share(of: whole, in: width)
    return String(repeating: "█", count: full) + String(repeating: "░", count: Int(width) - full)
  }
}
