// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

/// What an app of a user's waits for: all accesses and calls that need the same decision wait for one prompt.
struct PromptKey: Hashable, Sendable {
  enum Subject: Hashable, Sendable {
    case service(PrivacyService)
    /// A panel, of one view at a time.
    case panel(view: UInt64)
  }

  let user: UInt32
  let identifier: String
  /// What a person says about one team's app is no answer for another team's of that identifier.
  let team: Team
  let subject: Subject

  init(_ app: InstalledApp, of user: UInt32, _ subject: Subject) {
    self.init(user: user, identifier: app.identifier.text, team: app.signer, subject: subject)
  }

  init(user: UInt32, identifier: String, team: Team, subject: Subject) {
    self.user = user
    self.identifier = identifier
    self.team = team
    self.subject = subject
  }
}

/// A call of an app's through its socket that waits for a person, or for what is read for it; whoever calls
/// holds it, and when they go nobody waits for it any more.
final class PromptCall: Sendable {
  private let reply = Mutex<ControlReply?>(nil)
  private let isAnswered: @Sendable () -> Void

  /// `isAnswered` is called when there is an answer; it must not wait.
  init(isAnswered: @escaping @Sendable () -> Void = {}) { self.isAnswered = isAnswered }

  var answer: ControlReply? { reply.withLock { $0 } }

  func give(_ answer: ControlReply) {
    reply.withLock { $0 = $0 ?? answer }
    isAnswered()
  }
}

/// Who waits for a person.
enum PromptWaiter: Sendable {
  /// An access through this view.
  case request(PostponedRequest, view: UInt32)
  case call(WeakCall)

  struct WeakCall: Sendable {
    private(set) weak var call: PromptCall?
    /// The app that calls.
    private(set) weak var running: RunningView?
  }

  var isGone: Bool {
    switch self {
    case .request(let request, _): request.isOver
    case .call(let weak): weak.call == nil
    }
  }
}

/// Something that a person is asked.
struct Prompt: Sendable {
  let number: Int64
  let key: PromptKey
  let app: AgentApp
  let question: AgentTask.Question
  /// The views that wait for it.
  var views: Set<UInt64> = []
  private(set) var waiters: [PromptWaiter] = []
  /// With so many it is worth looking which of them have gone.
  private var mostWaiters = Prompt.fewWaiters
  /// The agent that asks.
  var agent: UInt64?

  var task: AgentTask { AgentTask(number: number, app: app, question: question) }

  private static let fewWaiters = 64

  init(number: Int64, key: PromptKey, app: AgentApp, question: AgentTask.Question) {
    self.number = number
    self.key = key
    self.app = app
    self.question = question
  }

  /// One more waits.
  ///
  /// An app may ask and go as often as it likes while a person thinks, so those that have gone are forgotten.
  mutating func add(_ waiter: PromptWaiter) {
    if waiters.count >= mostWaiters {
      waiters.removeAll(where: \.isGone)
      mostWaiters = max(Self.fewWaiters, 2 * waiters.count)
    }
    waiters.append(waiter)
  }
}
