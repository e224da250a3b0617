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
  init(_ failure: ControlFailure) { self.init(Self.code(of: failure.cause), failure.message) }

  private static func code(of cause: ControlFailure.Cause) -> ExitCode {
    switch cause {
    case .unspecified: .failed
    case .errno(let errno): code(of: errno)
    case .store(let kind): code(of: kind)
    case .finding(let kind): .found(BundleProblem(kind))
    case .crowded, .appsRun, .inUse: .busy
    }
  }

  private static func code(of error: IdentityFailure) -> ExitCode {
    switch error {
    case .badName, .badTeam: .usage
    case .failed(_, let errno): code(of: errno)
    case .exists, .notThere, .irregular, .damaged, .openToOthers, .hasPrivateKey, .notOneCertificate,
      .notARoot,
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

extension CommandFailure {
  /// An errno with words for it.
  init(_ errno: Errno, _ message: String) { self.init(CommandFailure(errno).code, message) }
}
