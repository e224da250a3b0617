// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// A line on a terminal that says how far something is, while it goes on.
final class ProgressLine: Sendable {
  /// What is over sooner needs no line.
  private static let patience: Int32 = 500
  private static let interval: Int32 = 200

  private let end: Wakeup

  private init() throws(Errno) { end = try Wakeup() }

  /// Does something, and shows meanwhile what `text` says, if a person looks.
  static func show<Result>(
    _ console: Console, _ text: @escaping @Sendable () -> String, while body: () throws -> Result
  ) rethrows -> Result {
    guard console.showsProgress, let line = try? ProgressLine(),
      let thread = try? JoinableThread(name: "progress", { line.run(console, text) })
    else { return try body() }
    defer {
      line.end.ring()
      thread.join()
    }
    return try body()
  }

  private func run(_ console: Console, _ text: @Sendable () -> String) {
    var wait = Self.patience
    var isShown = false
    while (try? waitForAny(of: [end.fd], milliseconds: wait)) == [false] {
      console.show(progress: text())
      isShown = true
      wait = Self.interval
    }
    if isShown { console.show(progress: nil) }
  }
}

extension Int {
  /// A number of bytes for people.
  var asSize: String {
    let units = ["bytes", "KB", "MB", "GB", "TB"]
    var size = Double(self)
    var unit = 0
    while size >= 1000, unit < units.count - 1 {
      size /= 1000
      unit += 1
    }
    guard unit > 0 else { return "\(self) bytes" }
    let tenths = Int((size * 10).rounded())
    return size < 10 ? "\(tenths / 10).\(tenths % 10) \(units[unit])" : "\((tenths + 5) / 10) \(units[unit])"
  }
}
