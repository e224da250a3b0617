// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import LinuxIO
internal import Synchronization
internal import TestSupport

/// Runs commands in this process, in a world of the test's own.
final class Shell: Sendable {
  /// How a command ended, and what it printed.
  struct Result {
    let code: ExitCode
    let output: String
    let errors: String
  }

  private final class Paper: Sendable {
    let text = Mutex("")
    func write(_ words: String) { text.withLock { $0 += words } }
  }

  let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  func run(_ words: String...) -> Result { run(words) }

  func run(_ words: [String]) -> Result {
    let output = Paper()
    let errors = Paper()
    let console = Console(write: { output.write($0) }, writeError: { errors.write($0) })
    let context = Context(
      environment: ["PATH": "/usr/bin:/bin", "XDG_DATA_HOME": temporary.appending("data")],
      uid: ProcessID.user, home: temporary.path, currentDirectory: temporary.path, console: console)
    let code = Insula.run(words, in: context)
    return Result(code: code, output: output.text.withLock { $0 }, errors: errors.text.withLock { $0 })
  }
}

/// The files of the repository.
enum Repository {
  static var root: String {
    var url = URL(fileURLWithPath: #filePath)
    for _ in 0..<3 { url.deleteLastPathComponent() }
    return url.path
  }
}
