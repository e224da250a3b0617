// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import JSON
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// The commands by which an app is told what is private.
@Suite struct ItemsCommandTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  private static func song(_ title: String) -> JSONValue {
    .object(["id": .string("1"), "title": .string(title), "artist": .string("Somebody")])
  }

  @Test func allPagesAreFetched() throws {
    let daemon = try FakeDaemon { call in
      guard case .items(let query) = call.request else { return nil }
      let number = Int(query.after ?? "0") ?? 0
      return .reply(
        .items(
          ItemPage([Self.song("Song \(number)")], next: number < 2 ? "\(number + 1)" : nil, unread: number)))
    }
    let table = daemon.runInside(shell, "songs")
    #expect(
      table.output == """
        ARTIST    ALBUM  TITLE
        Somebody  -      Song 0
        Somebody  -      Song 1
        Somebody  -      Song 2

        """, "\(table)")
    #expect(
      table.code == .ok && table.errors == "insula: songs: 3 files could not be read, and were left out\n")
    let json = daemon.runInside(shell, "songs", "--json", "-q")
    #expect(json.output.contains("\"title\" : \"Song 2\"") && json.code == .ok)
    #expect(
      daemon.asked.prefix(3) == [
        .items(ItemsQuery(.songs)), .items(ItemsQuery(.songs, after: "1")),
        .items(ItemsQuery(.songs, after: "2")),
      ])
  }

  /// Tags are made by strangers.
  @Test func hostileTagsControlNoTerminal() throws {
    let hostile = "\u{1b}[2J\u{202e}a\nb\tc"
    let daemon = try FakeDaemon { _ in .reply(.items(ItemPage([Self.song(hostile)], next: nil))) }
    let table = daemon.runInside(shell, "songs")
    #expect(table.output.hasSuffix("Somebody  -      ?[2J?a?b?c\n"), "\(table)")
    let json = daemon.runInside(shell, "songs", "--json")
    #expect(!json.output.unicodeScalars.contains { $0 == "\u{1b}" || $0 == "\u{202e}" })
    #expect(json.output.contains("\\u202e"), "\(json)")
  }

  @Test func listingThatGetsLostBeginsAnew() throws {
    let daemon = try FakeDaemon { call in
      guard case .items(let query) = call.request else { return nil }
      if query.after != nil { return .refusal("begin again", .ESTALE) }
      return .reply(.items(ItemPage([Self.song("x")], next: "1")))
    }
    let result = daemon.runInside(shell, "songs")
    #expect(result.code == .failed && result.errors.contains("could not be read to its end"), "\(result)")
    #expect(daemon.asked.count == 6)
  }

  @Test(arguments: [(Errno.EPERM, ExitCode.notPermitted), (.EIO, .failed)])
  func refusalIsTold(errno: Errno, code: ExitCode) throws {
    let daemon = try FakeDaemon { _ in .refusal("it was refused\u{7}", errno) }
    for word in ["songs", "contacts", "events", "reminders"] {
      let result = daemon.runInside(shell, word)
      #expect(result.code == code && result.errors == "insula: it was refused?\n", "\(result)")
    }
  }

  @Test func nothingIsSaidToBeNothing() throws {
    let daemon = try FakeDaemon { _ in .reply(.items(ItemPage([], next: nil))) }
    #expect(daemon.runInside(shell, "reminders").output == "There are no reminders.\n")
    #expect(daemon.runInside(shell, "events", "--json").output == "[\n\n]\n")
  }

  @Test func onlyAppsAreTold() throws {
    let result = shell.run(["songs"], as: 501)
    #expect(result.code == .usage && result.errors.contains("for use inside an app"), "\(result)")
  }
}
