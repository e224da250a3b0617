// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
package import Policy
internal import Store

// What is said about consent on the control socket: by the commands of users, by the agents that ask a
// person, and by apps through their own sockets.

/// What somebody wants to know or decide about consent.
///
/// Where it is for a user, root may leave open which; for everyone else it is themselves.
package enum ConsentRequest: Codable, Equatable, Sendable {
  /// What was decided, of an app or of all; of all in parts: what comes after that.
  case list(app: String?, user: UInt32?, after: ConsentPosition? = nil)
  /// Decide for an app: of one service, or of all; without a decision, all is as before the first prompt.
  /// With a team, for its app alone: another one may have the identifier by now.
  case decide(
    app: String, service: PrivacyService?, as: ConsentDecision?, user: UInt32?, team: BackupTeam? = nil)
}

extension ConsentRequest {
  /// How many decisions one answer has; fewer are the last ones.
  package static let mostInAnswer = 1000

  /// Collects what comes in parts.
  ///
  /// A daemon of an earlier version has one part alone, and sends it again.
  package static func all(
    _ part: (_ after: ConsentPosition?) throws -> [ConsentStatus]
  ) rethrows -> [ConsentStatus] {
    var all: [ConsentStatus] = []
    while true {
      let last = all.last.map(ConsentPosition.init)
      let more = try part(last)
      guard let first = more.first, last.map({ $0 < ConsentPosition(first) }) ?? true else { return all }
      all += more
      if more.count < mostInAnswer { return all }
    }
  }
}

/// Where a decision stands among all.
package struct ConsentPosition: Codable, Equatable, Comparable, Sendable {
  let identifier: String
  let user: UInt32
  let service: String

  package init(_ status: ConsentStatus) {
    (identifier, user, service) = (status.identifier, status.user, status.service.rawValue)
  }

  init(_ record: ConsentRecord) {
    (identifier, user, service) = (record.identifier.text, record.user, record.service.rawValue)
  }

  package static func < (one: ConsentPosition, other: ConsentPosition) -> Bool {
    (one.identifier, one.user, one.service) < (other.identifier, other.user, other.service)
  }
}

package enum ConsentDecision: String, Codable, Sendable {
  case allow, deny
}

/// What was decided about an app and a service.
package struct ConsentStatus: Codable, Equatable, Sendable {
  package let identifier: String
  package let user: UInt32
  package let service: PrivacyService
  package let state: ConsentState
  /// In seconds since 1970; nil where nothing was decided.
  package let changed: Int64?
  /// Which administrator's rule restricts it, or which other decision allows it, if one does.
  package let reason: String?

  package init(
    identifier: String, user: UInt32, service: PrivacyService, state: ConsentState, changed: Int64? = nil,
    reason: String? = nil
  ) {
    self.identifier = identifier
    self.user = user
    self.service = service
    self.state = state
    self.changed = changed
    self.reason = reason
  }
}

/// What an agent is to ask a person.
package struct AgentTask: Codable, Equatable, Sendable {
  /// What an answer names.
  package let number: Int64
  package let app: AgentApp
  package let question: Question

  package enum Question: Codable, Equatable, Sendable {
    /// Whether an app may use a service: `text` are the app's own words, fit for a line of a terminal.
    case consent(PrivacyService, text: String?)
    /// Which file or folder the app gets.
    case panel(PanelRequest)
    /// What is to be read for the app: only for the process that has started it, and no question to a person.
    case read(ReadingTask)
    /// A photo to be added, by the same process.
    case add(AddingTask)
  }
}

/// Which app asks: what a person is shown of it.
///
/// All of it is fit for a line of a terminal.
package struct AgentApp: Codable, Equatable, Sendable {
  package let identifier: String
  package let name: String
  package let team: String
}

/// What an app wants its user to choose.
package struct PanelRequest: Codable, Equatable, Sendable {
  package enum Kind: String, Codable, Sendable {
    case file, folder
    /// A file that may not be there yet.
    case save
  }

  package let kind: Kind
  /// The name that a file to be saved begins with.
  package let name: String?
  /// Uniform type identifiers, or extensions of names with a dot, that are shown; empty for all.
  package let types: [String]

  package init(_ kind: Kind, name: String? = nil, types: [String] = []) {
    self.kind = kind
    self.name = name
    self.types = types
  }
}

/// What a person has answered.
package enum AgentAnswer: Codable, Equatable, Sendable {
  case allow, deny
  /// Closed without an answer, or it could not be shown.
  case dismiss
  /// A path below the root of the tree, which is there; the app gets what is at it.
  case chosen(path: String, inode: UInt64)
  /// What was read.
  case items(ItemPage)
  /// Why nothing could be read.
  case unreadable(String)
  /// It does not go on where somebody wants it to.
  case outdated
  /// The photo is copied, and waits to be told that it may be added: the answer follows.
  case copied
  /// The photo is in the library.
  case added
  /// Why it is not, and what the app gets as errno.
  case notAdded(String, errno: Int32)
}
