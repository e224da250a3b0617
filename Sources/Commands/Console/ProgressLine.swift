// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

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

  /// Does something that notes how far it is, and shows what `text` says of that, if a person looks.
  static func show<Progress: Sendable, Result>(
    _ console: Console, _ text: @escaping @Sendable (Progress?) -> String,
    while body: (_ note: @escaping @Sendable (Progress) -> Void) throws -> Result
  ) rethrows -> Result {
    let last = LastProgress<Progress>()
    return try show(console, { text(last.value.withLock { $0 }) }) {
      try body { progress in last.value.withLock { $0 = progress } }
    }
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

/// The last that was heard of how far something is.
private final class LastProgress<Progress: Sendable>: Sendable {
  let value = Mutex<Progress?>(nil)
}
