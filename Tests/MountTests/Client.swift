// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport

/// Another process, and usually another user, that does what it is told; it ends with this object.
final class Client {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var received: [UInt8] = []

  /// What became of a command.
  struct Answer: Equatable, CustomStringConvertible {
    /// 0 if it succeeded.
    let errno: Int32
    let words: [String]
    var description: String { "\(errno == 0 ? "ok" : Errno(errno).message) \(words.joined(separator: " "))" }
  }

  static var program: String {
    URL(fileURLWithPath: Program.insula).deletingLastPathComponent().appendingPathComponent("insula-client")
      .path
  }

  /// One that is to crash does so without a report.
  init(uid: UInt32 = 0, gid: UInt32? = nil, groups: [UInt32] = [], crashes: Bool = false) throws {
    process.executableURL = URL(fileURLWithPath: Self.program)
    process.arguments = ([uid, gid ?? uid] + groups).map { "\($0)" }
    if crashes {
      process.environment = ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) {
        $1
      }
    }
    process.standardInput = input
    process.standardOutput = output
    try Program.withSignalsUnblocked { try process.run() }
  }

  deinit {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Tells it to do something, without waiting for the answer.
  func send(_ words: String...) throws { try send(words) }

  func send(_ words: [String]) throws {
    try input.fileHandleForWriting.write(contentsOf: Data((words.joined(separator: "\t") + "\n").utf8))
  }

  /// The next answer; nil if there is none within the time.
  func answer(milliseconds: Int32 = patience) throws -> Answer? {
    let fd = FD(output.fileHandleForReading.fileDescriptor)
    while true {
      if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
        let words = String(decoding: received[..<end], as: UTF8.self).split(separator: "\t").map(String.init)
        received.removeSubrange(...end)
        return Answer(
          errno: words.first == "ok" ? 0 : Int32(words.first ?? "") ?? -1, words: Array(words.dropFirst()))
      }
      guard try fd.waitUntilReadable(milliseconds: milliseconds) else { return nil }
      guard let bytes = try fd.readAvailable(limit: 1 << 16) else { throw Errno.ESRCH }
      received += bytes
    }
  }

  /// Tells it to do something, and waits until it has.
  @discardableResult
  func run(_ words: String...) throws -> Answer {
    try send(words)
    guard let answer = try answer() else { throw Errno.EAGAIN }
    return answer
  }

  /// Runs a command and gives its error, 0 if it succeeded.
  func errno(_ words: String...) throws -> Int32 {
    try send(words)
    guard let answer = try answer() else { throw Errno.EAGAIN }
    return answer.errno
  }
}
