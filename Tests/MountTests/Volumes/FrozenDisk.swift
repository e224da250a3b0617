// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport

/// A daemon's disk that takes no changes for a while, like one that dies, or a server that has gone.
///
/// Whoever changes something there waits, and can't be killed.
///
/// Another process sees to it that this ends, also when the test is killed.
final class FrozenDisk {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  private static let script = """
    import fcntl, os, select, sys
    freeze, thaw, loop = 0xC0045877, 0xC0045878, 7
    for name in os.listdir(f'/proc/{sys.argv[1]}/fd'):
        try:
            path = f'/proc/{sys.argv[1]}/fd/{name}'
            if os.major(os.stat(path).st_dev) != loop or not os.path.isdir(path): continue
            disk = os.open(path, os.O_RDONLY)
            break
        except OSError: continue
    else: sys.exit('it has no disk')
    fcntl.ioctl(disk, freeze, 0)
    print('frozen', flush=True)
    select.select([sys.stdin], [], [], 280)
    fcntl.ioctl(disk, thaw, 0)
    """

  /// `daemon` has one disk, an image of one.
  init(of daemon: Int32) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-c", Self.script, "\(daemon)"]
    process.standardInput = input
    process.standardOutput = output
    try Program.withSignalsUnblocked { try process.run() }
    let said = FD(output.fileHandleForReading.fileDescriptor)
    guard try said.waitUntilReadable(milliseconds: patience),
      try said.readAvailable(limit: 64)?.isEmpty == false
    else { throw MountedStore.Failure(words: "the disk of \(daemon) can't be frozen") }
  }

  /// Returns when the disk takes changes again.
  func thaw() {
    guard process.isRunning else { return }
    // Another program may have the end of this pipe as well, so that its end says nothing.
    try? input.fileHandleForWriting.write(contentsOf: Data("thaw\n".utf8))
    process.waitUntilExit()
  }

  deinit { thaw() }
}

/// Whether a thread of a process waits for a disk that does not answer, be it in whichever call: in the same
/// wait for a moment, since on a busy machine any write waits for a little.
func waitsForDisk(_ process: Int32) -> Bool {
  func waiting() -> Set<String> {
    Set(
      ProcessID.numbers(in: "/proc/\(process)/task").compactMap { thread in
        let path = "\(process)/task/\(thread)"
        guard ProcessID.field("State", of: path)?.hasPrefix("D") == true else { return nil }
        return ProcessID.field("voluntary_ctxt_switches", of: path).map { "\(thread) \($0)" }
      })
  }
  let before = waiting()
  guard !before.isEmpty else { return false }
  usleep(500_000)
  return !before.isDisjoint(with: waiting())
}
