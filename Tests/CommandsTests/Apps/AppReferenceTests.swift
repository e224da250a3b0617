// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
@testable internal import Commands
internal import Foundation
internal import Policy
internal import Testing

/// Apps by their names, which anyone may choose.
@Suite struct AppReferenceTests {
  private func app(_ identifier: String, _ name: String) throws -> AppDescription {
    let values: [String: Any] = [
      "identifier": identifier, "name": name, "version": "1", "build": "1", "team": "T", "executable": "x",
      "path": "Applications/X.app", "installed": 0, "groups": [String](), "clouds": [String](), "seal": "",
    ]
    return try JSONDecoder().decode(
      AppDescription.self, from: JSONSerialization.data(withJSONObject: values))
  }

  private func found(_ text: String, among apps: [AppDescription]) throws -> String {
    try #require(AppReference(text)).identifier(among: apps).text
  }

  @Test func nameOfOneAppIsEnough() throws {
    let apps = [try app("org.example.notes", "Notes"), try app("org.example.draw", "Draw 2.0")]
    #expect(try found("Notes", among: apps) == "org.example.notes")
    #expect(try found("nOTES", among: apps) == "org.example.notes")
    #expect(try found("draw 2.0", among: apps) == "org.example.draw")
    #expect(try found("ORG.example.notes", among: apps) == "ORG.example.notes")
    #expect(throws: CommandFailure.self) { try found("No such", among: apps) }
    // The copy of one's own and the machine's are one app.
    #expect(try found("notes", among: apps + [app("org.example.Notes", "Notes")]) == "org.example.notes")
  }

  @Test func identifierComesBeforeNames() throws {
    let apps = [try app("org.evil.x", "Other"), try app("Notes", "Something")]
    #expect(try found("notes", among: apps) == "notes")
    #expect(try found("Notes", among: [app("Notes", "NOTES")]) == "Notes")
    // What looks like an identifier is one, even if no app has it and another is called like that.
    let named = [try app("org.evil.x", "org.example.notes")]
    #expect(try #require(AppReference("org.example.notes")).fixedIdentifier?.text == "org.example.notes")
    #expect(try #require(AppReference("notes")).fixedIdentifier == nil)
    #expect(try found("org.evil.x", among: named) == "org.evil.x")
  }

  @Test func nameThatAnotherTakesMeansNeither() throws {
    let apps = [
      try app("org.example.notes", "Notes"), try app("org.evil.x", "NOTES"),
      try app("org.evil.x", "NOTES"),
    ]
    let failure = #expect(throws: CommandFailure.self) { try found("Notes", among: apps) }
    #expect(failure?.message.contains("several apps are called 'Notes'") == true)
    #expect(failure?.lines == ["  org.evil.x", "  org.example.notes"])
  }

  /// The attack: an app takes another one's name as its identifier, and gets what is given by that name.
  @Test func identifierThatIsAnothersNameMeansNeither() throws {
    let apps = [
      try app("org.example.notes", "Notes"), try app("NOTES", "Helper"), try app("org.example.draw", "Draw"),
    ]
    let failure = #expect(throws: CommandFailure.self) { try found("Notes", among: apps) }
    #expect(failure?.message.contains("the identifier of one app and the name of another") == true)
    #expect(failure?.lines == ["  id:Notes", "  org.example.notes"])
    #expect(try found("id:Notes", among: apps) == "Notes")
    let marked = try #require(AppReference("id:Notes"))
    #expect(marked.fixedIdentifier?.text == "Notes")
    // Another process that is to do it understands the same.
    #expect(AppReference(marked.text) == marked)
    #expect(try found("org.example.notes", among: apps) == "org.example.notes")
    #expect(try found("Draw", among: apps) == "org.example.draw")
    // Two that have each other's name are told apart, too.
    let crossed = [try app("a", "b"), try app("b", "a")]
    for text in ["a", "b"] {
      let failure = #expect(throws: CommandFailure.self) { try found(text, among: crossed) }
      #expect(failure?.lines == ["  id:\(text)", "  id:\(text == "a" ? "b" : "a")"])
      #expect(try found("id:\(text)", among: crossed) == text)
    }
  }

  @Test(arguments: ["No\u{202e}tes", "Notes\u{1b}[2J", "Notes\n", "\u{200b}Notes", "a\u{fffd}"])
  func nameThatATerminalWouldNotShowIsNone(name: String) throws {
    #expect(AppReference(name) == nil)
    // Nor is it what is typed for it.
    let apps = [try app("org.evil.x", name), try app("org.example.notes", "Notes")]
    #expect(try found("Notes", among: apps) == "org.example.notes")
    let shown = name.replacing("\n", with: "?")
    if let typed = AppReference(shown), typed.text != "Notes" {
      #expect((try? typed.identifier(among: apps))?.text != "org.evil.x")
    }
  }

  @Test(arguments: ["", "-x", "--user", "../x", "a/b"]) func whatIsNoName(text: String) {
    #expect(AppReference(text) == nil)
  }
}
