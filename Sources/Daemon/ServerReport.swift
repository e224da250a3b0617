// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// What a server counts.
package struct ServerReport: Codable, Sendable {
  package var mode = "system"
  package var mountPoint = ""
  package var passthrough = false
  /// Why there is none; earlier daemons don't say.
  package var passthroughReason: String?
  /// In how many directories no names are cached for a moment, and for how many users in none of theirs,
  /// since their names had to be withdrawn at everyone's expense; earlier daemons don't say.
  package var uncachedDirectories: Int?
  package var uncachedUsers: Int?
  /// How often something in an installed app or in the system domain was refused because it is not what was
  /// sealed.
  package var sealRefusals: UInt64 = 0
  package var fileHandles = false
  /// Whether all apps may run what they have written.
  package var writableCode = false
  /// Whether sandboxed apps may be started past their views.
  package var directStart = false
  /// Whether the media library is all of the Music folder; earlier daemons don't say.
  package var allMusic: Bool?
  package var appUmask: String?
  /// Whether names are compared without case; earlier daemons don't say.
  package var caseInsensitive: Bool?
  package var nodes = 0
  package var openFiles = 0
  package var openDirectories = 0
  package var descriptors = 0
  package var locks = 0
  package var requests: UInt64 = 0
  package var requestsByKind: [String: UInt64] = [:]
  package var threads = 0
  /// How many apps run.
  package var views = 0
  package var version = ""
  /// The process that replaces this one when it dies; 0 if there is none.
  package var keeper: Int32 = 0
  /// How often that has happened, why it did the last time, and for how long nobody has served then.
  package var restarts = 0
  package var lastRestart: String?
  package var lastPauseMilliseconds: Double?
  /// Whether the installed program takes over as soon as a worker has ended, or why it has not.
  package var upgradeWaits: Bool?
  package var upgradeFailure: String?
  /// How many volumes are not there since they were not added on this machine; earlier daemons don't say.
  package var unconfirmedVolumes: Int?
  /// Why files are served without apps, if they are.
  package var appsUnknown: String?
  /// Who was refused something because they had all that one user may have.
  package var overBudget: [Budget.Refusal] = []
}
