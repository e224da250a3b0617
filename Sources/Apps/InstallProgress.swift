// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// How far an installation has come, from the one who makes it to the one who looks at it.
package struct InstallProgress: Codable, Equatable, Sendable {
  package enum Phase: String, Codable, Sendable {
    /// The signature is looked at, and how much there is to copy.
    case looking
    case copying
    /// What was copied is held against its seal, and forced to disk.
    case verifying
    /// It is there; what it takes the place of is removed, containers are made.
    case finishing
  }

  package var phase: Phase
  /// How many bytes have been copied, and how many there are.
  package var done: Int64
  package var total: Int64
  package var filesDone = 0
  package var filesTotal = 0

  /// What travels between processes.
  private enum CodingKeys: CodingKey { case phase, done, total }

  package init(phase: Phase, done: Int64 = 0, total: Int64 = 0, filesDone: Int = 0, filesTotal: Int = 0) {
    self.phase = phase
    self.done = done
    self.total = total
    self.filesDone = filesDone
    self.filesTotal = filesTotal
  }
}

/// What someone who waits for an installation hears and says.
package struct InstallWait: Sendable {
  /// Called by any thread, but by one at a time, and at most some ten times a second: nobody after this need
  /// hold anything back.
  package let progress: @Sendable (InstallProgress) -> Void
  /// Asked now and then; once it is true, all is as it was before, unless the change has been made already.
  package let isCancelled: @Sendable () -> Bool

  package init(
    progress: @escaping @Sendable (InstallProgress) -> Void = { _ in },
    isCancelled: @escaping @Sendable () -> Bool = { false }
  ) {
    self.progress = progress
    self.isCancelled = isCancelled
  }
}
