// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
package import Policy
package import Store

/// What a command asks of a daemon.
///
/// Where a request is for a user, root may leave open which; for everyone else it is themselves.
package enum ControlRequest: Equatable, Sendable {
  /// Who are you, and what have you counted? Everyone may ask.
  case status
  /// Take the mount away and end; lazily: detach now, end when the last user has gone.
  case unmount(lazily: Bool)
  /// Put the installed program in place of the running one; whoever asks sees it end.
  case restart
  /// Change the apps, their data or the system domain. Everyone may ask; what they may have done is judged
  /// there.
  case change(AppRequest)
  /// Which apps are there? Everyone may ask about their own and the machine's. With `after`, in parts: what
  /// comes after so many.
  case apps(user: UInt32?, after: Int?)
  /// What is to be known of one?
  case app(AppIdentifier, user: UInt32?)
  /// Where does one have its things? What is missing of its containers is made.
  case path(of: AppPlace, AppIdentifier, user: UInt32?)
  /// What do apps say of types and documents, and what has the user chosen? In parts.
  case documents(user: UInt32?, after: Int)
  /// Let an app open the user's documents of a type; with none, any that does.
  case choose(AppIdentifier?, type: String, user: UInt32?)
  /// Let an app have something of the user's, or take it back.
  case grant(GrantRequest)
  /// What have apps been granted? In parts: what comes after the grant of that number.
  case grants(AppIdentifier?, user: UInt32?, after: Int64)
  /// Let one run: its view comes back, or is served over the connection that comes along.
  case run(AppIdentifier, user: UInt32?)
  /// Let me make a backup: a view of what is backed up comes back, or is served over the connection that
  /// comes along.
  case backup(BackupRequest)
  /// Mount a view of the caller's documents.
  case files(FilesRequest)
  /// Have an app of the caller's that runs open documents, by their paths below the root of the tree.
  case tell(AppIdentifier, ofOpened: [String])
  /// What has my user opened with me? For apps; the answer comes when there is something.
  case awaitOpened
  /// Which volumes are there, and: have another one, or one no more.
  case volume(VolumeRequest)
  /// What runs?
  case running(user: UInt32?)
  /// End one that runs; with a signal, send it that and don't wait.
  case end(AppIdentifier, user: UInt32?, signal: Int32?)
  /// The app that the caller has started, and has waited for, has ended.
  case ended(AppEnding)
  /// What was refused and done? In parts.
  case log(LogQuery)
  /// How much room do apps take?
  case storage(StorageRequest)
  /// How much may I store? For apps.
  case space
  /// Count what the caller requests of the filesystem from now on, and what all its children do.
  case trace
  /// What has been counted? Ends that.
  case traced
  /// Which roots does the store trust?
  case roots
  /// Take in a descriptor, which belongs to the next request of this connection.
  case pass
  /// Give the app that the caller has started a socket through which it can ask: its mount comes back, or
  /// who listens comes along.
  case endpoint
  /// Who am I? For apps, through their sockets.
  case own
  /// What am I granted, now that it is other than it was at that version? For apps; the answer comes when it
  /// is so.
  case grantChange(from: String)
  /// Which consent was given, or: give it, refuse it, forget what was decided.
  case consent(ConsentRequest)
  /// May I use this? For apps; the answer comes when a person has given it.
  case requestConsent(PrivacyService)
  /// Have my user choose a file for me. For apps; the answer comes when a person has given it.
  case openPanel(PanelRequest)
  /// Tell me of something private that is no file. For apps; the answer comes when it was read.
  case items(ItemsQuery)
  /// Put this among my user's photos. For apps; the answer comes when it is there.
  case addPhoto(AddedPhoto)
  /// What is a person to be asked next? For agents; the answer comes when there is something. Of all apps of
  /// the caller's, or of the one alone that the caller has started.
  case nextTask(ofStarted: Bool)
  /// What is to be read for the app that the caller has started, or added? The answer comes when there is
  /// something. Earlier versions only read.
  case nextReading(adds: Bool)
  /// What the person has answered, or what was read.
  case answerTask(Int64, AgentAnswer)
}

extension ControlRequest {
  /// Whether it is about the very process that asks.
  var isAboutCaller: Bool {
    switch self {
    case .run, .backup, .ended, .trace, .endpoint, .nextTask, .nextReading: true
    default: false
    }
  }

  /// Whether it comes to the same if it is carried out twice.
  var mayBeRepeated: Bool {
    switch self {
    case .status, .apps, .app, .path, .documents, .choose, .grants, .running, .log, .roots, .storage, .space:
      true
    // A view that was begun for the first one ends with the connection over which it was asked for.
    case .run, .backup, .trace: true
    // What comes second changes nothing.
    case .ended: true
    // The last socket that it is given is the app's.
    case .endpoint, .own, .grantChange: true
    // It takes what was not taken by then.
    case .awaitOpened, .volume(.list): true
    // Whoever asks twice waits for the same answer.
    case .requestConsent, .nextTask, .nextReading: true
    // It is read once more.
    case .items: true
    // What has a token is added once.
    case .addPhoto(let photo): photo.token != nil
    case .consent(.list): true
    case .consent, .openPanel, .answerTask: false
    case .unmount, .restart, .change, .grant, .end, .traced, .pass, .files, .tell, .volume: false
    }
  }
}

// A line is one flat object: the verb, and beside it what belongs to that verb; the same in all versions.
// Anyone may have written it, so what lacks something or makes no sense ends here.
extension ControlRequest: Codable {
  private enum Verb: String, Codable {
    case status, unmount, restart, order, apps, app, path, grant, grants, run, backup, running, end, ended,
      log, trace, traced, roots, pass, endpoint, consent, items, storage, space, documents, choose, files,
      volume
    case own = "self"
    case grantChange = "grant-change"
    case requestConsent = "request-consent"
    case openPanel = "open-panel"
    case nextTask = "next-task"
    case nextReading = "next-reading"
    case addPhoto = "add-photo"
    case answerTask = "answer-task"
    case tell = "tell-opened"
    case awaitOpened = "await-opened"
  }

  private enum Key: String, CodingKey {
    case verb, lazily, order, identifier, place, grant, after, user, signal, query, status, limit, version,
      consent, service, panel, started, number, answer, kind, file, token, adds, backup, storage, type, files,
      opened, volume
  }

  private typealias Fields = KeyedDecodingContainer<Key>

  package init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    let verb = try fields.decode(Verb.self, forKey: .verb)
    func user() throws -> UInt32? { try fields.decodeIfPresent(UInt32.self, forKey: .user) }
    self =
      switch verb {
      case .status: .status
      case .unmount: .unmount(lazily: try fields.decodeIfPresent(Bool.self, forKey: .lazily) ?? false)
      case .restart: .restart
      case .order: .change(try fields.decode(AppRequest.self, forKey: .order))
      case .apps: .apps(user: try user(), after: try fields.decodeIfPresent(Int.self, forKey: .after))
      case .app: .app(try Self.identifier(fields), user: try user())
      case .path: .path(of: try Self.place(fields), try Self.identifier(fields), user: try user())
      case .documents:
        .documents(user: try user(), after: try fields.decodeIfPresent(Int.self, forKey: .after) ?? 0)
      case .choose:
        .choose(
          try Self.identifierIfPresent(fields), type: try fields.decode(String.self, forKey: .type),
          user: try user())
      case .grant: .grant(try fields.decode(GrantRequest.self, forKey: .grant))
      case .grants:
        .grants(
          try Self.identifierIfPresent(fields), user: try user(),
          after: try fields.decodeIfPresent(Int64.self, forKey: .after) ?? 0)
      case .run: .run(try Self.identifier(fields), user: try user())
      case .backup: .backup(try fields.decode(BackupRequest.self, forKey: .backup))
      case .files: .files(try fields.decode(FilesRequest.self, forKey: .files))
      case .tell:
        .tell(try Self.identifier(fields), ofOpened: try fields.decode([String].self, forKey: .opened))
      case .awaitOpened: .awaitOpened
      case .volume: .volume(try fields.decode(VolumeRequest.self, forKey: .volume))
      case .running: .running(user: try user())
      case .end: .end(try Self.identifier(fields), user: try user(), signal: try Self.signal(fields))
      case .ended: .ended(try Self.ending(fields))
      case .log: .log(try fields.decode(LogQuery.self, forKey: .query))
      case .storage: .storage(try fields.decode(StorageRequest.self, forKey: .storage))
      case .space: .space
      case .trace: .trace
      case .traced: .traced
      case .roots: .roots
      case .pass: .pass
      case .endpoint: .endpoint
      case .own: .own
      case .grantChange: .grantChange(from: try fields.decode(String.self, forKey: .version))
      case .consent: .consent(try fields.decode(ConsentRequest.self, forKey: .consent))
      case .requestConsent: .requestConsent(try fields.decode(PrivacyService.self, forKey: .service))
      case .openPanel: .openPanel(try fields.decode(PanelRequest.self, forKey: .panel))
      case .nextTask: .nextTask(ofStarted: try fields.decodeIfPresent(Bool.self, forKey: .started) ?? false)
      case .nextReading:
        .nextReading(adds: try fields.decodeIfPresent(Bool.self, forKey: .adds) ?? false)
      case .items: .items(try Self.query(fields))
      case .addPhoto:
        .addPhoto(
          AddedPhoto(
            try fields.decode(String.self, forKey: .file),
            token: try fields.decodeIfPresent(String.self, forKey: .token)))
      case .answerTask:
        .answerTask(
          try fields.decode(Int64.self, forKey: .number), try fields.decode(AgentAnswer.self, forKey: .answer)
        )
      }
  }

  private static func identifier(_ fields: Fields) throws -> AppIdentifier {
    guard let identifier = try identifierIfPresent(fields) else {
      throw missing(AppIdentifier.self, .identifier)
    }
    return identifier
  }

  private static func identifierIfPresent(_ fields: Fields) throws -> AppIdentifier? {
    guard let text = try fields.decodeIfPresent(String.self, forKey: .identifier) else { return nil }
    guard let identifier = AppIdentifier(text) else { throw missing(AppIdentifier.self, .identifier) }
    return identifier
  }

  private static func place(_ fields: Fields) throws -> AppPlace {
    guard let place = AppPlace(try fields.decode(String.self, forKey: .place)) else {
      throw missing(AppPlace.self, .place)
    }
    return place
  }

  private static func signal(_ fields: Fields) throws -> Int32? {
    let signal = try fields.decodeIfPresent(Int32.self, forKey: .signal)
    guard signal.map({ (1...64).contains($0) }) ?? true else { throw missing(Int32.self, .signal) }
    return signal
  }

  /// A limit that is not known here is a later version's.
  private static func ending(_ fields: Fields) throws -> AppEnding {
    let status = try fields.decodeIfPresent(Int32.self, forKey: .status)
    guard status.map(AppEnding.statuses.contains) ?? true else { throw missing(Int32.self, .status) }
    let limit = try fields.decodeIfPresent(String.self, forKey: .limit)
    return AppEnding(status: status, limit: limit.flatMap(AppEnding.Limit.init))
  }

  private static func query(_ fields: Fields) throws -> ItemsQuery {
    ItemsQuery(
      try fields.decode(PrivateItems.self, forKey: .kind),
      after: try fields.decodeIfPresent(String.self, forKey: .after),
      limit: try fields.decodeIfPresent(Int.self, forKey: .limit))
  }

  /// What is there stands for nothing of that kind.
  private static func missing(_ type: any Any.Type, _ key: Key) -> DecodingError {
    .valueNotFound(type, .init(codingPath: [key], debugDescription: "there is no such \(key.rawValue)"))
  }

  package func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(verb, forKey: .verb)
    switch self {
    case .status, .restart, .trace, .traced, .roots, .pass, .endpoint, .own, .space, .awaitOpened: break
    case .volume(let request): try fields.encode(request, forKey: .volume)
    case .tell(let identifier, let paths):
      try fields.encode(identifier, forKey: .identifier)
      try fields.encode(paths, forKey: .opened)
    case .nextReading(let adds): try fields.encode(adds, forKey: .adds)
    case .addPhoto(let photo):
      try fields.encode(photo.file, forKey: .file)
      try fields.encodeIfPresent(photo.token, forKey: .token)
    case .items(let query):
      try fields.encode(query.kind, forKey: .kind)
      try fields.encodeIfPresent(query.after, forKey: .after)
      try fields.encodeIfPresent(query.limit, forKey: .limit)
    case .grantChange(let version): try fields.encode(version, forKey: .version)
    case .consent(let request): try fields.encode(request, forKey: .consent)
    case .requestConsent(let service): try fields.encode(service, forKey: .service)
    case .openPanel(let panel): try fields.encode(panel, forKey: .panel)
    case .nextTask(let ofStarted): try fields.encode(ofStarted, forKey: .started)
    case .answerTask(let number, let answer):
      try fields.encode(number, forKey: .number)
      try fields.encode(answer, forKey: .answer)
    case .unmount(let lazily): try fields.encode(lazily, forKey: .lazily)
    case .change(let request): try fields.encode(request, forKey: .order)
    case .grant(let request): try fields.encode(request, forKey: .grant)
    case .backup(let request): try fields.encode(request, forKey: .backup)
    case .files(let request): try fields.encode(request, forKey: .files)
    case .log(let query): try fields.encode(query, forKey: .query)
    case .storage(let request): try fields.encode(request, forKey: .storage)
    case .ended(let ending):
      try fields.encodeIfPresent(ending.status, forKey: .status)
      try fields.encodeIfPresent(ending.limit?.rawValue, forKey: .limit)
    case .running(let user): try fields.encodeIfPresent(user, forKey: .user)
    case .apps(let user, let after):
      try fields.encodeIfPresent(user, forKey: .user)
      try fields.encodeIfPresent(after, forKey: .after)
    case .app(let identifier, let user), .run(let identifier, let user):
      try fields.encode(identifier, forKey: .identifier)
      try fields.encodeIfPresent(user, forKey: .user)
    case .path(let place, let identifier, let user):
      try fields.encode(place.word, forKey: .place)
      try fields.encode(identifier, forKey: .identifier)
      try fields.encodeIfPresent(user, forKey: .user)
    case .grants(let identifier, let user, let after):
      try fields.encodeIfPresent(identifier, forKey: .identifier)
      try fields.encodeIfPresent(user, forKey: .user)
      try fields.encode(after, forKey: .after)
    case .documents(let user, let after):
      try fields.encodeIfPresent(user, forKey: .user)
      try fields.encode(after, forKey: .after)
    case .choose(let identifier, let type, let user):
      try fields.encodeIfPresent(identifier, forKey: .identifier)
      try fields.encode(type, forKey: .type)
      try fields.encodeIfPresent(user, forKey: .user)
    case .end(let identifier, let user, let signal):
      try fields.encode(identifier, forKey: .identifier)
      try fields.encodeIfPresent(user, forKey: .user)
      try fields.encodeIfPresent(signal, forKey: .signal)
    }
  }

  private var verb: Verb {
    switch self {
    case .status: .status
    case .unmount: .unmount
    case .restart: .restart
    case .change: .order
    case .apps: .apps
    case .app: .app
    case .path: .path
    case .documents: .documents
    case .choose: .choose
    case .grant: .grant
    case .grants: .grants
    case .run: .run
    case .backup: .backup
    case .files: .files
    case .tell: .tell
    case .awaitOpened: .awaitOpened
    case .volume: .volume
    case .running: .running
    case .end: .end
    case .ended: .ended
    case .log: .log
    case .storage: .storage
    case .space: .space
    case .trace: .trace
    case .traced: .traced
    case .roots: .roots
    case .pass: .pass
    case .endpoint: .endpoint
    case .own: .own
    case .grantChange: .grantChange
    case .consent: .consent
    case .requestConsent: .requestConsent
    case .openPanel: .openPanel
    case .nextTask: .nextTask
    case .answerTask: .answerTask
    case .nextReading: .nextReading
    case .items: .items
    case .addPhoto: .addPhoto
    }
  }
}
