// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

// What users say by commands, and people through their agents.

extension ConsentService {
  func answer(_ request: ConsentRequest, _ call: ControlCall) -> ControlAnswer {
    switch request {
    case .list(let identifier, let user, let after):
      return .job(.queries) { _ in
        ControlReply { () throws(ControlFailure) in
          .consents(try self.list(identifier, user, after, call.caller))
        }
      }
    case .decide(let identifier, let service, let decision, let user, let team):
      return .job(.decisions) { _ in
        ControlReply { () throws(ControlFailure) in
          .consents(try self.decide(decision, identifier, service, for: user, team, call.caller))
        }
      }
    }
  }

  /// Of an app whatever there is to decide, and else what was decided.
  private func list(
    _ identifier: String?, _ asked: UInt32?, _ after: ConsentPosition?, _ caller: ControlCaller
  ) throws(ControlFailure) -> [ConsentStatus] {
    if let identifier {
      let user = try self.user(asked, caller)
      let app = try installed(identifier, user)
      return PrivacyService.allCases.map { answers.status(app, user, $0) }
    }
    guard caller.isPrivileged || asked == nil || asked == caller.uid else { throw Self.othersConsents }
    return page(of: caller.isPrivileged ? asked : caller.uid, after: after)
  }

  /// As much as one answer has of what counts, of a user or of all.
  func page(of user: UInt32?, after: ConsentPosition?) -> [ConsentStatus] {
    var statuses: [ConsentStatus] = []
    // Each is asked for once: an app may go meanwhile.
    for record in answers.all(of: user, after: after) where statuses.count < ConsentRequest.mostInAnswer {
      guard let app = try? installed(record.identifier.text, record.user), answers.counts(record, for: app)
      else { continue }
      statuses.append(answers.status(app, record.user, record.service))
    }
    return statuses
  }

  private func decide(
    _ decision: ConsentDecision?, _ identifier: String, _ service: PrivacyService?, for asked: UInt32?,
    _ team: BackupTeam?, _ caller: ControlCaller
  ) throws(ControlFailure) -> [ConsentStatus] {
    let user = try self.user(asked, caller)
    if decision != nil {
      // Before its turn, for which others wait.
      do throws(StoreError) { try Registry.requireAccount(user, waiting: true) } catch {
        throw ControlFailure(error)
      }
    }
    let app = try installed(identifier, user)
    guard team?.isSame(as: app.signer) ?? true else {
      throw ControlFailure(
        "another team's \(app.identifier.text) has been installed meanwhile, so nothing was decided; "
          + "'insula consent' decides for that one")
    }
    let services = service.map { [$0] } ?? PrivacyService.allCases
    var failure: ControlFailure?
    // One that can't be noted is no reason to leave the others as they are.
    for service in services {
      do throws(ControlFailure) {
        try decide(decision, app, for: user, service, by: caller.uid)
      } catch {
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
    return services.map { answers.status(app, user, $0) }
  }

  private func user(_ asked: UInt32?, _ caller: ControlCaller) throws(ControlFailure) -> UInt32 {
    let isSystem = store.description.mode == .system
    let user = asked ?? (isSystem ? caller.uid : ProcessID.user)
    guard user == caller.uid || caller.isPrivileged else { throw Self.othersConsents }
    return user
  }

  private static let othersConsents = ControlFailure("only root may do this for another user", .EPERM)

  func installed(_ text: String, _ user: UInt32) throws(ControlFailure) -> InstalledApp {
    do throws(StoreError) {
      guard let identifier = AppIdentifier(text), let app = try registry(false)?.app(identifier, for: user)
      else {
        throw StoreError.noApp(identifier: text)
      }
      return app
    } catch {
      throw ControlFailure(error)
    }
  }

  /// The app that a person was asked about, unless another team's is in its place by now.
  private func installed(_ key: PromptKey) throws(ControlFailure) -> InstalledApp {
    let app = try installed(key.identifier, key.user)
    guard app.signer == key.team else { throw ControlFailure("the app has gone", .ESRCH) }
    return app
  }

  // MARK: Agents

  /// Gives an agent what it is to ask next, when there is something; from its first such request on until it
  /// hangs up, it is one.
  func nextTask(ofStarted: Bool, _ call: ControlCall) -> ControlAnswer {
    let user = call.caller.uid
    guard store.description.mode == .system || user == ProcessID.user else {
      return .refusal("only the owner of this store can be asked about its apps")
    }
    let view: UInt64?
    let hasEnded: @Sendable () -> Bool
    if ofStarted {
      guard let process = call.process, let running = views.one(waitedForBy: call.caller, process) else {
        return .refusal("this process has started no app", .ESRCH)
      }
      view = running.number
      hasEnded = self.hasEnded(running.number)
    } else {
      view = nil
      hasEnded = { false }
    }
    let agent = call.connection.agent(of: view) { [prompts] in
      AgentPresence(prompts.join(user, view: view), view: view, hasEnded: hasEnded) { [weak self] in
        self?.left($0, of: user)
      }
    }
    guard let agent else { return .reply(.failure(.crowded)) }
    return .waits { [prompts, number = agent.number] in
      hasEnded() ? .failure(Self.appHasEnded) : prompts.next(for: number).map(ControlReply.task)
    }
  }

  static let appHasEnded = ControlFailure("the app has ended", .ESRCH)

  /// Whether the view has ended of an app that somebody asks or reads for.
  func hasEnded(_ view: UInt64) -> @Sendable () -> Bool { { [views] in !views.has(view) } }

  /// A view has ended: nobody is asked for it any more, and whose connection was there for it is told.
  func ended(_ view: UInt64, of user: UInt32) {
    prompts.forget(view: view)
    poke(agentsOf: user)
  }

  private func left(_ agent: UInt64, of user: UInt32) {
    let unasked = prompts.leave(agent)
    if unasked.isEmpty { poke(agentsOf: user) } else { refuse(unasked, Self.nobodyAsks, .EPERM) }
  }

  static let nobodyAsks =
    "nobody is there to be asked, so nothing was decided; 'insula agent' asks, and 'insula consent allow' "
    + "decides without asking"

  /// Does what a person has said.
  func answerTask(_ number: Int64, _ answer: AgentAnswer, _ call: ControlCall) -> ControlAnswer {
    guard let agent = call.connection.agent else {
      return .refusal("only an agent that was given something to ask can answer", .ESRCH)
    }
    if agent.isReader { return .reply(take(answer, toReading: number, from: agent)) }
    return .job(.decisions) { _ in
      ControlReply { () throws(ControlFailure) in try self.take(answer, to: number, from: agent.number, call)
      }
    }
  }

  private func take(
    _ answer: AgentAnswer, to number: Int64, from agent: UInt64, _ call: ControlCall
  ) throws(ControlFailure) -> ControlReply {
    guard let prompt = prompts.answered(number, by: agent, isAnswer: answer != .dismiss) else {
      throw ControlFailure("nobody waits for this answer any more", .ESTALE)
    }
    switch (prompt.key.subject, answer) {
    case (.service(let service), .allow), (.service(let service), .deny):
      do throws(ControlFailure) {
        let app = try installed(prompt.key)
        let decision: ConsentDecision = answer == .allow ? .allow : .deny
        try decide(decision, app, for: prompt.key.user, service, by: nil)
        release(prompt, answers.state(app, prompt.key.user, service), app)
      } catch {
        // It could not be noted.
        refuse([prompt], error.message, .EPERM)
        throw error
      }
    case (.panel, .chosen(let path, let inode)):
      do throws(ControlFailure) {
        release(prompt, try grant(path, inode, prompt, call))
      } catch {
        // Something else can be chosen.
        refuse(prompts.putBack(prompt), Self.nobodyToChoose, .EPERM)
        for view in prompt.views where !views.has(view) { prompts.forget(view: view) }
        poke(agentsOf: prompt.key.user)
        throw error
      }
    case (.panel, _): refuse([prompt], "nothing was chosen", .ECANCELED)
    case (.service, _):
      refuse([prompt], "the question was closed without an answer, so nothing was decided", .EPERM)
    }
    return .done
  }

  /// Grants the app what was chosen, in the name of whose agent has said so.
  private func grant(
    _ path: String, _ inode: UInt64, _ prompt: Prompt, _ call: ControlCall
  ) throws(ControlFailure) -> GrantPage {
    let team = BackupTeam(prompt.key.team.text, root: prompt.key.team.root?.asHexadecimal)
    // Another team's app may have its place before this is noted.
    let request = GrantRequest.grant(
      try installed(prompt.key).identifier, path: path, inode: inode, nil, user: prompt.key.user,
      on: GrantCondition(team: team))
    return GrantPage(places: try grants.perform(request, by: call.callerIdentity()), next: nil)
  }

  private func release(_ prompt: Prompt, _ page: GrantPage) {
    for case .call(let weak) in prompt.waiters { weak.call?.give(.grants(page)) }
  }

  // MARK: Apps

  /// What counts for an app that runs, of all services for which it could ask.
  func statuses(_ running: RunningView) -> [ConsentStatus] {
    running.launch.services.map { answers.status(running.launch.app, running.user, $0) }
  }

  /// An app asks for a service in so many words.
  func request(_ service: PrivacyService, _ running: RunningView) -> AppAnswer {
    let launch = running.launch
    guard launch.services.contains(service) else {
      return .reply(
        .failure(ControlFailure("the app's signature does not let it ask to \(service.use)", .EINVAL)))
    }
    guard mayAsk(launch, running.user, service) else { return ended(running, for: service) }
    let status = answers.status(launch.app, running.user, service)
    if status.state == .denied, launch.privacy.asksWithoutText(for: service) {
      return ended(running, for: service)
    }
    guard status.state == .notDetermined else { return .reply(.consents([status])) }
    let call = self.call(of: running.number)
    switch wait(for: service, in: running, { .call(PromptWaiter.WeakCall(call: call, running: running)) }) {
    case .waits: return .waits(for: .view(running.number)) { call.answer }
    case .nobodyAsks: return .reply(.failure(ControlFailure(Self.nobodyAsks, .EPERM)))
    case .isQuiet: return .reply(.failure(ControlFailure(Self.isQuiet, .EAGAIN)))
    }
  }

  /// Ends an app at a call of its, which is never answered then.
  private func ended(_ running: RunningView, for service: PrivacyService) -> AppAnswer {
    end(running, for: service).map { .reply(.failure($0)) } ?? .waits(for: .view(running.number)) { nil }
  }

  private static let isQuiet = "the last question was closed without an answer just now; ask again later"

  /// An app wants its user to choose something.
  func openPanel(_ panel: PanelRequest, _ running: RunningView) -> AppAnswer {
    guard panel.isReasonable else {
      return .reply(.failure(ControlFailure("the name or the types are too long", .EINVAL)))
    }
    let app = running.launch.app
    let key = PromptKey(app, of: running.user, .panel(view: running.number))
    let call = self.call(of: running.number)
    let addition = add(key, running, .panel(panel.sanitized)) {
      .call(PromptWaiter.WeakCall(call: call, running: running))
    }
    switch addition {
    case .waits:
      poke(agentsOf: running.user)
      return .waits(for: .view(running.number)) { call.answer }
    case .nobodyAsks: return .reply(.failure(ControlFailure(Self.nobodyToChoose, .EPERM)))
    case .isQuiet: return .reply(.failure(ControlFailure(Self.isQuiet, .EAGAIN)))
    }
  }

  /// Adds someone who waits for a person, unless the view has ended meanwhile.
  func add(
    _ key: PromptKey, _ running: RunningView, _ question: AgentTask.Question, _ waiter: () -> PromptWaiter?
  ) -> Prompts.Addition {
    let view = running.number
    let addition = prompts.add(key, of: view, AgentApp(running.launch.app), question, waiter)
    if !views.has(view) { prompts.forget(view: view) }
    return addition
  }

  private static let nobodyToChoose =
    "nobody is there to choose; 'insula agent' asks, and 'insula grant' grants without asking"
}

extension PanelRequest {
  fileprivate var isReasonable: Bool {
    (name?.utf8.count ?? 0) <= 255 && types.count <= 64 && types.allSatisfy { $0.utf8.count <= 128 }
  }

  /// Fit to be shown.
  var sanitized: PanelRequest {
    PanelRequest(kind, name: name.flatMap(Self.fileName), types: types.map(\.sanitized))
  }

  /// The name that a file is proposed by: never a path.
  ///
  /// A slash becomes a colon, as on a Mac.
  private static func fileName(_ text: String) -> String? {
    let name = text.sanitized.replacing("/", by: ":")
    return ["", ".", ".."].contains(name) ? nil : name
  }
}
