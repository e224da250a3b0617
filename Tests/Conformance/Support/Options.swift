// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// What the command line asks for.
package struct Options {
  package var list = false
  package var json = false
  package var inheritsGroup = false
  package var lacksNothing = false
  /// Name prefixes; empty means all checks.
  package var only: [String] = []
  /// Whom to run the whole list as.
  package var person: Person?
  package var peer = Person(uid: 54322, gid: 54322)
  /// The deliberate differences: name and reason.
  package var known: [String: String] = [:]
  package var place = ""

  /// What to print when the arguments make no sense.
  package static let usage = """
    usage: insula-conformance [options] DIR
      --list                  print the names of the checks and end
      --only PREFIX           run only checks whose name starts so (may be given again)
      --json                  print an object per line
      --uid U --gid G [--groups A,B]
                              take on these ids first (by root), so that the list runs as an ordinary user
      --peer-uid U --peer-gid G
                              the second ordinary user of a run by root (54322 unless given)
      --grpid                 expect that a new object takes its directory's group
      --full                  what the filesystem does not support is a failure, not skipped
      --known FILE            lines "NAME reason": these checks are expected to fail

    """

  /// Parses arguments without the program's name; throws a text for the user.
  package init(_ arguments: [String]) throws(UsageError) {
    var rest = arguments[...]
    var uid: uid_t?
    var gid: gid_t?
    var groups: [gid_t] = []
    while let word = rest.popFirst() {
      switch word {
      case "--list": list = true
      case "--json": json = true
      case "--grpid": inheritsGroup = true
      case "--full": lacksNothing = true
      case "--only": only.append(try Options.value(word, &rest))
      case "--uid": uid = try Options.id(word, &rest)
      case "--gid": gid = try Options.id(word, &rest)
      case "--groups":
        groups = []
        for part in try Options.value(word, &rest).split(separator: ",") {
          groups.append(try Options.id(word, part))
        }
      case "--peer-uid": peer.uid = try Options.id(word, &rest)
      case "--peer-gid": peer.gid = try Options.id(word, &rest)
      case "--known": known = try Options.readKnown(try Options.value(word, &rest))
      default:
        guard !word.hasPrefix("-"), place.isEmpty else { throw UsageError(text: "unexpected \(word)") }
        place = word
      }
    }
    if let uid, let gid {
      person = Person(uid: uid, gid: gid, groups: groups)
    } else if uid != nil || gid != nil || !groups.isEmpty {
      throw UsageError(text: "--uid and --gid go together")
    }
    guard list || !place.isEmpty else { throw UsageError(text: "no directory given") }
  }

  private static func value(_ option: String, _ rest: inout ArraySlice<String>) throws(UsageError) -> String {
    guard let value = rest.popFirst() else { throw UsageError(text: "\(option) needs a value") }
    return value
  }

  private static func id(_ option: String, _ rest: inout ArraySlice<String>) throws(UsageError) -> uid_t {
    try id(option, value(option, &rest)[...])
  }

  private static func id(_ option: String, _ text: Substring) throws(UsageError) -> uid_t {
    guard let id = uid_t(text) else { throw UsageError(text: "\(option): \(text) is not an id") }
    return id
  }

  private static func readKnown(_ path: String) throws(UsageError) -> [String: String] {
    guard let file = fopen(path, "r") else { throw UsageError(text: "can't read \(path)") }
    defer { fclose(file) }
    var known: [String: String] = [:]
    var line: UnsafeMutablePointer<CChar>?
    var capacity = 0
    defer { free(line) }
    while getline(&line, &capacity, file) != -1, let start = line {
      let text = String(cString: start).split(whereSeparator: \.isNewline).first ?? ""
      let words = text.split(separator: " ", maxSplits: 1)
      guard let name = words.first, !name.hasPrefix("#") else { continue }
      known[String(name)] = words.count == 2 ? String(words[1]) : "no reason given"
    }
    return known
  }
}

/// The arguments make no sense.
package struct UsageError: Error {
  /// What is wrong with them.
  package var text: String

  /// An error with this text.
  package init(text: String) { self.text = text }
}
