// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport

/// A disk that does not even answer who reads, like one whose server has stopped.
///
/// Whoever reads what is in no cache waits, and can't be killed. Another process sees to it that this ends,
/// also when the test is killed.
final class SilentDisk {
  private let temporary: TemporaryDirectory
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  /// Where it is mounted.
  var path: String { temporary.appending("disk") }

  static var isPossible: Bool { access("/usr/bin/fuse2fs", X_OK) == 0 }

  /// The disk is a file that a program serves, which can be stopped.
  private static let script = """
    import os, select, signal, subprocess, sys, time
    os.chdir(sys.argv[1])
    def run(*words):
        return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    def make(image, size, *more):
        run('truncate', '-s', size, image); run('mkfs.ext4', '-qF', *more, image)
    os.mkdir('served'); os.mkdir('disk'); make('outer', '200M', '-O', '^has_journal')
    none, loop = subprocess.DEVNULL, None
    serve = ['fuse2fs', '-f', 'outer', 'served', '-o', 'fakeroot']
    program = subprocess.Popen(serve, stdout=none, stderr=none)
    try:
        end = time.monotonic() + 30
        while not os.path.ismount('served') and time.monotonic() < end: time.sleep(.02)
        make('served/image', '64M')
        loop = run('losetup', '--show', '-f', 'served/image')
        run('mount', loop, 'disk')
        print('ready', flush=True)
        end = time.monotonic() + 280
        while select.select([0], [], [], max(0, end - time.monotonic()))[0]:
            word = os.read(0, 1)
            if word == b's':
                os.sync(); open('/proc/sys/vm/drop_caches', 'w').write('3')
                program.send_signal(signal.SIGSTOP)
            elif word == b'a': program.send_signal(signal.SIGCONT)
            else: break
            print('done', flush=True)
    finally:
        program.send_signal(signal.SIGCONT)
        for words in [['umount', '-l', 'disk'], ['losetup', '-d', loop or ''], ['umount', '-l', 'served']]:
            subprocess.run(words, stderr=none)
        try: program.wait(30)
        except subprocess.TimeoutExpired: program.kill()
    """

  init() throws {
    temporary = try TemporaryDirectory()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-c", Self.script, temporary.path]
    process.environment = ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"]
    process.standardInput = input
    process.standardOutput = output
    try Program.withSignalsUnblocked { try process.run() }
    try expectAnswer()
  }

  private func expectAnswer() throws {
    let said = FD(output.fileHandleForReading.fileDescriptor)
    guard try said.waitUntilReadable(milliseconds: patience),
      try said.readAvailable(limit: 64)?.isEmpty == false
    else { throw MountedStore.Failure(words: "there is no disk that could fall silent") }
  }

  /// From here on nobody gets an answer, and nothing of it is in a cache but what is in use.
  func fallSilent() throws {
    try input.fileHandleForWriting.write(contentsOf: Data("s".utf8))
    try expectAnswer()
  }

  func answer() throws {
    try input.fileHandleForWriting.write(contentsOf: Data("a".utf8))
    try expectAnswer()
  }

  deinit {
    guard process.isRunning else { return }
    // Another program may have the end of this pipe as well, so that its end says nothing.
    try? input.fileHandleForWriting.write(contentsOf: Data("q".utf8))
    process.waitUntilExit()
  }
}
