// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Synchronization

// An app is told what is private without getting the files that it is in: its user has consented, and the
// process that has started it reads (``Readings``).

extension ConsentService {
  /// An app wants to be told something; where its user has not decided yet, they are asked first.
  func items(_ query: ItemsQuery, _ running: RunningView) -> AppAnswer {
    guard query.isReasonable else {
      return .reply(.failure(ControlFailure("there is no such page", .EINVAL)))
    }
    let service = query.kind.service
    return withConsent(to: service, running) { [self] in
      let call = self.call(of: running.number)
      let task = ReadingTask(
        query, home: running.launch.home, allMusic: running.launch.privacy.hasAllMusic)
      perform(.read(task), running, call)
      return .waits(for: .view(running.number)) { [self] in
        guard let answer = call.answer else { return nil }
        // What was decided while it was read counts.
        return has(service, running) ? answer : .failure(refusal(service, running))
      }
    }
  }

  /// Does what takes consent: at once if the app has it, and when its user has given it if they are to be
  /// asked first.
  func withConsent(
    to service: PrivacyService, _ running: RunningView, _ act: @escaping @Sendable () -> AppAnswer
  ) -> AppAnswer {
    let judged = { @Sendable [self] in
      has(service, running) ? act() : .reply(.failure(refusal(service, running)))
    }
    if has(service, running) { return judged() }
    switch request(service, running) {
    case .reply(.consents): return .reply(.failure(refusal(service, running)))
    case .reply(let other): return .reply(other)
    case .waits(let topic, let decided):
      // Both steps are done for this view.
      let steps = ActAfterConsent(decided, judged)
      return .waits(for: topic) { steps.answer() }
    }
  }

  /// Has something done by the process that has started the app.
  func perform(_ question: AgentTask.Question, _ running: RunningView, _ call: PromptCall) {
    let app = AgentApp(running.launch.app)
    if readings.add(question, for: app, view: running.number, call) { watchTheTime() }
    poke(agentsOf: running.user)
  }

  /// Whether an app may now have what a service is about.
  func has(_ service: PrivacyService, _ running: RunningView) -> Bool {
    isAuthorized(running.launch, running.user, service)
  }

  func refusal(_ service: PrivacyService, _ running: RunningView) -> ControlFailure {
    let status = answers.status(running.launch.app, running.user, service)
    let reason =
      switch status.state {
      case .restricted:
        "an administrator does not allow the app to use what this is about"
          + (status.reason.map { " (\($0))" } ?? "")
      case .denied: "the app's user does not allow it to use what this is about"
      case .notDetermined, .authorized: "the app's user has not allowed it to use what this is about"
      }
    return ControlFailure("\(service.rawValue): \(reason)", .EPERM)
  }

  // MARK: The process that reads

  /// Gives the process that has started an app what it is to read next, when there is something; from its
  /// first such request on until it hangs up, it is the one that reads for this app.
  func nextReading(adds: Bool, _ call: ControlCall) -> ControlAnswer {
    guard let process = call.process, let running = views.one(waitedForBy: call.caller, process) else {
      return .refusal("this process has started no app", .ESRCH)
    }
    let (view, user) = (running.number, running.user)
    let hasEnded = hasEnded(view)
    let reader = call.connection.agent(of: view, isReader: true) { [readings] in
      guard let number = readings.join(view: view) else { return nil }
      return AgentPresence(number, view: view, isReader: true, hasEnded: hasEnded) { [weak self] in
        self?.readings.leave($0, view: view)
        self?.poke(agentsOf: user)
      }
    }
    // It may be its own connection of before, which nobody has found to be closed yet.
    guard let reader else { return .reply(.failure(.crowded)) }
    // Whoever waits keeps nothing of a view that has ended.
    return .waits { [weak self, weak running, number = reader.number] in
      guard let self, let running, !hasEnded() else { return .failure(Self.appHasEnded) }
      return next(for: number, running, adds: adds).map(ControlReply.task)
    }
  }

  private func next(for reader: UInt64, _ running: RunningView, adds: Bool) -> AgentTask? {
    while let task = readings.next(for: reader, view: running.number) {
      guard case .add = task.question, let refusal = refusalOfAdding(running, adds: adds) else { return task }
      readings.answered(task.number, by: reader)?.give(.failure(refusal))
    }
    return nil
  }

  /// Tells an app what was read for it.
  func take(_ answer: AgentAnswer, toReading number: Int64, from reader: AgentPresence) -> ControlReply {
    if answer == .copied { return confirm(number, by: reader) }
    guard let call = readings.answered(number, by: reader.number) else { return .failure(Self.tooLate) }
    switch answer {
    case .items(let page): call.give(.items(page))
    case .unreadable(let reason): call.give(.failure(ControlFailure(reason.sanitized, .EIO)))
    case .outdated: call.give(.failure(ControlFailure(Self.outdated, .ESTALE)))
    case .added: call.give(.done)
    case .notAdded(let reason, let errno):
      call.give(.failure(ControlFailure(reason.sanitized, Errno(errno))))
    case .allow, .deny, .dismiss, .chosen, .copied: call.give(.failure(ControlFailure(Self.noReader, .EIO)))
    }
    return .done
  }

  static let noReader =
    "the command that has started the app does not read for it; start the app again with this version"

  static let tooLate = ControlFailure("nobody waits for this answer any more", .ESTALE)

  private static let tooLong = "it took too long"

  private static let outdated = "what was listed before is not known any more; begin at the beginning"

  // MARK: The time

  /// Fails what waits for too long, for as long as something waits.
  private func watchTheTime() {
    let thread = try? JoinableThread(name: "readings") { [weak self] in
      while let milliseconds = self?.failLate() {
        // Nothing but this time is waited for.
        pauseThread(milliseconds: min(milliseconds, Self.longestNap))
      }
    }
    if let thread { thread.detach() } else { readings.isUnwatched() }
  }

  private static let longestNap = 10_000

  private func failLate() -> Int? {
    let (late, milliseconds) = readings.expire()
    for one in late {
      one.call.give(.failure(ControlFailure(one.hadReader ? Self.tooLong : Self.noReader, .EIO)))
    }
    return milliseconds
  }
}

/// What an app waits for whose user is asked before anything is done for it.
private final class ActAfterConsent: Sendable {
  private let decided: @Sendable () -> ControlReply?
  /// Judges the answer, whatever it was, and acts.
  private let act: @Sendable () -> AppAnswer
  private let outcome = Mutex<(@Sendable () -> ControlReply?)?>(nil)

  init(_ decided: @escaping @Sendable () -> ControlReply?, _ act: @escaping @Sendable () -> AppAnswer) {
    self.decided = decided
    self.act = act
  }

  /// Only the thread of the apps' sockets asks.
  func answer() -> ControlReply? {
    if let outcome = outcome.withLock({ $0 }) { return outcome() }
    guard let reply = decided() else { return nil }
    guard case .consents = reply else { return reply }
    switch act() {
    case .reply(let reply): return reply
    case .waits(_, let until):
      outcome.withLock { $0 = until }
      return until()
    }
  }
}
