// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// What an app asks about consent, and has its user choose.
@Suite struct OwnConsentTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  private static func consents(_ state: ConsentState, reason: String? = nil) -> ControlAnswer {
    .reply(
      .consents([
        ConsentStatus(
          identifier: FakeDaemon.identifier, user: 501, service: .photos, state: state, reason: reason)
      ]))
  }

  private static let ends: [(ConsentState, ExitCode)] = [
    (.authorized, .ok), (.denied, .notPermitted), (.restricted, .notPermitted), (.notDetermined, .undecided),
  ]

  @Test(arguments: ends)
  func stateIsTheExitStatus(state: ConsentState, code: ExitCode) throws {
    let daemon = try FakeDaemon { _ in Self.consents(state) }
    for word in ["status", "request"] {
      let result = daemon.runInside(shell, "consent", word, "photos")
      #expect(result.code == code && result.output == state.rawValue + "\n", "\(word): \(result)")
      #expect(result.errors.isEmpty)
    }
    #expect(daemon.asked == [.consent(.list(app: nil, user: nil)), .requestConsent(.photos)])
  }

  @Test func statusOfAllIsATable() throws {
    let daemon = try FakeDaemon { _ in Self.consents(.restricted, reason: "no photos at school") }
    let all = daemon.runInside(shell, "consent", "status")
    #expect(all.code == .ok)
    #expect(all.output == "SERVICE  STATE\nphotos   restricted (no photos at school)\n")
    // What a daemon does not mention, nobody has decided.
    #expect(daemon.runInside(shell, "consent", "status", "contacts").output == "not-determined\n")
    let json = daemon.runInside(shell, "consent", "status", "photos", "--json")
    #expect(json.code == .notPermitted && json.output.contains("\"reason\" : \"no photos at school\""))
  }

  /// That nobody is there to ask is no refusal.
  @Test func nobodyThereIsUndecided() throws {
    let daemon = try FakeDaemon { call in
      if case .requestConsent = call.request { return .refusal("nobody is there to ask\u{7}") }
      return .reply(.consents([]))
    }
    let result = daemon.runInside(shell, "consent", "request", "photos")
    #expect(result.code == .undecided && result.output == "not-determined\n")
    #expect(result.errors == "insula: nobody is there to ask?\n")
  }

  /// A person takes their time.
  @Test func requestWaits() throws {
    let daemon = try FakeDaemon { _ in
      .job(.queries) { _ in
        usleep(300_000)
        return .consents([
          ConsentStatus(
            identifier: FakeDaemon.identifier, user: 501, service: .photos, state: .authorized)
        ])
      }
    }
    #expect(daemon.runInside(shell, "consent", "request", "photos").code == .ok)
  }

  @Test func decidingIsNotForApps() throws {
    let daemon = try FakeDaemon { _ in Self.consents(.authorized) }
    for words in [["allow", "x", "photos"], ["deny", "x"], ["reset", "x"], ["list"]] {
      let result = shell.run(["consent"] + words, as: 501, variables: daemon.inside)
      #expect(result.code == .notPermitted && result.errors.contains("can't be used inside an app"))
    }
    #expect(daemon.asked.isEmpty)
  }

  // MARK: What the user opens

  @Test func whatIsOpenedIsPrinted() throws {
    let daemon = try FakeDaemon { _ in .reply(.opened(["Users/anna/One.txt", "Users/anna/Two.txt"])) }
    let paths = ["One", "Two"].map { "\(daemon.tree)/Users/anna/\($0).txt" }
    let result = daemon.runInside(shell, "opened")
    #expect(result.code == .ok && result.output == paths.joined(separator: "\n") + "\n", "\(result)")
    let json = daemon.runInside(shell, "opened", "--json")
    #expect(json.code == .ok && paths.allSatisfy(json.output.contains), "\(json)")
    #expect(daemon.asked == [.awaitOpened, .awaitOpened])
    let nothing = try FakeDaemon { _ in .reply(.opened([])) }.runInside(shell, "opened")
    #expect(nothing.code == .ok && nothing.output.isEmpty, "\(nothing)")
  }

  // MARK: Panels

  @Test func whatIsChosenIsPrinted() throws {
    let daemon = try FakeDaemon { _ in nil }
    let place = try daemon.place("Users/anna/Letter.txt")
    let choosing = try FakeDaemon { _ in .reply(.grants(GrantPage(places: [place], next: nil))) }
    let result = choosing.runInside(shell, "open-panel", "--types", "txt,.md,public.image")
    #expect(result.code == .ok && result.output == "\(choosing.tree)/Users/anna/Letter.txt\n", "\(result)")
    let json = choosing.runInside(shell, "open-panel", "--folder", "--json")
    #expect(json.code == .ok && json.output.contains("\(choosing.tree)/Users/anna/Letter.txt\""))
    #expect(choosing.runInside(shell, "open-panel", "--save", "New.txt").code == .ok)
    #expect(
      choosing.asked == [
        .openPanel(PanelRequest(.file, types: [".txt", ".md", "public.image"])),
        .openPanel(PanelRequest(.folder)), .openPanel(PanelRequest(.save, name: "New.txt")),
      ])
  }

  @Test(
    arguments: [
      (Errno(ECANCELED), ExitCode.undecided, "insula: open-panel: nothing was chosen\n"),
      (.EPERM, .notPermitted, "insula: nobody is there\n"),
      (.EOPNOTSUPP, .failed, "insula: nobody is there\n"),
    ])
  func cancellingIsNoFailure(errno: Errno, code: ExitCode, said: String) throws {
    let daemon = try FakeDaemon { _ in .refusal("nobody is there", errno) }
    let result = daemon.runInside(shell, "open-panel")
    #expect(result.code == code && result.errors == said && result.output.isEmpty, "\(result)")
  }
}
