// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A server of this machine that lets anyone read and write a directory.
final class WebDAVServer {
  static let isPossible = access("/usr/bin/rclone", X_OK) == 0

  /// What it has.
  let directory: String
  let url: String
  let process: Int32

  init(in temporary: TemporaryDirectory) throws {
    try temporary.makeDirectory("shared", mode: 0o755)
    directory = temporary.appending("shared")
    let port = Int.random(in: 20_000..<32_000)
    url = "dav://127.0.0.1:\(port)"
    let script = """
      setsid rclone serve webdav "$0" --addr 127.0.0.1:$1 --config /dev/null --dir-cache-time 0s \\
        >/dev/null 2>&1 </dev/null & echo $!
      for i in $(seq 200)
      do python3 -c "import socket; socket.create_connection(('127.0.0.1', $1))" 2>/dev/null && exit
        sleep 0.1; done; exit 1
      """
    let started = try Program.run(["sh", "-c", script, directory, "\(port)"])
    process = try #require(Int32(started.output.split(separator: "\n").first ?? ""))
    try #require(started.status == 0, "rclone does not serve")
  }

  /// Lets nobody have an answer, until it goes on.
  func stop() { kill(process, SIGSTOP) }
  func goOn() { kill(process, SIGCONT) }

  deinit { if process > 1 { kill(process, SIGKILL) } }
}
