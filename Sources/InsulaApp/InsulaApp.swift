// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

private import CInsula
private import Glibc

/// What a Swift program can ask Insula while it runs as an app.
///
/// A thin layer over `insula.h`, which says more.
public struct InsulaApp: ~Copyable {
  /// Why something could not be had.
  public struct Failure: Error, CustomStringConvertible {
    /// Corresponds to `errno`.
    public let code: Int32
    /// What has gone wrong, in English.
    public let description: String
  }

  /// This app, as Insula knows it; paths are absolute.
  public struct Information: Sendable {
    /// `CFBundleIdentifier`.
    public let identifier: String
    /// `CFBundleName`.
    public let name: String
    /// `CFBundleShortVersionString`, or the build where there is none.
    public let version: String
    /// `CFBundleVersion`.
    public let build: String
    /// Who has signed it.
    public let team: String
    /// Where the whole tree is.
    public let root: String
    /// Its bundle.
    public let bundle: String
    /// What the app has as its home.
    public let home: String
    /// The home of its user, of which the app sees only what it may use.
    public let userHome: String
    /// The groups to which it is entitled.
    public let groups: [String]
    /// The iCloud containers to which it is entitled.
    public let clouds: [String]
    /// For whom it runs.
    public let user: UInt32
  }

  /// Something that the user has granted to the app.
  public struct Grant: Sendable {
    /// Where it is now; it may be missing at the moment.
    public let path: String
    /// Whether the app may change it.
    public let isWritable: Bool
    /// Whether it is a folder, with all that is in it.
    public let isDirectory: Bool
  }

  /// All that is granted, and what that state is known by.
  public struct Grants: Sendable {
    /// In the order in which they were granted.
    public let all: [Grant]
    /// Another one after every change.
    public let version: String
  }

  private let handle: OpaquePointer

  /// Nil if this program does not run as an app.
  public init?() {
    guard let handle = insula_open() else { return nil }
    self.handle = handle
  }

  deinit { insula_close(handle) }

  /// What Insula knows about this app.
  public func information() throws(Failure) -> Information {
    guard let own = insula_info(handle)?.pointee else { throw failure() }
    return Information(
      identifier: Self.text(own.identifier), name: Self.text(own.name), version: Self.text(own.version),
      build: Self.text(own.build), team: Self.text(own.team), root: Self.text(own.root),
      bundle: Self.text(own.bundle), home: Self.text(own.home), userHome: Self.text(own.user_home),
      groups: Self.list(own.groups), clouds: Self.list(own.clouds), user: own.user)
  }

  /// The absolute path of one of the app's directories, by its word: `documents`, `caches`, `group:GROUP`...
  public func path(_ place: String) throws(Failure) -> String {
    guard let path = insula_path(handle, place) else { throw failure() }
    defer { free(path) }
    return String(cString: path)
  }

  /// What the user has granted to the app.
  public func grants() throws(Failure) -> Grants {
    var list: UnsafeMutablePointer<insula_grant>?
    var count = 0
    var version: UnsafeMutablePointer<CChar>?
    guard insula_grants(handle, &list, &count, &version) == 0 else { throw failure() }
    defer {
      insula_free_grants(list, count)
      free(version)
    }
    let all = UnsafeBufferPointer(start: list, count: list == nil ? 0 : count).map {
      Grant(path: Self.text($0.path), isWritable: $0.is_writable != 0, isDirectory: $0.is_directory != 0)
    }
    return Grants(all: all, version: Self.text(version))
  }

  /// Waits until the app is granted something else than at that version.
  public func awaitGrants(otherThan version: String) throws(Failure) {
    guard insula_await_grants(handle, version) == 0 else { throw failure() }
  }

  /// Waits until the user opens files with the app, and gives their absolute paths; none if they have opened
  /// the app itself.
  ///
  /// An app that waits, or waits again within five seconds, is told and not started once more.
  public func awaitOpened() throws(Failure) -> [String] {
    var list: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    var count = 0
    guard insula_await_opened(handle, &list, &count) == 0 else { throw failure() }
    defer { insula_free_opened(list, count) }
    return UnsafeBufferPointer(start: list, count: list == nil ? 0 : count).map { Self.text($0) }
  }

  /// What a user has said about an app and what is private.
  public enum Consent: Int32, Sendable {
    case notDetermined, restricted, denied, authorized
  }

  /// What was decided about a service, by its word: `photos`, `media-library`...
  public func consentStatus(_ service: String) throws(Failure) -> Consent {
    guard let state = Consent(rawValue: insula_consent_status(handle, service)) else { throw failure() }
    return state
  }

  /// Asks the user, if nothing was decided yet, and waits for the answer.
  public func requestConsent(_ service: String) throws(Failure) -> Consent {
    guard let state = Consent(rawValue: insula_request_consent(handle, service)) else { throw failure() }
    return state
  }

  /// What a user is to choose.
  public enum Panel: Sendable {
    case file, folder
    /// A file that may not be there yet, with the name that it has at first.
    case save(name: String)
  }

  /// Has the user choose a file or folder, which is granted to the app from then on; gives its path.
  ///
  /// `types` are uniform type identifiers, or extensions with a dot; none for all.
  public func openPanel(_ panel: Panel, types: [String] = []) throws(Failure) -> String {
    let list = types.joined(separator: ",")
    let path =
      switch panel {
      case .file: insula_open_panel(handle, insula_panel_file, nil, list)
      case .folder: insula_open_panel(handle, insula_panel_folder, nil, list)
      case .save(let name): insula_open_panel(handle, insula_panel_save, name, list)
      }
    guard let path else { throw failure() }
    defer { free(path) }
    return String(cString: path)
  }

  /// Some of what is private to a user and no file.
  public struct Items: Sendable {
    /// The text of a JSON array.
    public let json: String
    /// Where it goes on; nil at the end.
    public let next: String?
  }

  /// Some of the user's `songs`, `contacts`, `events` or `reminders`; who has not decided yet is asked first.
  public func items(_ kind: String, after: String? = nil) throws(Failure) -> Items {
    var next: UnsafeMutablePointer<CChar>?
    guard let items = insula_items(handle, kind, after, &next) else { throw failure() }
    defer {
      free(items)
      free(next)
    }
    return Items(json: String(cString: items), next: next.map { String(cString: $0) })
  }

  /// Puts a copy of a photo or video of the app's own into the user's library, of which the app sees nothing;
  /// who has not decided yet is asked first.
  public func addPhoto(_ path: String) throws(Failure) {
    guard insula_add_photo(handle, path) == 0 else { throw failure() }
  }

  /// Sends one request, a JSON object, and gives the reply.
  public func call(_ request: String) throws(Failure) -> String {
    guard let reply = insula_call(handle, request) else { throw failure() }
    defer { free(reply) }
    return String(cString: reply)
  }

  private func failure() -> Failure {
    let code = errno
    return Failure(code: code, description: String(cString: insula_error(handle)))
  }

  private static func text(_ string: UnsafePointer<CChar>?) -> String {
    string.map { String(cString: $0) } ?? ""
  }

  private static func text(_ string: UnsafeMutablePointer<CChar>?) -> String {
    string.map { String(cString: $0) } ?? ""
  }

  private static func list(_ strings: UnsafePointer<UnsafePointer<CChar>?>?) -> [String] {
    var texts: [String] = []
    var position = strings
    while let item = position?.pointee {
      texts.append(String(cString: item))
      position = position?.advanced(by: 1)
    }
    return texts
  }
}
