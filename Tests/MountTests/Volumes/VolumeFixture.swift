// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// A store with volumes, in which users run scripts; without an account they are the fixture's own user's.
protocol VolumeFixture {
  func shell(_ script: String, as account: Account?) throws -> ProgramResult
  /// What the daemon has noted about itself, as that a program that serves a volume has ended.
  var daemonLog: String? { get }
}

extension VolumeFixture {
  var daemonLog: String? { nil }

  func shell(_ script: String) throws -> ProgramResult { try shell(script, as: nil) }

  func expect(
    _ script: String, _ output: String, as account: Account? = nil,
    location: SourceLocation = #_sourceLocation
  ) throws {
    let result = try shell(script, as: account)
    let isExpected = result.status == 0 && result.output == output
    let log = isExpected ? nil : daemonLog
    #expect(isExpected, "\(result)\(log.map { "; the daemon's log: \($0)" } ?? "")", sourceLocation: location)
  }
}
