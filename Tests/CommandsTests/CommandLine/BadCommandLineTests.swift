// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import TestSupport
internal import Testing

/// What people type that makes no sense, and what they are told.
///
/// Whoever changes a message reviews it here: it says what is wrong, and what to do.
@Suite struct BadCommandLineTests {
  /// A line, how it ends, and what the message must have.
  ///
  /// A dot in the middle stands for a blank in a word.
  struct Row: Sendable {
    let line: String
    let code: ExitCode
    let fragments: [String]

    init(_ line: String, _ code: ExitCode, _ fragments: String...) {
      self.line = line
      self.code = code
      self.fragments = fragments
    }

    var words: [String] {
      line.split(separator: " ").map { $0 == "''" ? "" : String($0).replacing("·", with: " ") }
    }
  }

  private let shell: Shell

  init() throws {
    shell = try Shell()
    try shell.temporary.write("text", to: "file")
    for folder in ["dir", "full", "full/inside"] { try shell.temporary.makeDirectory(folder) }
  }

  @Test(arguments: rows)
  func whatMakesNoSenseIsExplained(row: Row) throws {
    // As an ordinary user who has no store, and nobody has any.
    let result = shell.run(row.words, as: 501, machineStore: shell.temporary.appending("none"))
    #expect(result.code == row.code, "\(row.line): \(result.errors)")
    #expect(result.output.isEmpty && result.errors.hasPrefix("insula: "), "\(row.line): \(result.output)")
    for fragment in row.fragments {
      #expect(result.errors.contains(fragment), "\(row.line): \(result.errors)")
    }
    #expect(!row.fragments.isEmpty)
    // A line that a person reads, not a screen.
    let first = result.errors.prefix { $0 != "\n" }
    #expect(first.count <= 400, "\(row.line): \(first)")
    let left = try shell.temporary.names().sorted()
    #expect(left == ["dir", "file", "full"], "\(row.line) has made or removed something: \(left)")
  }

  /// Each command has a line that it can't understand, and each kind of end that needs no store is tried.
  @Test func everyCommandIsThere() {
    #expect(Self.rows.count >= 100 && Set(Self.rows.map(\.line)).count == Self.rows.count)
    for description in Insula.commands.map({ $0.description }) {
      let isThere = Self.rows.contains { ($0.line + " ").hasPrefix(description.name + " ") }
      #expect(isThere, "\(description.name)")
      let isMisused = Self.rows.contains {
        ($0.line + " ").hasPrefix(description.name + " ") && $0.code == .usage
      }
      #expect(isMisused, "\(description.name) has no line that ends with \(ExitCode.usage.name)")
    }
  }
}
