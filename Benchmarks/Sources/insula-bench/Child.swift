// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// A program that was started with the current directory, and with pipes to it if asked for.
struct Child {
  private let pid: pid_t
  private let program: String
  let input: Int32
  let output: Int32

  /// Starts a program found in PATH; without pipes its input is empty and its output is thrown away.
  ///
  /// A filter is a file that it finds open as its descriptor 3.
  init(_ arguments: [String], pipes: Bool = false, filter: String? = nil) throws(Failure) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    var toChild: [Int32] = [-1, -1]
    var fromChild: [Int32] = [-1, -1]
    if pipes {
      if pipe(&toChild) != 0 || pipe(&fromChild) != 0 { throw Failure.call("pipe") }
      for descriptor in toChild + fromChild { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
      posix_spawn_file_actions_adddup2(&actions, toChild[0], 0)
      posix_spawn_file_actions_adddup2(&actions, fromChild[1], 1)
    } else {
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
      posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    }
    if let filter { posix_spawn_file_actions_addopen(&actions, 3, filter, O_RDONLY, 0) }
    var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    var child: pid_t = 0
    let result = posix_spawnp(&child, arguments[0], &actions, nil, pointers, environ)
    if pipes {
      close(toChild[0])
      close(fromChild[1])
    }
    if result != 0 { throw Failure("\(arguments[0]): \(String(cString: strerror(result)))") }
    pid = child
    program = arguments.joined(separator: " ")
    input = toChild[1]
    output = fromChild[0]
  }

  /// What it says up to the end of a line, without that; less if it says no more.
  func readLine() -> String {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while read(output, &byte, 1) == 1, byte != 10 { line.append(byte) }
    return String(decoding: line, as: UTF8.self)
  }

  /// Says a line to it.
  func tell(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = write(input, bytes, bytes.count)
  }

  /// Lets it come to the end of its input, while the pipe's number stays taken until ``wait(allowing:)``.
  func endInput() {
    let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
    if null < 0 { return }
    dup2(null, input)
    close(null)
  }

  /// Waits for the end, and closes the pipes; any exit code but these is a failure.
  func wait(allowing codes: [Int32] = [0]) throws(Failure) {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
    if input >= 0 { close(input) }
    if output >= 0 { close(output) }
    if status & 0x7f != 0 { throw Failure("\(program): ended by signal \(status & 0x7f)") }
    let code = (status >> 8) & 0xff
    if !codes.contains(code) { throw Failure("\(program): exit code \(code)") }
  }

  /// Starts a program and waits for its end.
  static func run(_ arguments: [String], allowing codes: [Int32] = [0]) throws(Failure) {
    try Child(arguments).wait(allowing: codes)
  }
}
