// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Fuse
internal import LinuxIO
internal import Store

// How messages look as lines: one flat object, in which `ok` says whether something failed, and the fields
// that are there say what it is. They are the same in all versions.
extension ControlMessage: Codable {
  private enum Key: String, CodingKey {
    case ok, errno, message, failure, finding
    case progress, awaitsDescriptor
    case status, app, before, left, system, apps, path, grants, next, launch, running, requests, log, waiting,
      roots, version, consents, task, because, items, unread, purged, backup, storage, space,
      documents, opened, volumes, network, removed, team, formerRoot
    case own = "self"
  }

  private typealias Fields = KeyedDecodingContainer<Key>

  // MARK: Reading

  package init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    guard try fields.decode(Bool.self, forKey: .ok) else {
      self = .reply(.failure(try Self.failure(fields)))
      return
    }
    if fields.contains(.progress) {
      self = .progress(try fields.decode(InstallProgress.self, forKey: .progress))
    } else if fields.contains(.awaitsDescriptor) {
      self = .awaitsDescriptor
    } else {
      self = .reply(try Self.reply(fields))
    }
  }

  private static func reply(_ fields: Fields) throws -> ControlReply {
    func value<Value: Decodable>(_ key: Key) throws -> Value { try fields.decode(Value.self, forKey: key) }
    if fields.contains(.status) { return .status(try value(.status)) }
    if fields.contains(.system) { return .system(try value(.system)) }
    if fields.contains(.apps) { return .apps(try value(.apps)) }
    if fields.contains(.purged) { return .purged(try value(.purged)) }
    if fields.contains(.removed) { return .removed(try value(.removed)) }
    if fields.contains(.team) {
      return .assigned(
        team: try value(.team), formerRoot: try fields.decodeIfPresent([UInt8].self, forKey: .formerRoot))
    }
    if fields.contains(.storage) { return .storage(try value(.storage)) }
    if fields.contains(.space) { return .space(try value(.space)) }
    if fields.contains(.roots) { return .roots(try value(.roots)) }
    if fields.contains(.waiting) { return .waiting(try value(.waiting)) }
    if fields.contains(.path) { return .path(try value(.path)) }
    if fields.contains(.launch) { return .launch(try value(.launch)) }
    if fields.contains(.backup) { return .backup(try value(.backup)) }
    if fields.contains(.requests) { return .requests(try value(.requests)) }
    if fields.contains(.documents) { return .documents(try value(.documents)) }
    if fields.contains(.consents) { return .consents(try value(.consents)) }
    if fields.contains(.volumes) { return .volumes(try value(.volumes)) }
    if fields.contains(.network) { return .network(try value(.network)) }
    if fields.contains(.opened) { return .opened(try value(.opened)) }
    if fields.contains(.items) {
      return .items(
        ItemPage(
          try value(.items), next: try fields.decodeIfPresent(String.self, forKey: .next),
          unread: try fields.decodeIfPresent(Int.self, forKey: .unread)))
    }
    if fields.contains(.task) { return .task(try value(.task)) }
    if fields.contains(.because) { return .endedBecause(try value(.because)) }
    if fields.contains(.own) { return .own(try value(.own)) }
    if fields.contains(.log) { return .log(try value(.log)) }
    if fields.contains(.running) { return .running(try value(.running)) }
    if fields.contains(.grants) {
      let next = try fields.decodeIfPresent(Int64.self, forKey: .next)
      let version = try fields.decodeIfPresent(String.self, forKey: .version)
      return .grants(GrantPage(places: try value(.grants), next: next, version: version))
    }
    let left = try fields.decodeIfPresent([LeftBehind].self, forKey: .left)
    let before = try fields.decodeIfPresent(InstalledApp.self, forKey: .before)
    guard let app = try fields.decodeIfPresent(InstalledApp.self, forKey: .app) else {
      return before == nil && left == nil ? .done : .uninstalled(before, left: left ?? [])
    }
    guard let before else { return .installed(app) }
    return .updated(before: before, now: app, left: left ?? [])
  }

  private static func failure(_ fields: Fields) throws -> ControlFailure {
    let message = try fields.decodeIfPresent(String.self, forKey: .message)
    return ControlFailure(message ?? "failed for an unknown reason", try cause(fields))
  }

  private static func cause(_ fields: Fields) throws -> ControlFailure.Cause {
    let finding = try fields.decodeIfPresent(String.self, forKey: .finding)
    if let kind = finding.flatMap({ Bundles.Finding.Kind(rawValue: $0) }) { return .finding(kind) }
    if let running = try fields.decodeIfPresent([RunningApp].self, forKey: .running) {
      return .appsRun(running)
    }
    let word = try fields.decodeIfPresent(String.self, forKey: .failure)
    if word == crowded { return .crowded }
    if word == inUse { return .inUse }
    if let kind = word.flatMap({ StoreError.Kind(rawValue: $0) }) { return .store(kind) }
    return try fields.decodeIfPresent(Int32.self, forKey: .errno).map { .errno(Errno($0)) } ?? .unspecified
  }

  /// Beside the words for errors of a store.
  private static let crowded = "crowded"
  private static let inUse = "in-use"

  // MARK: Writing

  package func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    switch self {
    case .reply(.failure(let failure)):
      try fields.encode(false, forKey: .ok)
      try Self.encode(failure, to: &fields)
    case .reply(let reply):
      try fields.encode(true, forKey: .ok)
      try Self.encode(reply, to: &fields)
    case .progress(let progress):
      try fields.encode(true, forKey: .ok)
      try fields.encode(progress, forKey: .progress)
    case .awaitsDescriptor:
      try fields.encode(true, forKey: .ok)
      try fields.encode(true, forKey: .awaitsDescriptor)
    }
  }

  private static func encode(
    _ reply: ControlReply, to fields: inout KeyedEncodingContainer<Key>
  ) throws {
    switch reply {
    case .done, .failure: break
    case .status(let status): try fields.encode(status, forKey: .status)
    case .installed(let app): try fields.encode(app, forKey: .app)
    case .updated(let before, let now, let left):
      try fields.encode(before, forKey: .before)
      try fields.encode(now, forKey: .app)
      try fields.encode(left, forKey: .left)
    case .waiting(let update): try fields.encode(update, forKey: .waiting)
    case .uninstalled(let app, let left):
      try fields.encodeIfPresent(app, forKey: .before)
      try fields.encode(left, forKey: .left)
    case .system(let versions): try fields.encode(versions, forKey: .system)
    case .purged(let report): try fields.encode(report, forKey: .purged)
    case .removed(let report): try fields.encode(report, forKey: .removed)
    case .assigned(let team, let formerRoot):
      try fields.encode(team, forKey: .team)
      try fields.encodeIfPresent(formerRoot, forKey: .formerRoot)
    case .storage(let report): try fields.encode(report, forKey: .storage)
    case .space(let space): try fields.encode(space, forKey: .space)
    case .apps(let apps): try fields.encode(apps, forKey: .apps)
    case .path(let path): try fields.encode(path, forKey: .path)
    case .grants(let page):
      try fields.encode(page.places, forKey: .grants)
      try fields.encodeIfPresent(page.next, forKey: .next)
      try fields.encodeIfPresent(page.version, forKey: .version)
    case .launch(let plan): try fields.encode(plan, forKey: .launch)
    case .backup(let plan): try fields.encode(plan, forKey: .backup)
    case .running(let apps): try fields.encode(apps, forKey: .running)
    case .requests(let report): try fields.encode(report, forKey: .requests)
    case .roots(let roots): try fields.encode(roots, forKey: .roots)
    case .log(let page): try fields.encode(page, forKey: .log)
    case .own(let app): try fields.encode(app, forKey: .own)
    case .documents(let page): try fields.encode(page, forKey: .documents)
    case .consents(let consents): try fields.encode(consents, forKey: .consents)
    case .items(let page):
      try fields.encode(page.items, forKey: .items)
      try fields.encodeIfPresent(page.next, forKey: .next)
      try fields.encodeIfPresent(page.unread, forKey: .unread)
    case .volumes(let volumes): try fields.encode(volumes, forKey: .volumes)
    case .network(let network): try fields.encode(network, forKey: .network)
    case .opened(let paths): try fields.encode(paths, forKey: .opened)
    case .task(let task): try fields.encode(task, forKey: .task)
    case .endedBecause(let reason): try fields.encode(reason, forKey: .because)
    }
  }

  private static func encode(
    _ failure: ControlFailure, to fields: inout KeyedEncodingContainer<Key>
  ) throws {
    try fields.encode(failure.message, forKey: .message)
    switch failure.cause {
    case .unspecified: break
    case .errno(let errno): try fields.encode(errno.code, forKey: .errno)
    case .store(let kind): try fields.encode(kind.rawValue, forKey: .failure)
    case .finding(let kind): try fields.encode(kind.rawValue, forKey: .finding)
    case .crowded:
      try fields.encode(Errno.EBUSY.code, forKey: .errno)
      try fields.encode(crowded, forKey: .failure)
    case .inUse:
      try fields.encode(Errno.EBUSY.code, forKey: .errno)
      try fields.encode(inUse, forKey: .failure)
    case .appsRun(let apps):
      try fields.encode(Errno.EBUSY.code, forKey: .errno)
      try fields.encode(apps, forKey: .running)
    }
  }
}
