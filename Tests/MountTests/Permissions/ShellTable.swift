// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// What people try at a shell, one after the other, and what must come of it.
///
/// A line is one of
///
///     WHO: COMMAND                prepares what follows, and must succeed
///     WHO: COMMAND -> ok          succeeds
///     WHO: COMMAND -> EACCES      fails, and says so in the words of this error; or any other of them
///     WHO: COMMAND -> no          is refused by a tool or the shell itself, whatever it says
///     WHO: COMMAND -> exit NAME   ends with this status, by `insula`'s name for it or as a number
///     WHO: COMMAND -> "text"      succeeds, and prints this; `\n` is a line's end
///
/// where WHO is one or several of root, owner, primary, member, stranger, or `users` for the four who are not
/// root, or `all`. All but the first kind are checks, one for each who tries. Lines that begin with `#` say
/// what it is about.
struct ShellTable: Sendable, CustomStringConvertible {
  let title: String
  private let lines: [(number: Int, text: String)]

  init(_ title: String, _ text: String) {
    self.title = title
    lines = text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().map {
      ($0 + 1, String($1))
    }.filter { !$0.text.isEmpty && !$0.text.hasPrefix("#") }
  }

  var description: String { title }

  /// How many checks there are in it.
  var count: Int {
    lines.compactMap { Step($0.text) }.map { $0.expected == nil ? 0 : $0.people.count }.reduce(0, +)
  }

  /// Plays it, in a directory that is its own.
  func play(_ cast: Cast) throws {
    let place = try cast.makePlace(title.map { $0.isLetter || $0.isNumber ? "\($0)" : "-" }.joined())
    for line in lines {
      guard let step = Step(line.text) else {
        Issue.record("\(title), line \(line.number): can't be understood: \(line.text)")
        return
      }
      for person in step.people {
        let result = try cast.run(step.command, as: person, in: place)
        let expected = step.expected.map { $0.replacingNames(cast.names) } ?? "ok"
        if let complaint = result.complaint(expected: expected) {
          Issue.record("\(title), line \(line.number): \(person.rawValue): \(step.command): \(complaint)")
        }
      }
    }
  }

  private struct Step {
    let people: [Person]
    let command: String
    let expected: String?

    init?(_ line: String) {
      guard let colon = line.firstRange(of: ": ") else { return nil }
      var people: [Person] = []
      for word in line[..<colon.lowerBound].split(separator: ",") {
        switch word {
        case "all": people += Person.allCases
        case "users": people += Person.allCases.filter { $0 != .root }
        default:
          guard let person = Person(rawValue: String(word)) else { return nil }
          people.append(person)
        }
      }
      self.people = people
      let rest = line[colon.upperBound...]
      let arrow = rest.ranges(of: " -> ").last
      command = String(arrow.map { rest[..<$0.lowerBound] } ?? rest)
      expected = arrow.map { String(rest[$0.upperBound...]) }
    }
  }
}

extension String {
  /// With the accounts' names in the place of `$owner` and so on.
  fileprivate func replacingNames(_ names: [String: String]) -> String {
    names.reduce(self) { $0.replacing("$" + $1.key, with: $1.value) }
  }
}

extension ProgramResult {
  private static let errorsByName: [String: Errno] = [
    "EACCES": .EACCES, "EPERM": .EPERM, "EROFS": .EROFS, "EINVAL": .EINVAL, "E2BIG": .E2BIG,
    "EOPNOTSUPP": .EOPNOTSUPP, "ENODATA": .ENODATA, "ENOENT": .ENOENT, "EEXIST": .EEXIST, "EIO": .EIO,
  ]

  /// Also that of a shell that may not execute a program, and -1, which `nfs4_setfacl` ends with.
  private static let refusals: Set<Ending> = [.failed, .seriousTrouble, .notExecutable, Ending(255)]

  /// What is not as expected; nil if all is.
  fileprivate func complaint(expected: String) -> String? {
    let seen = "\(ending), '\(output.suffix(300))', '\(errors.suffix(300))'"
    switch expected {
    case "ok": return status == 0 ? nil : "failed: \(seen)"
    case "no": return isRefusal ? nil : "was not refused: \(seen)"
    default: break
    }
    if expected.hasPrefix("exit ") {
      let name = expected.dropFirst("exit ".count)
      let status = Ending.names.first { $0.name == name }?.status ?? Int32(name).map { Ending($0) }
      return status == ending ? nil : "expected \(expected), saw \(seen)"
    }
    if let error = Self.errorsByName[expected] {
      return Self.refusals.contains(ending) && errors.contains(error.message)
        ? nil : "expected \(expected), saw \(seen)"
    }
    guard expected.count >= 2, expected.first == "\"", expected.last == "\"" else {
      return "expects something unknown: \(expected)"
    }
    let text = expected.dropFirst().dropLast().replacing("\\n", with: "\n")
    var printed = Substring(output)
    while printed.last == "\n" { printed.removeLast() }
    return status == 0 && printed == text ? nil : "expected \(expected), saw \(seen)"
  }
}
