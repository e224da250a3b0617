// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
package import Policy
internal import PropertyLists
package import Store
internal import Synchronization

/// What the machine's administrators restrict, whatever users say: a property list in the tree.
///
/// Its keys are services, or an asterisk for all; the value of each is true, for all apps, or an array of
/// their identifiers. A list that can't be read restricts everything: so does one with a text that is no
/// identifier, since nobody can say which app is meant.
package final class ManagedConsent: Sendable {
  /// Below the root of the tree, where only administrators put something.
  package static let path = "Library/Managed Preferences/org.insula.consent.plist"

  private enum Content: Equatable, Sendable {
    case nothing
    case unreadable(String)
    case rules([Rule])
  }

  private struct Rule: Equatable, Sendable {
    /// Nil for all.
    let service: PrivacyService?
    let identifiers: [AppIdentifier]?

    func restricts(_ identifier: AppIdentifier, _ asked: PrivacyService) -> Bool {
      (service ?? asked) == asked && identifiers?.contains { $0.isSame(as: identifier) } ?? true
    }
  }

  private struct Read: Sendable {
    let inode: UInt64
    let stamp: FileStamp
    let content: Content
  }

  private let store: Store
  private let say: @Sendable (String) -> Void
  private let last = Mutex<Read?>(nil)
  /// What ``hasChanged()`` has found.
  private let seen = Mutex<Content>(.nothing)

  /// `say` is told of a list that can't be read.
  package init(in store: Store, say: @escaping @Sendable (String) -> Void = { DaemonLog.write($0) }) {
    self.store = store
    self.say = say
  }

  /// Why the list can't be read, and restricts everything; nil if it can, or there is none.
  package var problem: String? {
    if case .unreadable(let why) = content() { why } else { nil }
  }

  /// Why an app may not use a service; nil if nobody restricts it.
  package func reason(_ identifier: AppIdentifier, _ service: PrivacyService) -> String? {
    switch content() {
    case .nothing: nil
    case .unreadable(let why): "/\(Self.path) can't be read (\(why)), so it restricts everything"
    case .rules(let rules):
      rules.contains { $0.restricts(identifier, service) }
        ? "an administrator restricts it in /\(Self.path)" : nil
    }
  }

  /// Whether there is a list that says anything.
  var restrictsAnything: Bool { seen.withLock { $0 != .nothing } }

  /// Whether the list says something else than the last time this was asked.
  func hasChanged() -> Bool {
    let now = content()
    return seen.withLock { seen in
      defer { seen = now }
      return seen != now
    }
  }

  private func content() -> Content {
    do throws(Errno) {
      return try content(of: try open())
    } catch {
      // Something else in the place of a directory on the way does not say that there is no list.
      return error == .ENOENT ? .nothing : .unreadable(error.message)
    }
  }

  private func content(of file: consuming OwnedFD) throws(Errno) -> Content {
    let status = try file.fd.status()
    let stamp = FileStamp(status)
    if let known = last.withLock({ $0 }), known.inode == UInt64(status.st_ino), known.stamp == stamp {
      return known.content
    }
    let content = Self.read(file.fd)
    // What has only just changed may change again unseen.
    let read = Read(inode: UInt64(status.st_ino), stamp: stamp, content: content)
    last.withLock { $0 = stamp.isSettled ? read : nil }
    if case .unreadable(let why) = content {
      say("/\(Self.path): \(why); it restricts everything")
    }
    return content
  }

  private func open() throws(Errno) -> OwnedFD {
    var names = Self.path.parts(between: "/").map { Array($0.utf8) }
    let name = names.removeLast()
    // Whoever has made them may have spelled them otherwise, where that makes no difference.
    var directory = try store.tree.reopened(O_RDONLY | O_DIRECTORY)
    for name in names {
      directory = try directory.fd.openDirectory(store.spelling(of: name, in: directory.fd))
    }
    return try directory.fd.open(
      store.spelling(of: name, in: directory.fd), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  }

  private static let longest = 1 << 16

  private static func read(_ file: FD) -> Content {
    do throws(Errno) {
      let bytes = try file.contentsIfRegular(limit: longest)
      guard let list = try? PropertyList(reading: bytes) else { return .unreadable("it is no property list") }
      return content(list)
    } catch {
      return .unreadable(error.message)
    }
  }

  private static func content(_ list: PropertyList) -> Content {
    guard let dictionary = list.dictionary else { return .unreadable("it is not a dictionary") }
    var rules: [Rule] = []
    for entry in dictionary.entries {
      let service = PrivacyService(rawValue: entry.key)
      guard service != nil || entry.key == "*" else {
        return .unreadable("it has the unknown service '\(entry.key.prefix(40).description.sanitized)'")
      }
      if let isForAll = entry.value.boolean {
        if isForAll { rules.append(Rule(service: service, identifiers: nil)) }
      } else if let array = entry.value.array, array.allSatisfy({ $0.string != nil }) {
        let texts = array.compactMap(\.string)
        if let text = texts.first(where: { AppIdentifier($0) == nil }) {
          return .unreadable(
            "'\(entry.key)' names '\(text.prefix(80).description.sanitized)', which is not an app's "
              + "identifier; name each app as 'insula apps' shows it, or use true for all apps")
        }
        rules.append(Rule(service: service, identifiers: texts.compactMap(AppIdentifier.init)))
      } else {
        return .unreadable("'\(entry.key)' is neither a boolean nor an array of identifiers")
      }
    }
    return .rules(rules)
  }
}
