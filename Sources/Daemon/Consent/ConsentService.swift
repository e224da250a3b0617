// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Fuse
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
package import Volume

/// Has people asked whether an app may use what is private, and sees to it that what they say holds: in the
/// registry, and in the views of all apps that run.
package final class ConsentService: ConsentKeeper {
  let store: Store
  let volume: Volume
  let views: RunningViews
  let grants: GrantService
  let answers: ConsentAnswers
  let prompts = Prompts { monotonicNanoseconds() }
  let readings = Readings { monotonicNanoseconds() }
  let registry: GrantService.RegistrySource
  private let isReadOnly: Bool
  private let log: @Sendable (LogEntry) -> Void
  /// One decision at a time reaches the registry.
  private let turn = Mutex(())
  /// One of each user brings views in line with that.
  let turns = UserTurns()
  /// Which looks after what administrators restrict while apps run.
  private let restrictions = RestrictionWatch()
  let listeners = ConsentListeners()

  init(
    _ store: Store, _ volume: Volume, _ views: RunningViews, _ grants: GrantService, isReadOnly: Bool,
    kept: KeptState? = nil, log: @escaping @Sendable (LogEntry) -> Void,
    registry: @escaping GrantService.RegistrySource
  ) {
    self.store = store
    self.volume = volume
    self.views = views
    self.grants = grants
    self.isReadOnly = isReadOnly
    self.log = log
    self.registry = registry
    answers = ConsentAnswers(ManagedConsent(in: store), kept: kept, registry)
    answers.load()
    volume.ask(self)
    views.whenEnded { [weak self] in self?.ended($0, of: $1) }
  }

  /// Another process has served before: its agents connect again, and are waited for as long.
  func expectAgents() {
    prompts.expectAgents(nanoseconds: UInt64(Self.agentsPatienceMilliseconds) * 1_000_000)
    let thread = try? JoinableThread(name: "agents") { [weak self] in
      // Nothing but this time is waited for.
      pauseThread(milliseconds: Self.agentsPatienceMilliseconds)
      guard let self else { return }
      refuse(prompts.expectNoMoreAgents(), Self.nobodyAsks, .EPERM)
    }
    if let thread { thread.detach() } else { _ = prompts.expectNoMoreAgents() }
  }

  private static let agentsPatienceMilliseconds = 10_000

  /// The services that an app may use.
  func authorized(_ launch: AppLaunch, for user: UInt32) -> Set<PrivacyService> {
    Set(launch.services.filter { isAuthorized(launch, user, $0) })
  }

  /// Whether an app may use a service: its user allows that, and the app has said why it wants to.
  func isAuthorized(_ launch: AppLaunch, _ user: UInt32, _ service: PrivacyService) -> Bool {
    launch.services.contains(service) && mayAsk(launch, user, service)
      && answers.state(launch.app, user, service) == .authorized
  }

  /// Whether an app has said why it asks, or is too old to have been told to.
  ///
  /// What it has said of all of something counts for a part of it, once all of it is allowed.
  func mayAsk(_ launch: AppLaunch, _ user: UInt32, _ service: PrivacyService) -> Bool {
    if launch.privacy.mayAsk(for: service) { return true }
    guard let whole = service.whole else { return false }
    return launch.privacy.mayAsk(for: whole) && answers.state(launch.app, user, whole) == .authorized
  }

  /// What an app that is about to run has of what is private, where it may use that.
  func places(of launch: AppLaunch, with authorized: Set<PrivacyService>) -> [ScopePlace] {
    launch.services.filter(\.isAboutFiles).flatMap { service in
      authorized.contains(service) ? launch.places(with: service) : launch.places(without: service)
    }
  }

  /// Makes those private places for which an app may ask, and which its user's home lacks.
  func makePlaces(for launch: AppLaunch, of user: UInt32, _ group: UInt32) {
    let services = launch.services.filter { $0.isInHome && $0.isAboutFiles }
    for place in services.flatMap(launch.places(without:)) {
      do throws(Errno) {
        try volume.makePrivatePlace(at: place.path, uid: user, gid: group)
      } catch {
        DaemonLog.write("can't make /\(place.text): \(error.message)")
      }
    }
  }

  /// An app runs from here on.
  func began() {
    restrictions.begin { [weak self] isNew in self?.applyRestrictions(isNew: isNew) ?? false }
  }

  /// An app runs from here on, whose view was made with what its user allowed it then; what was decided
  /// before the view was known here did not reach it.
  func began(_ launch: AppLaunch, for user: UInt32, with given: Set<PrivacyService>) {
    began()
    let changed = { [self] in given.symmetricDifference(authorized(launch, for: user)) }
    // Whoever decides from here on finds the view, so the others need not wait for their turn.
    guard !changed().isEmpty else { return }
    apply(changed().map { (launch.app, $0) }, user)
  }

  /// Apps have come or gone, and with them what was decided about them: it holds for apps that run, too.
  ///
  /// The result is what to say where an app may still be told what was found before.
  @discardableResult
  func reconcile() -> ControlFailure? {
    let running = changed()
    return running.isEmpty ? nil : bringInLine(running)
  }

  /// Reads what is decided by now, and gives the apps that run about which that is something else.
  private func changed() -> [RunningView] {
    let changed = turn.withLock { _ in
      answers.noteOwed()
      return answers.load()
    }
    if changed.isEmpty { return [] }
    // Whoever begins from here on asks for what counts now.
    return views.all(ended: true).filter { changed.contains(AppOfUser($0.launch.app.identifier, $0.user)) }
  }

  /// An administrator has assigned a team to another root: what its users have decided counts for apps under
  /// that one, and no more for those that run under another.
  ///
  /// `body` is done when it is so, before what is under way is waited for. The result is what to say where an
  /// app may still be told what was found before.
  @discardableResult
  func teamIsAssigned(_ views: [RunningView], _ body: () -> Void = {}) -> ControlFailure? {
    bringInLine(changed() + views, body)
  }

  /// The registry has forgotten what a user without a home had decided: nothing of it counts any more, also
  /// for apps that run still.
  ///
  /// The result is what to say where an app may still be told what was found before.
  @discardableResult
  func forget(_ user: UInt32) -> ControlFailure? {
    let changed = turn.withLock { _ in
      answers.dropOwed(of: user)
      return answers.load()
    }
    // What has gone of others meanwhile is taken over with it, and nobody finds that once more.
    return bringInLine(
      views.all(ended: true).filter {
        $0.user == user || changed.contains(AppOfUser($0.launch.app.identifier, $0.user))
      })
  }

  /// Records what could not be recorded before, if it can be now: before this process ends.
  func finish() { if !isReadOnly { turn.withLock { _ in answers.noteOwed() } } }

  // MARK: An app asks

  package func asks(_ access: PrivateAccess) -> Bool {
    let names = volume.treeNames
    guard let running = views.one(ofView: access.view),
      let service = running.launch.services.first(where: {
        running.launch.places(without: $0).contains { names.areOne($0.path, access.place) }
      })
    else { return false }
    guard mayAsk(running.launch, access.user, service) else {
      // It is never answered: the app is to come no further.
      guard let request = access.keep() else { return false }
      end(running, at: request, for: service)
      return true
    }
    switch answers.state(running.launch.app, access.user, service) {
    case .restricted: return false
    case .denied:
      // It has not learnt to live with a refusal, however often it is started.
      guard running.launch.privacy.asksWithoutText(for: service), let request = access.keep() else {
        return false
      }
      end(running, at: request, for: service)
      return true
    case .authorized:
      // Somebody has just said so.
      guard let request = access.keep() else { return false }
      request.serveAgain()
      return true
    case .notDetermined: break
    }
    return wait(for: service, in: running) {
      access.keep().map { PromptWaiter.request($0, view: access.view) }
    } == .waits
  }

  /// Adds someone who waits until a person has decided about a service.
  func wait(
    for service: PrivacyService, in running: RunningView, _ waiter: () -> PromptWaiter?
  ) -> Prompts.Addition {
    let launch = running.launch
    let key = PromptKey(launch.app, of: running.user, .service(service))
    let text = launch.privacy.texts[service].map { $0.sanitized.trimmed }
    let addition = add(key, running, .consent(service, text: text), waiter)
    guard addition == .waits else { return addition }
    poke(agentsOf: running.user)
    // Whoever has decided meanwhile may not have seen that somebody waits.
    let state = answers.state(launch.app, running.user, service)
    if state != .notDetermined, let prompt = prompts.take(key) { release(prompt, state, launch.app) }
    return .waits
  }

  /// Ends an app that asks without a word, at an access of its.
  private func end(_ running: RunningView, at request: PostponedRequest, for service: PrivacyService) {
    noteEnd(of: running, for: service)
    do throws(Errno) {
      try AppProcesses.endAll(of: request.caller.pid, for: running.user)
    } catch {
      request.refuse(.EPERM)
      DaemonLog.write("can't end \(running.launch.app.identifier), pid \(running.pid): \(error.message)")
    }
  }

  /// The same at a call through its socket, which has no answer then; why not, if that fails.
  func end(_ running: RunningView, for service: PrivacyService) -> ControlFailure? {
    noteEnd(of: running, for: service)
    do throws(Errno) {
      try AppProcesses.endAll(startedBy: running.pid, for: running.user)
      return nil
    } catch {
      DaemonLog.write("can't end \(running.launch.app.identifier), pid \(running.pid): \(error.message)")
      return ControlFailure(running.knownEnd.why ?? "the app was ended", .EPERM)
    }
  }

  /// Says why an app is about to be ended.
  private func noteEnd(of running: RunningView, for service: PrivacyService) {
    let app = running.launch.app
    let key = service.usageKeys.first ?? ""
    let sentence =
      "\(app.name.sanitized) was ended: its Info.plist has no \(key), which must say why it wants to "
      + service.use
    if running.note(why: sentence) {
      log(
        LogEntry(
          now: .consentMissing, user: running.user, app: app.identifier.text, pid: running.pid,
          detail: "\(service.rawValue): no \(key)"))
    }
  }

  // MARK: A person answers

  /// Decides for an app: nil forgets what was decided.
  ///
  /// What can't be noted counts all the same if it allows nothing, and is noted later; this fails then.
  func decide(
    _ decision: ConsentDecision?, _ app: InstalledApp, for user: UInt32, _ service: PrivacyService,
    by caller: UInt32?
  ) throws(ControlFailure) {
    guard !isReadOnly else { throw ControlFailure(.readOnly(path: store.path)) }
    let failure: StoreError?
    do throws(StoreError) {
      failure = try turn.withLock { (_) throws(StoreError) in
        answers.noteOwed(of: user)
        let failure = try answers.put(decision, app, user, service)
        log(
          LogEntry(
            now: decision.map { $0 == .allow ? .consentAllowed : .consentDenied } ?? .consentReset,
            user: user, app: app.identifier.text, by: caller, detail: service.rawValue))
        return failure
      }
      apply([(app, service)], user)
    } catch {
      throw ControlFailure(error)
    }
    if decision != nil, let prompt = prompts.take(PromptKey(app, of: user, .service(service))) {
      release(prompt, answers.state(app, user, service), app)
    }
    let unsettled = settle()
    if let failure {
      throw ControlFailure(
        "the app may not use \(service.title) in this mount any more, but that can't be recorded, so what "
          + "was decided before would count again after the next mount: \(failure); "
          + "then run this command again")
    }
    if let unsettled { throw unsettled }
  }

  /// Lets those go on who have waited for a decision.
  func release(_ prompt: Prompt, _ state: ConsentState, _ app: InstalledApp) {
    guard case .service(let service) = prompt.key.subject else { return }
    let status = answers.status(app, prompt.key.user, service)
    for waiter in prompt.waiters {
      switch waiter {
      case .request(let request, let view):
        if state == .authorized { request.serveAgain() } else { refuse(request, through: view, for: service) }
      case .call(let weak):
        if state == .denied, let running = weak.running, running.launch.privacy.asksWithoutText(for: service)
        {
          if let failure = end(running, for: service) { weak.call?.give(.failure(failure)) }
        } else {
          weak.call?.give(.consents([status]))
        }
      }
    }
  }

  /// A person has said no: an app from before the keys of Info.plist has not learnt to live with that.
  private func refuse(_ request: PostponedRequest, through view: UInt32, for service: PrivacyService) {
    guard let running = views.one(ofView: view), running.launch.privacy.asksWithoutText(for: service) else {
      return request.refuse(.EPERM)
    }
    end(running, at: request, for: service)
  }

  /// Refuses those who have waited for nothing, and leaves open what was.
  func refuse(_ prompts: [Prompt], _ why: String, _ errno: Errno) {
    for waiter in prompts.flatMap(\.waiters) {
      switch waiter {
      case .request(let request, _): request.refuse(.EPERM)
      case .call(let weak): weak.call?.give(.failure(ControlFailure(why, errno)))
      }
    }
  }
}

extension AgentApp {
  init(_ app: InstalledApp) {
    self.init(
      identifier: app.identifier.text, name: app.name.beginning(80).sanitized,
      team: app.team.beginning(80).sanitized)
  }
}

extension String {
  /// Without spaces at its ends.
  fileprivate var trimmed: String {
    let start = drop { $0 == " " }
    return String(start.reversed().drop { $0 == " " }.reversed())
  }
}
