// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// One thing that was refused or done.
///
/// What comes of names and of programs is anybody's words, and must not be shown as it is.
package struct LogEntry: Codable, Equatable, Sendable {
  /// What happened, by the word that stands in the log; other versions may have others.
  package struct Event: RawRepresentable, Codable, Hashable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }

    package static let denied = Event(rawValue: "denied")
    package static let launched = Event(rawValue: "launched")
    package static let ended = Event(rawValue: "ended")
    package static let granted = Event(rawValue: "granted")
    package static let revoked = Event(rawValue: "revoked")
    package static let installed = Event(rawValue: "installed")
    package static let updated = Event(rawValue: "updated")
    package static let updateWaits = Event(rawValue: "update-waits")
    package static let updateFailed = Event(rawValue: "update-failed")
    package static let updateCancelled = Event(rawValue: "update-cancelled")
    package static let uninstalled = Event(rawValue: "uninstalled")
    package static let imported = Event(rawValue: "imported")
    package static let purged = Event(rawValue: "purged")
    package static let systemChanged = Event(rawValue: "system-changed")
    package static let mounted = Event(rawValue: "mounted")
    package static let unmounted = Event(rawValue: "unmounted")
    package static let replaced = Event(rawValue: "replaced")
    package static let consentAllowed = Event(rawValue: "consent-allowed")
    package static let consentDenied = Event(rawValue: "consent-denied")
    package static let consentReset = Event(rawValue: "consent-reset")
    /// An app was ended that has asked without a word of why.
    package static let consentMissing = Event(rawValue: "consent-missing")
    package static let volumeAdded = Event(rawValue: "volume-added")
    package static let volumeEjected = Event(rawValue: "volume-ejected")
    package static let volumeLocked = Event(rawValue: "volume-locked")
    package static let volumeUnlocked = Event(rawValue: "volume-unlocked")
    /// An administrator has assigned a team to another root.
    package static let teamAssigned = Event(rawValue: "team-assigned")
    package static let gaveUp = Event(rawValue: "gave-up")
  }

  /// How an app has ended, by the word that stands in the log.
  package struct Ending: RawRepresentable, Codable, Hashable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }

    package static let exited = Ending(rawValue: "exited")
    package static let signal = Ending(rawValue: "signal")
    /// The kernel has ended it, because it used more memory than its limit.
    package static let memory = Ending(rawValue: "memory")
    /// By `insula kill`.
    package static let killed = Ending(rawValue: "killed")
    /// Because the store was unmounted.
    package static let unmounted = Ending(rawValue: "unmounted")
    package static let notStarted = Ending(rawValue: "not-started")
    /// Nobody is left who knows.
    package static let unknown = Ending(rawValue: "unknown")
  }

  /// Grows from entry to entry.
  package internal(set) var number: UInt64 = 0
  /// In milliseconds since 1970.
  package var time: Int64
  package var event: Event
  /// Whom it concerns; nil for all users of the machine.
  package var user: UInt32?
  package var app: String?
  /// Who has done it, if that is somebody else.
  package var by: UInt32?
  package var pid: Int32?
  /// What the process calls itself.
  package var program: String?
  /// What was refused, and by which rule.
  package var operation: String?
  package var rule: String?
  /// Below the root of the tree.
  package private(set) var path: String?
  /// The same in hexadecimal, where it is no UTF-8 and so the text is not the true name.
  package private(set) var pathBytes: String?
  /// How often the same has happened besides, or for an entry without an operation something like it, until
  /// that time.
  package var more: UInt64?
  package var until: Int64?
  /// How an app has ended, with the exit status of its program, the signal that this stands for, and which
  /// of its limits it had reached.
  package var ending: Ending?
  package var status: Int32?
  package var signal: String?
  package var limit: String?
  /// The rest, for people.
  package var detail: String?

  package init(
    _ event: Event, user: UInt32? = nil, app: String? = nil, by: UInt32? = nil, pid: Int32? = nil,
    path: String? = nil, detail: String? = nil, time: Int64
  ) {
    self.event = event
    self.user = user
    self.app = app
    self.by = by == user ? nil : by
    self.pid = pid
    self.path = path
    self.detail = detail
    self.time = time
  }

  // The number stands before them in a file, and is nobody else's business.
  private enum CodingKeys: String, CodingKey {
    case time, event, user, app, by, pid, program, operation, rule, path, more, until
    case pathBytes, ending, status, signal, limit, detail
  }

  /// The most bytes of a path; of a longer one the end is kept.
  package static let longestPath = 4096

  /// Says where it happened; what is no UTF-8 in a path becomes something else in its text.
  package mutating func setPath(_ bytes: [UInt8]?) {
    (path, pathBytes) = (nil, nil)
    guard let bytes else { return }
    guard bytes.count <= Self.longestPath else {
      path = "…" + String(decoding: bytes.suffix(Self.longestPath), as: UTF8.self)
      return
    }
    path = String(decoding: bytes, as: UTF8.self)
    if path.map({ !$0.utf8.elementsEqual(bytes) }) == true { pathBytes = bytes.asHexadecimal }
  }
}
