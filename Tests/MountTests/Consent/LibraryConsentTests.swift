// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A program asks for what is private through libinsula.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct LibraryConsentTests {
  private static let app = "org.example.asker"
  private static let compiled = Result {
    let made = try TemporaryDirectory()
    let result = try Program.run([
      "sh", "-c",
      """
      cd "$1" && cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$2/Sources/CInsula/include" \
        -o app-consents "$2/Tests/Fixtures/app-consents.c" "$2"/Sources/CInsula/*.c -lpthread
      """, "sh", made.path, ConsentFixture.root,
    ])
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    return made
  }

  private func fixture(rootless: Bool = false) throws -> ConsentFixture {
    let fixture = try ConsentFixture(rootless: rootless)
    try fixture.fixture.install(
      "Asker", info: "<key>NSPhotoLibraryUsageDescription</key><string>Shows photos.</string>",
      executable: try Self.compiled.get().appending("app-consents"))
    return fixture
  }

  /// What the program prints, with an agent that gives these answers.
  private func ask(_ fixture: ConsentFixture, _ words: String, agent: String? = nil) throws -> String {
    let result = try fixture.shell(
      """
      \(agent.map { "agent \($0)" } ?? "agentpid=")
      insula run \(Self.app) --args \(words)
      [ -z "$agentpid" ] || kill $agentpid 2> /dev/null; true
      """)
    #expect(result.status == 0, "\(result)")
    return result.output
  }

  @Test(arguments: [false, true])
  func statesAreToldApart(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let words = "status photos request photos status photos"
    #expect(try ask(fixture, words, agent: "allow") == "not determined\nauthorized\nauthorized\n")
    let denied = try fixture.shell("$INSULA consent deny \(Self.app) photos --store $POINT")
    #expect(denied.status == 0, "\(denied)")
    // What was decided is told, and nobody is asked again.
    #expect(try ask(fixture, words, agent: "allow") == "denied\ndenied\ndenied\n")
  }

  @Test func requestCanBeAnsweredLater() throws {
    let fixture = try fixture()
    #expect(try ask(fixture, "later photos", agent: "deny") == "goes on\ndenied\n")
    #expect(try ask(fixture, "later photos") == "goes on\ndenied\n")
  }

  /// What can't be had says why, and decides nothing.
  @Test func failuresSayWhy() throws {
    let fixture = try fixture()
    let told = try ask(fixture, "request photos request bananas status desktop later photos")
    let lines = told.split(separator: "\n").map(String.init)
    try #require(lines.count == 5, "\(told)")
    #expect(lines[0].hasPrefix("failed EPERM: nobody is there to be asked"), "\(told)")
    #expect(lines[1].hasPrefix("failed E") && lines[2].hasPrefix("failed EINVAL: "), "\(told)")
    #expect(lines[3] == "goes on" && lines[4].hasPrefix("failed EPERM: nobody"), "\(told)")
    #expect(try ask(fixture, "status photos") == "not determined\n")
    // An app that has not said why it asks is ended.
    let ended = try fixture.shell("insula run \(Self.app) --args request contacts status photos; echo $?")
    #expect(ended.output == "137\n" && ended.errors.contains("NSContactsUsageDescription"), "\(ended)")
    let long = String(repeating: "x", count: 5000)
    #expect(try ask(fixture, "request \(long) save \(long) -").split(separator: "\n").count == 2)
  }

  @Test(arguments: [false, true])
  func chosenFileIsOpened(rootless: Bool) throws {
    let fixture = try fixture(rootless: rootless)
    let letter = "Users/\(fixture.fixture.user.name)/Documents/letter"
    let inode = try fixture.shell("echo dear > \"$POINT/\(letter)\"; stat -c %i \"$POINT/\(letter)\"").output
    let answer = "'choose:\(letter)#\(inode.split(separator: "\n").first ?? "")'"
    let told = try ask(fixture, "panel - .txt,public.text", agent: answer)
    #expect(told == "\(fixture.fixture.mounted.point)/\(letter): dear\n\n")
    #expect(try ask(fixture, "save Letter -", agent: "dismiss").hasPrefix("failed ECANCELED: "))
  }
}
