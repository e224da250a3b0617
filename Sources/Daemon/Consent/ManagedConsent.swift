// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
package import Policy
internal import PropertyLists
internal import Store
internal import Synchronization

/// What the machine's administrators restrict, whatever users say: a property list in the tree.
///
/// Its keys are services, or an asterisk for all; the value of each is true, for all apps, or an array of
/// their identifiers. A list that can't be read restricts everything.
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
    let identifiers: [String]?

    func restricts(_ identifier: AppIdentifier, _ asked: PrivacyService) -> Bool {
      (service ?? asked) == asked
        && identifiers?.contains { AppIdentifier($0)?.isSame(as: identifier) == true } ?? true
    }
  }

  private struct Read: Sendable {
    let inode: UInt64
    let stamp: FileStamp
    let content: Content
  }

  private let tree: FD
  private let last = Mutex<Read?>(nil)
  /// What ``hasChanged()`` has found.
  private let seen = Mutex<Content>(.nothing)

  package init(in tree: FD) { self.tree = tree }

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
      return error == .ENOENT || error == .ENOTDIR ? .nothing : .unreadable(error.message)
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
      DaemonLog.write("/\(Self.path): \(why); it restricts everything")
    }
    return content
  }

  private func open() throws(Errno) -> OwnedFD {
    var names = Self.path.split(separator: "/").map { Array($0.utf8) }
    let name = names.removeLast()
    let directory = try tree.openDirectory(at: names)
    return try directory.fd.open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
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
        rules.append(Rule(service: service, identifiers: array.compactMap(\.string)))
      } else {
        return .unreadable("'\(entry.key)' is neither a boolean nor an array of identifiers")
      }
    }
    return .rules(rules)
  }
}
