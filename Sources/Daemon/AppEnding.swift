// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// How an app has ended, as the process says that has waited for it.
package struct AppEnding: Equatable, Sendable {
  /// A limit of the app's that the kernel has enforced.
  package enum Limit: String, Sendable { case memory, processes }

  /// What an exit status can be.
  package static let statuses: ClosedRange<Int32> = 0...255

  /// The exit status, or 128 and the number of the signal that has ended it; nil if it was not started.
  package let status: Int32?
  /// Of several, the one that ends processes.
  package let limit: Limit?

  package init(status: Int32?, limit: Limit? = nil) {
    self.status = status
    self.limit = limit
  }
}

/// What a daemon knows of the end of an app.
struct KnownEnd: Sendable {
  /// That somebody wants it to end.
  enum Wish: Equatable, Sendable {
    case none
    /// `insula kill`; without a signal it is asked to, and then made to.
    case kill(by: UInt32, signal: Int32?)
    /// The store is unmounted by a user, or by whoever ends the daemon.
    case unmount(by: UInt32?)
  }

  /// Nil as long as the process that waits for the app has said nothing.
  var told: AppEnding?
  /// Why the daemon has ended it, if it has.
  var why: String?
  var wish = Wish.none
}
