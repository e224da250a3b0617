// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Foundation
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// The commands about consent, outside of apps.
@Suite struct ConsentCommandTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  private static func status(
    _ service: PrivacyService, _ state: ConsentState, _ identifier: String = FakeDaemon.identifier,
    reason: String? = nil
  ) -> ConsentStatus {
    ConsentStatus(
      identifier: identifier, user: 501, service: service, state: state, changed: 1_700_000_000,
      reason: reason)
  }

  @Test func whatWasDecidedIsListed() throws {
    let daemon = try FakeDaemon { _ in
      .reply(
        .consents([
          Self.status(.photos, .authorized), Self.status(.contacts, .restricted, reason: "school\u{1b}[2J"),
        ]))
    }
    let all = daemon.run(shell, "consent", "list")
    #expect(all.code == .ok)
    #expect(
      all.output == """
        APP               SERVICE   SINCE                 STATE
        com.example.note  photos    2023-11-14T22:13:20Z  authorized
        com.example.note  contacts  2023-11-14T22:13:20Z  restricted (school?[2J)

        """, "\(all.errors)")
    let one = daemon.run(shell, "consent", "list", "com.example.note", "photos", "--json")
    #expect(one.code == .ok && one.output.contains("\"state\" : \"authorized\""), "\(one)")
    #expect(!one.output.contains("contacts"))
    #expect(
      daemon.asked == [
        .consent(.list(app: nil, user: 501)), .consent(.list(app: FakeDaemon.identifier, user: 501)),
      ])
  }

  /// As of many users, of which a reply has no room for all.
  @Test func allPartsAreListed() throws {
    let all = (0..<2300 as Range<UInt32>).map { number in
      ConsentStatus(identifier: FakeDaemon.identifier, user: 1000 + number, service: .photos, state: .denied)
    }
    let daemon = try FakeDaemon { call in
      guard case .consent(.list(nil, _, let after)) = call.request else { return nil }
      let rest = all.drop { status in after.map { ConsentPosition(status) <= $0 } ?? false }
      return .reply(.consents(Array(rest.prefix(1000))))
    }
    let listed = daemon.run(shell, "consent", "list", "--json")
    #expect(listed.output.components(separatedBy: "\"user\" : ").count == 2301, "\(listed.errors)")
    // One of an earlier version has always the same for us.
    let old = try FakeDaemon { _ in .reply(.consents(Array(all.prefix(1000)))) }
    let first = old.run(shell, "consent", "list", "--json")
    #expect(first.output.components(separatedBy: "\"user\" : ").count == 1001, "\(first.errors)")
  }

  @Test(
    arguments: [
      (
        "allow", ConsentDecision?.some(.allow), ConsentState.authorized,
        "com.example.note may use your photos.\n"
      ),
      ("deny", .some(.deny), .denied, "com.example.note may not use your photos.\n"),
      ("reset", nil, .notDetermined, "com.example.note has to ask before it may use your photos.\n"),
    ])
  func decisionsAreToldTheDaemon(
    word: String, decision: ConsentDecision?, state: ConsentState, said: String
  ) throws {
    let daemon = try FakeDaemon { _ in .reply(.consents([Self.status(.photos, state)])) }
    let result = daemon.run(shell, "consent", word, "com.example.note", "photos")
    #expect(result.code == .ok && result.output == said && result.errors.isEmpty, "\(result)")
    let asked = ConsentRequest.decide(
      app: FakeDaemon.identifier, service: .photos, as: decision, user: nil)
    #expect(daemon.asked == [.consent(asked)])
  }

  @Test func allServicesAreMeantWhereNoneIsNamed() throws {
    let daemon = try FakeDaemon { _ in .reply(.consents([])) }
    for word in ["deny", "reset"] {
      let result = daemon.run(shell, "consent", word, "com.example.note")
      #expect(result.code == .ok && result.output == "Nothing was decided about com.example.note.\n")
    }
    #expect(
      daemon.asked == [
        .consent(.decide(app: FakeDaemon.identifier, service: nil, as: .deny, user: nil)),
        .consent(.decide(app: FakeDaemon.identifier, service: nil, as: nil, user: nil)),
      ])
  }

  @Test func administratorsRuleIsStronger() throws {
    let daemon = try FakeDaemon { _ in
      .reply(.consents([Self.status(.photos, .restricted, reason: "no photos at school")]))
    }
    let result = daemon.run(shell, "consent", "allow", "com.example.note", "photos")
    #expect(result.code == .notPermitted)
    #expect(result.output.hasSuffix("an administrator does not allow it (no photos at school).\n"))
  }

  @Test func daemonThatCanNotSaysSo() throws {
    let daemon = try FakeDaemon { _ in nil }
    for words in [["list"], ["allow", "com.example.note", "photos"]] {
      let result = shell.run(
        ["consent"] + words + ["--store", daemon.tree], as: 501, variables: daemon.outside)
      #expect(result.code == .failed && result.errors == "insula: this daemon asks nobody\n", "\(result)")
    }
  }

  @Test func servicesAreCompleted() {
    func offered(_ line: String) -> [String] {
      Completion(line.split(separator: " ", omittingEmptySubsequences: false).map(String.init))
        .candidates.map(\.word)
    }
    #expect(offered("consent ") == ["list", "allow", "deny", "reset", "status", "request"])
    #expect(offered("consent allow x ph") == ["photos", "photos-add"])
    #expect(offered("consent request re") == ["reminders", "removable-volumes"])
    if case .app = Completion(["consent", "reset", ""]).kind {} else { Issue.record("no apps are offered") }
  }
}
