// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Daemon
internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy
internal import Store

/// Asks the daemon from inside an app, through the app's socket: about the app, and nothing else.
struct AppAccess: StoreAccess {
  private let client: ControlClient
  let own: OwnApp
  let context: Context

  init(_ socket: String, _ named: String?, _ context: Context) throws(CommandFailure) {
    self.context = context
    guard named == nil else { throw Self.refusal("name a store") }
    let slash = socket.utf8.lastIndex(of: UInt8(ascii: "/"))
    let directory = slash.map { $0 == socket.startIndex ? "/" : String(socket[..<$0]) } ?? "."
    let name = slash.map { String(socket[socket.utf8.index(after: $0)...]) } ?? socket
    do throws(Errno) {
      let opened = try FD.cwd.openFollowing(directory, O_RDONLY | O_DIRECTORY)
      client = try ControlClient(in: opened.fd, name: name)
    } catch {
      throw CommandFailure(
        .notMounted,
        "can't reach Insula through \(socket), which \(AppSocket.variable) names: \(error.message)")
    }
    own = try Self.ask(client, .own) { if case .own(let app) = $0 { app } else { nil } }
  }

  var root: String { own.root }
  /// An app knows no other path of it.
  var storePath: String { own.root }

  // MARK: What there is

  func apps(for user: UInt32?) throws -> [AppDescription] {
    guard let identifier = AppIdentifier(own.identifier) else { return [] }
    return [try app(identifier, for: user)]
  }

  func app(_ identifier: AppIdentifier, for user: UInt32?) throws -> AppDescription {
    try ask(.app(identifier, user: user)) { if case .apps(let apps) = $0 { apps.first } else { nil } }
  }

  func path(of place: AppPlace, _ identifier: AppIdentifier, for user: UInt32?) throws -> String {
    try ask(.path(of: place, identifier, user: user)) { if case .path(let path) = $0 { path } else { nil } }
  }

  func home(of user: UInt32) throws -> String {
    guard user == own.user else { throw Self.refusal("ask about other users") }
    return own.home
  }

  func grants(_ identifier: AppIdentifier?, of user: UInt32?) throws -> [GrantedPlace] {
    try GrantPage.all { after in try ask(.grants(identifier, user: user, after: after)) { $0.grantPage } }
      .map { place in
        var place = place
        let isText = !place.path.unicodeScalars.contains("\u{fffd}")
        let status = try? FD.cwd.openFollowing("\(root)/\(place.path)", pathOnly)
        place.isMissing = isText && status == nil
        return place
      }
  }

  /// Returns when the app is granted something else than it is now.
  func awaitGrantChange() throws {
    let now = try ask(.grants(nil, user: nil, after: 0)) { $0.grantPage }
    guard let version = now.version else {
      throw CommandFailure(.failed, "this daemon does not tell of changes")
    }
    _ = try ask(.grantChange(from: version)) { $0.grantPage }
  }

  /// How much is free, and could be.
  func space() throws -> AvailableSpace {
    try ask(.space) { if case .space(let space) = $0 { space } else { nil } }
  }

  // MARK: What a person is asked

  func consents(_ request: ConsentRequest) throws -> [ConsentStatus] {
    guard case .list = request else { throw Self.refusal("decide about consent") }
    return try ask(.consent(request)) { $0.consents }
  }

  /// Waits until a person has decided, unless that was done; still undecided if none could be asked.
  func requestConsent(_ service: PrivacyService) throws -> ConsentStatus {
    let reply = try reply(to: .requestConsent(service))
    if case .failure(let failure) = reply, failure.cause == .errno(.EPERM) {
      let now = status(of: service, among: try consents(.list(app: nil, user: nil)))
      // Told only where the state does not say it.
      if now.state == .notDetermined { context.console.note(failure.message) }
      return now
    }
    return try reply.orFailure { $0.consents?.first }
  }

  /// Waits until a person has chosen something, which the app is granted then; nil if they have not.
  func openPanel(_ request: PanelRequest) throws -> [GrantedPlace]? {
    let reply = try reply(to: .openPanel(request))
    if case .failure(let failure) = reply, failure.cause == .errno(Errno(ECANCELED)) { return nil }
    return try reply.orFailure { $0.grantPage }.places
  }

  /// Waits until the user opens something with the app; absolute paths.
  func awaitOpened() throws -> [String] {
    try ask(.awaitOpened) { if case .opened(let paths) = $0 { paths } else { nil } }.map { "\(root)/\($0)" }
  }

  // MARK: What is read for it

  /// All that the app may be told of that kind.
  func items(_ kind: PrivateItems) throws -> (items: [JSONValue], unread: Int) {
    for _ in 0..<Self.mostBeginnings { if let all = try itemsOfOneListing(kind) { return all } }
    throw CommandFailure(.failed, "\(kind.rawValue): it could not be read to its end; try again")
  }

  /// A listing ends before its end when another daemon takes over, or others want too many.
  private static let mostBeginnings = 3

  private func itemsOfOneListing(_ kind: PrivateItems) throws -> (items: [JSONValue], unread: Int)? {
    var (items, unread, next) = ([JSONValue](), 0, String?.none)
    repeat {
      let reply = try consented(to: kind.service, .items(ItemsQuery(kind, after: next)))
      if next != nil, case .failure(let failure) = reply, failure.cause == .errno(.ESTALE) { return nil }
      let page = try reply.orFailure { if case .items(let page) = $0 { page } else { nil } }
      items += page.items
      unread += page.unread ?? 0
      next = page.next
    } while next != nil
    return (items, unread)
  }

  // MARK: What is added for it

  /// Puts a copy of one of the app's own files into its user's photo library; the path has no links in it.
  func addPhoto(_ path: String) throws {
    let data = "\(root)/\(own.data)/"
    guard path.hasPrefix(data) else {
      throw CommandFailure(
        .failed, "an app can add only photos that are in its home; copy the file to there first")
    }
    let photo = AddedPhoto(String(path.dropFirst(data.count)), token: UUIDText.random())
    let reply = try consented(to: .photosAdd, .addPhoto(photo))
    if case .failure(let failure) = reply { throw CommandFailure(failure) }
  }

  // MARK: The conversation

  /// The reply to what takes consent; where nobody has decided, that is the failure.
  private func consented(
    to service: PrivacyService, _ request: ControlRequest
  ) throws -> ControlReply {
    let reply = try reply(to: request)
    guard case .failure(let failure) = reply, failure.cause == .errno(.EPERM) else { return reply }
    let states = (try? consents(.list(app: nil, user: nil))) ?? []
    guard states.first(where: { $0.service == service })?.state == .notDetermined else { return reply }
    throw CommandFailure(.undecided, failure.message)
  }

  private func reply(to request: ControlRequest) throws(CommandFailure) -> ControlReply {
    try Self.reply(client, request)
  }

  private func ask<Answer>(_ request: ControlRequest, _ answer: (ControlReply) -> Answer?) throws -> Answer {
    try Self.ask(client, request, answer)
  }

  private static func ask<Answer>(
    _ client: ControlClient, _ request: ControlRequest, _ answer: (ControlReply) -> Answer?
  ) throws(CommandFailure) -> Answer {
    let reply = try reply(client, request)
    if case .failure(let failure) = reply { throw CommandFailure(failure) }
    guard let answer = answer(reply) else {
      throw CommandFailure(.failed, "the daemon sent a reply that this command can't understand")
    }
    return answer
  }

  private static func reply(
    _ client: ControlClient, _ request: ControlRequest
  ) throws(CommandFailure) -> ControlReply {
    do throws(Errno) {
      return try client.askAgain(request, milliseconds: -1).reply
    } catch {
      throw CommandFailure(.failed, "Insula does not answer this app: \(error.message)")
    }
  }

  fileprivate static func refusal(_ deed: String) -> CommandFailure {
    CommandFailure(.notPermitted, "an app can't \(deed); it can ask only about itself")
  }
}

// What only the tree's users do: commands that call for it are refused before they come to this.
extension AppAccess {
  func openTree(for user: UInt32?) throws -> OpenedTree {
    throw Self.refusal("work on containers")
  }

  func openedStore() throws -> Store { throw Self.refusal("look into the store") }
  func systemVersions() throws -> SystemVersions { throw Self.refusal("look into the store") }
  func trust() throws -> Trust { throw Self.refusal("look into the store") }

  func install(_ bundle: FD, named name: String, for domain: AppDomain) throws -> InstalledApp {
    throw Self.refusal("install apps")
  }

  func update(
    _ bundle: FD, named name: String, for domain: AppDomain, allowingDowngrade: Bool
  ) throws -> (before: InstalledApp, now: InstalledApp, left: [LeftBehind]) {
    throw Self.refusal("update apps")
  }

  func updateWhenClosed(
    _ bundle: FD, named name: String, for domain: AppDomain, allowingDowngrade: Bool
  ) throws -> UpdateOutcome {
    throw Self.refusal("update apps")
  }

  func cancelUpdate(of identifier: AppIdentifier, for domain: AppDomain) throws -> WaitingUpdate {
    throw Self.refusal("update apps")
  }

  func uninstall(
    _ identifier: AppIdentifier, of domain: AppDomain, keepingData: Bool
  ) throws -> (app: InstalledApp?, left: [LeftBehind]) {
    throw Self.refusal("remove apps")
  }

  func documents(for user: UInt32?) throws -> DocumentsPage { throw Self.refusal("see what other apps open") }
  func choose(_ identifier: AppIdentifier?, for type: String) throws { throw Self.refusal("choose apps") }
  func deliver(_ delivery: Delivery) throws -> String { throw Self.refusal("deliver files") }
  func replaceData(with newData: NewData) throws { throw Self.refusal("replace data") }
  func purge(_ request: PurgeRequest) throws -> PurgeReport { throw Self.refusal("purge data") }

  func removed(of user: UInt32?) throws -> RemovedReport { throw Self.refusal("see what was removed") }
  func restoreRemoved(_ number: Int64) throws -> RemovedReport { throw Self.refusal("restore data") }

  func assign(team: String, to root: [UInt8]) throws -> [UInt8]? { throw Self.refusal("assign teams") }
  func prepareRemoval(ofHome name: String, deletingRemoved: Bool) throws {
    throw Self.refusal("remove homes")
  }
  func forgetEjectedHome(_ name: String, from source: String?) throws {
    throw Self.refusal("forget homes")
  }
  func forget(_ former: FormerUser) throws -> [LeftBehind]? {
    throw Self.refusal("forget what users have decided")
  }

  func deleteRemoved(_ number: Int64?, of user: UInt32?) throws -> RemovedReport {
    throw Self.refusal("delete data")
  }

  func updateSystem(_ tree: FD, named name: String) throws -> SystemVersions {
    throw Self.refusal("replace the system domain")
  }

  func rollbackSystem() throws -> SystemVersions { throw Self.refusal("replace the system domain") }
  func perform(_ request: GrantRequest) throws -> [GrantedPlace] { throw Self.refusal("grant anything") }
  func log(_ query: LogQuery) throws -> LogPage { throw Self.refusal("read the log") }
  func storage(_ request: StorageRequest) throws -> StorageReport { throw Self.refusal("see what apps use") }
  func running(for user: UInt32?) throws -> [RunningApp] { throw Self.refusal("see what runs") }

  func end(_ identifier: AppIdentifier, of user: UInt32?, with signal: Int32?) throws {
    throw Self.refusal("end apps")
  }

  func runner() throws -> RunningDaemon { throw Self.refusal("run apps") }
}

extension ControlReply {
  fileprivate var grantPage: GrantPage? { if case .grants(let page) = self { page } else { nil } }
}
