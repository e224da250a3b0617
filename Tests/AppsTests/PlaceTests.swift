// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

/// What may be where an app is to be.
@Suite struct PlaceTests {
  private let fixture: AppFixture

  init() throws { fixture = try AppFixture(teams: ["TEAM1", "TEAM2"]) }

  /// What a refused installation says; it changes nothing.
  private func refusal(_ name: String = "Editor.app", for domain: AppDomain = .everyone) throws -> AppFailure?
  {
    let before = try fixture.snapshot()
    let apps = try fixture.registry.apps()
    let failure = appFailure { try fixture.install(name, for: domain) }
    #expect(try fixture.snapshot() == before)
    #expect(try fixture.staged() == [])
    #expect(try fixture.registry.apps() == apps)
    #expect(try fixture.registry.intents() == [])
    return failure
  }

  @Test(arguments: [
    ("Editor", "it does not end in .app"), (".app", "it does not end in .app"),
    ("", "it does not end in .app"),
    (".Editor.app", "it begins with a dot"), ("a/b.app", "it contains a slash"),
    (".\u{301}Editor.app", "it begins with a dot"),
    ("\u{301}Editor.app", "it begins or ends with a character that joins what is beside it"),
    ("\u{20dd}Editor.app", "it begins or ends with a character that joins what is beside it"),
    ("Edi\u{7}tor.app", "it contains a control character"),
    ("Edi\ntor.app", "it contains a control character"),
    ("Edi\u{fffd}tor.app", "it is not valid UTF-8"),
    (String(repeating: "e", count: 252) + ".app", "it is longer than 255 bytes"),
  ])
  func namesThatNoBundleHas(name: String, reason: String) throws {
    let path = try fixture.bundle()
    let source = try TemporaryDirectory.open(path)
    let failure = appFailure {
      _ = try fixture.installer().install(source.fd, named: name, for: .everyone, by: .ourselves)
    }
    #expect(failure == .badName(name: name, reason: reason))
  }

  @Test func folderInTheWayStays() throws {
    try fixture.bundle()
    for (make, what) in [("mkdir", "a folder"), ("touch", "a file"), ("ln -s nowhere", "a symbolic link")] {
      _ = try Program.run(["sh", "-c", "\(make) Applications/Editor.app"], in: fixture.tree)
      #expect(try refusal() == .inTheWay(path: "/Applications/Editor.app", what: what))
      _ = try Program.run(["rm", "-r", "Applications/Editor.app"], in: fixture.tree)
    }
  }

  @Test func nameThatDiffersOnlyInCaseOrSpelling() throws {
    for (there, new) in [("EDITOR.app", "Editor.app"), ("Ça va.app", "C\u{327}a va.app")] {
      mkdir("\(fixture.tree)/Applications/\(there)", 0o755)
      try fixture.bundle(new)
      #expect(try refusal(new) == .twin(path: "/Applications/\(new)", other: there))
    }
  }

  @Test func appThatIsThereAlready() throws {
    try fixture.bundle()
    try fixture.install()
    let failure = AppFailure.alreadyInstalled(
      identifier: "org.example.editor", path: "/Applications/Editor.app")
    #expect(try refusal() == failure)
    try fixture.bundle("Other.app")
    #expect(try refusal("Other.app") == failure)
    try fixture.bundle("Other.app") { $0.identifier = "org.example.EDITOR" }
    #expect(try refusal("Other.app") == failure)
    try fixture.bundle { $0.identifier = "org.example.viewer" }
    #expect(try refusal() == .otherApp(path: "/Applications/Editor.app", identifier: "org.example.editor"))
    // One of a user's own may be there as well.
    try fixture.bundle()
    try fixture.install(for: fixture.users)
    #expect(try fixture.registry.apps().count == 2)
    #expect(try fixture.findings(deep: true) == [])
  }

  @Test func otherTeamGetsNoContainersOfOurs() throws {
    try fixture.bundle {
      $0.groups = ["group.org.example"]; $0.clouds = ["iCloud.org.example"]
    }
    try fixture.install()
    try fixture.bundle { $0.team = "TEAM2" }
    #expect(
      try refusal(for: fixture.users)
        == .otherTeam(identifier: "org.example.editor", installed: "TEAM1", new: "TEAM2"))
    for group in ["group.org.example", "group.ORG.example", "iCloud.org.example"] {
      try fixture.bundle("Viewer.app") {
        $0.identifier = "org.example.viewer"
        $0.team = "TEAM2"
        $0.groups = [group]
      }
      let failure = AppFailure.groupOfOtherTeam(group: group, app: "org.example.editor", team: "TEAM1")
      #expect(try refusal("Viewer.app") == failure)
    }
    try fixture.bundle("Viewer.app") {
      $0.identifier = "org.example.viewer"
      $0.groups = ["group.org.example"]
    }
    try fixture.install("Viewer.app")
  }

  @Test(arguments: [
    ("com.apple.security.application-groups", "<string>group.a</string>", "it is not an array"),
    (
      "com.apple.security.application-groups", "<array><integer>1</integer></array>",
      "an element is not a string"
    ),
    ("com.apple.security.application-groups", "<array><string>../x</string></array>", "'../x'"),
    ("com.apple.security.application-groups", "<array><string></string></array>", "''"),
    ("com.apple.developer.icloud-container-identifiers", "<array><string>a/b</string></array>", "'a/b'"),
    ("com.apple.developer.ubiquity-container-identifiers", "<array><string>a..b</string></array>", "'a..b'"),
  ])
  func badEntitlementsAreRefusedByName(key: String, value: String, words: String) throws {
    try fixture.bundle { $0.entitlements = AppFixture.list([(key, value)]) }
    guard case .badEntitlement(key, let reason)? = try refusal() else {
      Issue.record("not refused for \(key)")
      return
    }
    #expect(reason.contains(words), "\(reason)")
  }
}
