// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Daemon
internal import LinuxIO
internal import Store

/// Why a command did not do what it was asked for: a message that says what failed, on which path, and what
/// to do.
struct CommandFailure: Error, Equatable {
  let code: ExitCode
  let message: String
  /// What is told below the message, line by line.
  let lines: [String]

  init(_ code: ExitCode, _ message: String, lines: [String] = []) {
    self.code = code
    self.message = message
    self.lines = lines
  }

  /// Finds words and an exit code for any error that a command may end with.
  init(_ error: any Error) {
    switch error {
    case let failure as CommandFailure: self = failure
    case let error as UsageError: self.init(.usage, error.message)
    case let error as StoreError: self.init(Self.code(of: error.kind), error.description)
    case let error as IdentityFailure: self.init(Self.code(of: error), error.description)
    case let error as DataFailure: self.init(Self.code(of: error), error.description)
    case let error as Errno: self.init(Self.code(of: error), error.message)
    default: self.init(.failed, String(describing: error))
    }
  }

  static func code(of kind: StoreError.Kind) -> ExitCode {
    switch kind {
    case .noStore: .noStore
    case .wrongFormat: .wrongFormat
    case .busy: .busy
    case .notPermitted: .notPermitted
    case .usage: .usage
    case .noApp, .failed: .failed
    }
  }

  /// What a daemon has refused, or the command itself in a daemon's place.
  init(_ reply: ControlReply) {
    let words = reply.message ?? "it failed, and nothing says why"
    self.init(Self.code(of: reply), words)
  }

  private static func code(of reply: ControlReply) -> ExitCode {
    if let finding = reply.finding.flatMap({ Bundles.Finding.Kind(rawValue: $0) }) {
      return .found(BundleProblem(finding))
    }
    if let kind = reply.failure.flatMap({ StoreError.Kind(rawValue: $0) }) { return code(of: kind) }
    return reply.errno.map { code(of: Errno($0)) } ?? .failed
  }

  private static func code(of error: IdentityFailure) -> ExitCode {
    switch error {
    case .badName, .badTeam: .usage
    case .failed(_, let errno): code(of: errno)
    case .exists, .notThere, .damaged, .openToOthers, .hasPrivateKey, .notOneCertificate, .notARoot,
      .alreadyTrusted, .notTrusted, .ambiguous, .crypto:
      .failed
    }
  }

  private static func code(of error: DataFailure) -> ExitCode {
    switch error {
    case .failed(_, _, .EACCES), .failed(_, _, .EPERM): .notPermitted
    default: .failed
    }
  }

  private static func code(of error: Errno) -> ExitCode {
    switch error {
    case .EBUSY: .busy
    case .EPERM, .EACCES: .notPermitted
    default: .failed
    }
  }
}

/// The command line makes no sense.
struct UsageError: Error, Equatable {
  let message: String
}
