// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What a process does that works for this one, and keeps it waiting.
@Suite(.enabled(if: access("/usr/bin/python3", X_OK) == 0, "it needs python3"))
struct HelperProcessTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  private func start(_ script: String, _ outputs: [RelayedOutput] = []) throws -> Int32 {
    func spawn(_ descriptors: [(from: FD, to: Int32)]) throws(Errno) -> Int32 {
      try HelperProcess.start { () throws(Errno) in
        try Subprocess.spawn(
          "/usr/bin/python3", ["python3", "-c", script], Context.current(), descriptors: descriptors)
      }
    }
    guard let output = outputs.first else { return try spawn([]) }
    return try output.give { (theirs) throws(Errno) in try spawn([(theirs, STDOUT_FILENO)]) }
  }

  /// Something else is done meanwhile as long as there is anything, and then it is ended.
  @Test(.mayTake(seconds: 60)) func oneThatDoesNotGetOnHoldsUpNothing() throws {
    let pid = try start("import time; time.sleep(45)")
    var (others, hasEnded) = (3, false)
    let end = try HelperProcess.wait(
      for: pid, patience: Patience(before: 1, most: 2),
      meanwhile: {
        others -= 1
        return others >= 0
      }, givenUp: { hasEnded = true })
    #expect(end == .signalled(SIGKILL) && hasEnded && others < 0)
    #expect(ProcessID.isGone(pid))
  }

  @Test(.mayTake(seconds: 60)) func oneThatGetsOnIsWaitedFor() throws {
    let pid = try start(
      """
      import time
      end = time.monotonic() + 8
      while time.monotonic() < end: open('/dev/zero', 'rb').read(1 << 22); time.sleep(0.05)
      """)
    var isHeldUp = false
    let end = try HelperProcess.wait(
      for: pid, patience: Patience(before: 6, most: 7),
      meanwhile: {
        isHeldUp = true
        return true
      })
    #expect(end == .exited(0) && !isHeldUp)
  }

  /// What it gets is not our file: it can neither read that, nor cut it off, nor write elsewhere in it.
  @Test func itCanOnlyAddToAFileOfOurs() throws {
    try shell.temporary.write("ours\n", to: "log")
    let file = try FD.cwd.openFollowing(shell.temporary.appending("log"), O_RDWR | O_APPEND)
    let output = try RelayedOutput(file.fd)
    let pid = try start(
      """
      import os
      for attempt in (lambda: os.ftruncate(1, 0), lambda: os.lseek(1, 0, 0), lambda: os.read(1, 1)):
          try: attempt(); os.write(1, b'done')
          except OSError: os.write(1, b'refused ')
      """, [output])
    let end = try HelperProcess.wait(for: pid, outputs: [output])
    #expect(end == .exited(0))
    #expect(shell.temporary.text(of: "log") == "ours\nrefused refused refused ")
  }

  /// More than a pipe holds, and nobody else has the writing end at the end.
  @Test func allThatItWritesIsPassedOn() throws {
    try shell.temporary.write("", to: "log")
    let file = try FD.cwd.openFollowing(shell.temporary.appending("log"), O_WRONLY)
    let output = try RelayedOutput(file.fd)
    let pid = try start("import os; os.write(1, b'x' * 500000); os.write(1, b'y' * 60000)", [output])
    #expect(try HelperProcess.wait(for: pid, outputs: [output]) == .exited(0))
    #expect(shell.temporary.text(of: "log")?.utf8.count == 560_000)
  }
}
