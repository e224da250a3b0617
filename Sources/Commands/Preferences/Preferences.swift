// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import PropertyLists

/// The directory in which preferences are: a user's, or those of an app.
///
/// Each domain is a property list there. Apps write to their own directories, so nothing that is in one is
/// trusted: no link is followed, and what is no property list stays as it is.
struct Preferences: ~Copyable {
  /// Open for reading.
  private let directory: OwnedFD
  /// For messages.
  private let path: String

  /// How long the list of a domain may be in bytes.
  private static let sizeLimit = 16 << 20
  /// How many bytes its values may take when each is written out wherever it stands.
  static let writtenLimit = 64 << 20
  private static let valueLimit = 1_000_000
  static let isMuch = "its values take more than \(writtenLimit >> 20) MiB when they are written out"
  private static let place = "Library/Preferences"

  /// Those of a user, or of an app; nil where there are none, unless they are to be written.
  ///
  /// The preferences of an app are in its container: inside it always, and outside for a domain of its name.
  static func find(
    _ domain: PreferenceDomain?, of user: UInt32?, store: String?, writing: Bool = false, _ context: Context
  ) throws -> Preferences? {
    let access = try AppsAccess.find(store, context)
    if let app = access as? AppAccess { return try find(in: "\(access.root)/\(app.own.data)", writing) }
    guard !(access is DirectAccess) else {
      throw CommandFailure(.notMounted, "the store is not mounted; preferences are used through its mount")
    }
    let home = "\(access.root)/\(try access.home(of: user ?? context.uid))"
    if let identifier = domain.flatMap({ AppIdentifier($0.name) }) {
      let container = "\(home)/\(ContainerLayout.path(of: identifier, .data))/\(ContainerLayout.dataName)"
      if let own = try find(in: container, false) { return own }
    }
    return try find(in: home, writing)
  }

  private static func find(in home: String, _ writing: Bool) throws -> Preferences? {
    let path = "\(home)/\(place)"
    do throws(Errno) {
      let opened = try home.withName { (home) throws(Errno) in
        try FD.cwd.openFollowing(home, O_RDONLY | O_DIRECTORY)
      }
      guard writing else {
        return Preferences(directory: try opened.fd.openDirectory(at: place), path: path)
      }
      let library = try opened.fd.openDirectory("Library", makingWith: 0o700)
      return Preferences(
        directory: try library.fd.openDirectory("Preferences", makingWith: 0o700), path: path)
    } catch {
      if error == .ENOENT, !writing { return nil }
      throw CommandFailure(error, "can't open \(path.sanitized): \(error.message)")
    }
  }

  /// The domains that have a list here, in their order.
  func domains() throws(Errno) -> [PreferenceDomain] {
    try directory.fd.entries().compactMap {
      PreferenceDomain(fileName: String(decoding: $0.name, as: UTF8.self))
    }
    .inOrder { $0.name.precedes($1.name) }
  }

  /// What the list of a domain says; nil if there is none.
  func read(_ domain: PreferenceDomain) throws(CommandFailure) -> PropertyList.Dictionary? {
    let path = "\(self.path)/\(domain.fileName)".sanitized
    let bytes: [UInt8]
    do throws(Errno) {
      let file = try directory.fd.openToExamine(domain.fileName)
      guard try file.fd.status().isRegular else { throw .EINVAL }
      bytes = try file.fd.readToEnd(limit: Self.sizeLimit + 1)
    } catch {
      if error == .ENOENT { return nil }
      let reason = error == .ELOOP || error == .EINVAL ? "it is no file" : error.message
      throw CommandFailure(error, "can't read \(path): \(reason)")
    }
    let list: PropertyList?
    var reason = "it is no dictionary"
    do throws(PropertyListError) {
      guard bytes.count <= Self.sizeLimit else { throw PropertyListError("too long") }
      let read = try PropertyList(reading: bytes, atMost: Self.valueLimit)
      guard !read.exceeds(Self.writtenLimit) else { throw PropertyListError(Self.isMuch) }
      list = read
    } catch {
      list = nil
      reason = error.description
    }
    guard let dictionary = list?.dictionary else {
      throw CommandFailure(
        .failed,
        "\(path) is not a property list that can be used: \(reason); it was left as it is, so mend it "
          + "or move it away")
    }
    return dictionary
  }

  /// Changes the list of a domain, all at once or not at all; `body` says what becomes of it, nil if it goes.
  ///
  /// Who else changes it by this command waits meanwhile.
  func change(
    _ domain: PreferenceDomain,
    _ body: (PropertyList.Dictionary?) throws -> PropertyList.Dictionary?
  ) throws {
    // It ends with the descriptor. Where locks are not to be had, the last one wins.
    _ = flock(directory.fd.raw, LOCK_EX)
    let old = try read(domain)
    let path = "\(self.path)/\(domain.fileName)".sanitized
    let new: [UInt8]?
    do {
      new = try body(old).map { try PropertyList.dictionary($0).binary() }
    } catch let error as PropertyListError {
      throw CommandFailure(.failed, "\(path): the list can't be written: \(error.description)")
    }
    if let new, new.count > Self.sizeLimit {
      throw CommandFailure(.failed, "\(path): the list would become longer than \(Self.sizeLimit >> 20) MiB")
    }
    let name = domain.fileName
    do throws(Errno) {
      guard let new else {
        return try name.withName { (name) throws(Errno) in try directory.fd.remove(name, directory: false) }
      }
      let mode = (try? directory.fd.status(of: name))?.permissions ?? 0o600
      try directory.fd.replaceContents(of: name, with: new, mode: mode & 0o666)
    } catch {
      throw CommandFailure(error, "can't write \(path), which stays as it was: \(error.message)")
    }
  }
}
