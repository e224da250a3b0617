// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Daemon
internal import LinuxIO
internal import Store

/// Why a command did not do what it was asked for: a message that says what failed, on which path, and what to do.
struct CommandFailure: Error, Equatable {
  let code: ExitCode
  let message: String

  init(_ code: ExitCode, _ message: String) {
    self.code = code
    self.message = message
  }

  /// Finds words and an exit code for any error that a command may end with.
  init(_ error: any Error) {
    switch error {
    case let failure as CommandFailure: self = failure
    case let error as UsageError: self.init(.usage, error.message)
    case let error as StoreError: self.init(Self.code(of: error), error.description)
    case let error as IdentityFailure: self.init(Self.code(of: error), error.description)
    case let error as Errno: self.init(Self.code(of: error), error.message)
    default: self.init(.failed, String(describing: error))
    }
  }

  private static func code(of error: StoreError) -> ExitCode {
    switch error {
    case .notThere, .notAStore, .halfMade, .damaged, .registryDamaged: .noStore
    case .newerFormat, .olderFormat, .registryNewer: .wrongFormat
    case .inUse, .registryBusy: .busy
    case .belongsToOther, .notPermitted, .otherAccount: .notPermitted
    case .badHomeName: .usage
    case .alreadyAStore, .notEmpty, .noSpace, .readOnly, .failed, .unknownAccount, .homeExists, .noHome,
      .registryFailed, .appExists, .noApp, .noContainer:
      .failed
    }
  }

  /// What a daemon has refused, or the command itself in a daemon's place.
  init(_ reply: ControlReply) {
    let words = reply.message ?? "it failed, and nothing says why"
    self.init(reply.errno.map { Self.code(of: Errno($0)) } ?? .failed, words)
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
