// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Bundles
package import LinuxIO
package import Store

/// Why a request was refused or has failed: what a daemon says, or a command on a store that nobody serves.
package struct ControlFailure: Error, Equatable, Sendable {
  /// What kind of failure it is, so that commands end with the same code with a daemon and without.
  package enum Cause: Equatable, Sendable {
    case unspecified
    /// The kernel has refused it, or this is what stands for it among numbers.
    case errno(Errno)
    case store(StoreError.Kind)
    /// The first thing that is wrong with a bundle.
    case finding(Bundles.Finding.Kind)
    /// Others of the same user must have been served first.
    case crowded
    /// These apps run.
    case appsRun([RunningApp])
    /// Something else uses the mount that must end first, as the message says.
    case inUse
  }

  package let message: String
  package let cause: Cause

  package init(_ message: String, _ cause: Cause = .unspecified) {
    self.message = message
    self.cause = cause
  }

  init(_ message: String, _ errno: Errno) { self.init(message, .errno(errno)) }

  /// Says why in the words that a command would have.
  package init(_ error: StoreError) { self.init(error.description, .store(error.kind)) }

  static let crowded = ControlFailure("you have too many requests in progress; try again later", .crowded)

  /// A line that is no request.
  init(unreadable error: any Error) {
    switch error {
    case DecodingError.keyNotFound, DecodingError.valueNotFound:
      self.init("a field of the request is missing", .EINVAL)
    default: self.init("this version of insula does not know this request")
    }
  }
}
