// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import LinuxIO
internal import Testing

/// What one worker could not record is known to the next one.
@Suite struct UnrecordedChangesTests {
  private struct Owed: Codable, Hashable {
    let user: Int
    let text: String
  }

  /// However much it is: more than what is read as one text.
  @Test(arguments: [1, 513, 12_000]) func allIsKnownToTheNextWorker(count: Int) throws {
    let kept = try KeptState(layout: 1)
    let entries = Set(
      (0..<count).map { Owed(user: $0 % 3, text: "\($0)" + String(repeating: "x", count: 500)) })
    let changes = UnrecordedChanges<Owed>(kept, .owedConsents)
    #expect(changes.entries.isEmpty)
    changes.note { entries }
    let others = UnrecordedChanges<Int64>(kept, .owedRevocations)
    others.note { [7, 8] }
    #expect(UnrecordedChanges<Owed>(kept, .owedConsents).entries == entries)
    #expect(UnrecordedChanges<Int64>(kept, .owedRevocations).entries == [7, 8])
    changes.note { [] }
    #expect(UnrecordedChanges<Owed>(kept, .owedConsents).entries.isEmpty)
  }

  /// What can't be read costs nothing else, and an earlier version's list is one line without an end.
  @Test func whatCanNotBeReadCostsNothingElse() throws {
    let kept = try KeptState(layout: 1)
    let text = Array("[1,2]\n[3\n[4]".utf8)
    let memory = try kept.keep(text, as: .owedRevocations, view: 1)
    #expect(UnrecordedChanges<Int64>(kept, .owedRevocations).entries == [1, 2, 4])
    _ = memory.size
  }
}
