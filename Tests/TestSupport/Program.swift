// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO

/// How a program ended, and what it printed.
package struct ProgramResult: Sendable {
  package let status: Int32
  package let output: String
  package let errors: String
}

/// Programs that tests run.
package enum Program {
  /// Whether the tests run as root, who may mount and become others.
  package static var isRoot: Bool { ProcessID.user == 0 }

  /// The program that the package builds; it lies beside the tests.
  package static var insula: String {
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("insula").path
  }

  /// Runs a program to its end.
  package static func run(
    _ arguments: [String], environment: [String: String] = [:], in directory: String = "/"
  ) throws -> ProgramResult {
    let process = Process()
    // The umask belongs to the whole process, and other tests have their own.
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", "umask 022; exec \"$@\"", "sh"] + arguments
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let output = try TemporaryDirectory()
    _ = FileManager.default.createFile(atPath: output.appending("out"), contents: nil)
    _ = FileManager.default.createFile(atPath: output.appending("err"), contents: nil)
    // Files and not pipes: a daemon that stays behind must not keep the test waiting.
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output.appending("out")))
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: output.appending("err")))
    process.standardInput = FileHandle.nullDevice
    try withSignalsUnblocked { try process.run() }
    process.waitUntilExit()
    return ProgramResult(
      status: process.terminationStatus, output: output.text(of: "out") ?? "",
      errors: output.text(of: "err") ?? "")
  }

  /// Lets a program that `body` starts have its signals: the threads that tests run on block all of them, and a child inherits that.
  package static func withSignalsUnblocked(_ body: () throws -> Void) rethrows {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try body()
  }

  /// Runs a program as the ordinary user `nobody`; root only.
  package static func runAsNobody(
    _ arguments: [String], environment: [String: String] = [:]
  ) throws -> ProgramResult {
    try run(
      ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] + arguments, environment: environment)
  }
}
