// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The status that a program ends with, by its name: `insula`'s own, and those of shells and tools.
///
/// `CommandsTests` compares the names with those of the program.
package struct Ending: Hashable, Sendable, CustomStringConvertible {
  package let number: Int32

  package init(_ number: Int32) { self.number = number }

  package static let ok = Ending(0)
  /// Also what most tools end with.
  package static let failed = Ending(1)
  package static let usage = Ending(2)
  package static let busy = Ending(3)
  package static let noStore = Ending(4)
  package static let wrongFormat = Ending(5)
  package static let notMounted = Ending(6)
  package static let notPermitted = Ending(7)
  package static let problemsFound = Ending(8)
  package static let undecided = Ending(9)

  /// What `ls`, `tar` and `dash` end with when they are refused something.
  package static let seriousTrouble = Ending(2)
  package static let notExecutable = Ending(126)
  package static let notFound = Ending(127)
  package static func signal(_ number: Int32) -> Ending { Ending(128 + number) }

  /// Those of `insula` that every command may end with.
  package static let names: [(status: Ending, name: String)] = [
    (.ok, "ok"), (.failed, "failed"), (.usage, "usage"), (.busy, "busy"), (.noStore, "no-store"),
    (.wrongFormat, "wrong-format"), (.notMounted, "not-mounted"), (.notPermitted, "not-permitted"),
    (.problemsFound, "problems-found"), (.undecided, "undecided"),
  ]

  package var description: String {
    let name = Self.names.first { $0.status == self }?.name
    switch number {
    case _ where name != nil: return "\(name ?? "") (\(number))"
    case 126: return "not executable (126)"
    case 127: return "not found (127)"
    case 129...192: return "signal \(number - 128) (\(number))"
    default: return "\(number)"
    }
  }
}

extension ProgramResult: CustomStringConvertible {
  package var ending: Ending { Ending(status) }

  /// Whether a line of shell was refused what it tried: neither done, nor not found, nor ended by a signal.
  ///
  /// Tools end with 1 then, some with 2. A shell that can't redirect or change its directory ends with 1 or
  /// 2, whichever shell it is.
  package var isRefusal: Bool { ending == .failed || ending == .seriousTrouble }

  package var description: String { "\(ending); output: '\(output)'; errors: '\(errors)'" }
}
