// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// The one PATH for all users, so that root and they find the same programs.
let toolPath = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]

/// Where a program is, if this process may run it.
func tool(_ name: String) -> String? {
  toolPath.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
}

extension Trial {
  /// Runs a script with `sh -eu`; a status other than 0 is a failure that shows the end of the output.
  ///
  /// In the script, `same A B` states that two texts are equal, and says where they are not.
  @discardableResult
  func sh(_ script: String, file: StaticString = #fileID, line: UInt = #line) throws -> String {
    let (status, output) = try shell(script)
    if status == 0 { return output }
    let tail = output.suffix(400).split(separator: "\n").joined(separator: " | ")
    throw Failure(text: "expected exit status 0, saw \(ending(status)): \(tail) (\(file):\(line))")
  }

  /// Runs a script and gives its status and all it wrote.
  func shell(_ script: String) throws -> (status: Int32, output: String) {
    var ends: [Int32] = [0, 0]
    try ok(clx_pipe2(&ends, O_CLOEXEC))
    let pid = try ok(clx_fork())
    if pid == 0 { Trial.exec(shell: Trial.prelude + script, output: ends[1]) }
    close(ends[1])
    var output: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let got = read(ends[0], &buffer, buffer.count)
      guard got > 0 else { break }
      output += buffer.prefix(got)
    }
    close(ends[0])
    var status: Int32 = 0
    try ok(waitpid(pid, &status, 0))
    return (status, String(decoding: output, as: UTF8.self))
  }

  private static let prelude = """
    same() {
      test "$1" = "$2" && return
      case "$1$2" in
        *"
    "*) printf '%s\n' "$1" > .seen; printf '%s\n' "$2" > .expected; diff .seen .expected;;
        *) echo "<$1> is not <$2>";;
      esac
      exit 1
    }

    """

  /// A fixed environment: no user's settings, no time zone, no locale.
  private static let environment = [
    "PATH=\(toolPath.joined(separator: ":"))", "HOME=/nonexistent", "LC_ALL=C", "TZ=UTC",
    "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A",
    "GIT_AUTHOR_EMAIL=a@example.org",
    "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org",
  ]

  private static func exec(shell script: String, output: Int32) -> Never {
    let null = clx_open("/dev/null", O_RDONLY, 0)
    dup2(null, 0)
    dup2(output, 1)
    dup2(output, 2)
    signal(SIGPIPE, SIG_DFL)
    let arguments = (["sh", "-euc", script] as [String]).map { strdup($0) } + [nil]
    execve("/bin/sh", arguments, environment.map { strdup($0) } + [nil])
    _exit(127)
  }
}
