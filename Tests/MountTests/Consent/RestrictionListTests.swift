// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The list with which administrators restrict apps: where it is found, and what it must not let through.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RestrictionListTests {
  /// Runs a script as whoever administers the store, in `/Library`.
  private func administer(_ fixture: ConsentFixture, rootless: Bool = false, _ script: String) throws {
    let library = "\(fixture.fixture.mounted.point)/Library"
    let become = rootless ? ["runuser", "-u", fixture.fixture.user.name, "--"] : []
    let result = try Program.run(become + ["sh", "-e", "-c", "cd '\(library)'\n" + script])
    try #require(result.status == 0, "\(result)")
  }

  private static func list(_ key: String, _ value: String) -> String {
    "<plist version=\"1.0\"><dict><key>\(key)</key>\(value)</dict></plist>"
  }

  /// Whoever restricts apps may have spelled the directory, or the list, in another way.
  @Test(arguments: [false, true])
  func listIsFoundInEverySpelling(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless, initOptions: ["--case-insensitive"])
    let allowed = try fixture.shell("decide allow photos; decide allow contacts")
    #expect(allowed.output == "authorized\nauthorized\n")
    let paths = [
      "managed preferences/org.insula.consent.plist", "Managed preferences/ORG.insula.Consent.PLIST",
    ]
    for path in paths {
      let directory = String(path.prefix { $0 != "/" })
      let script = "mkdir '\(directory)'; echo '\(Self.list("photos", "<true/>"))' > '\(path)'"
      try administer(fixture, rootless: rootless, script)
      #expect(try fixture.state(of: "photos") == "restricted", "\(path)")
      #expect(try fixture.state(of: "contacts") == "authorized")
      let app = try fixture.inside("cat \"$HOME_OF_USER/Pictures/All.photoslibrary/1\"")
      #expect(app.ending == .failed && app.output.isEmpty, "\(app)")
      try administer(fixture, rootless: rootless, "rm -r '\(directory)'")
      #expect(try fixture.state(of: "photos") == "authorized")
    }
    // Where case makes a difference, another spelling is another file.
    let other = try ConsentFixture(rootless: rootless)
    let list = "echo '\(Self.list("*", "<true/>"))' > 'managed preferences/org.insula.consent.plist'"
    try administer(other, rootless: rootless, "mkdir 'managed preferences'; " + list)
    #expect(try other.state(of: "photos") == "not-determined")
  }

  /// A place for which an app may ask is not made a second time beside the one that its user has made.
  @Test(arguments: [false, true])
  func placesAreMadeInOneSpelling(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless, initOptions: ["--case-insensitive"])
    let made = try fixture.shell(
      """
      cd '\(fixture.home)/Library' && mkdir calendars && echo entry > calendars/entry \
        && decide allow calendars
      """)
    #expect(made.output == "authorized\n", "\(made)")
    let app = try fixture.inside("cat \"$HOME_OF_USER/Library/Calendars/entry\"")
    #expect(app.output == "entry\n", "\(app)")
    let library = fixture.fixture.mounted.backing("Users/\(fixture.fixture.user.name)/Library")
    let names = try FileManager.default.contentsOfDirectory(atPath: library)
    #expect(names.filter { $0.lowercased() == "calendars" } == ["calendars"])
    // What is missing is made as it is called.
    #expect(names.contains("Reminders"), "\(names)")
  }

  /// What stands in the place of the list's directory does not say that nothing is restricted.
  @Test(arguments: ["echo x > 'Managed Preferences'", "ln -s elsewhere 'Managed Preferences'"])
  func whatStandsInItsPlaceRestrictsAll(script: String) throws {
    let fixture = try ConsentFixture()
    #expect(try fixture.shell("decide allow photos").output == "authorized\n")
    try administer(fixture, "rm -rf 'Managed Preferences'; " + script)
    #expect(try fixture.state(of: "photos") == "restricted")
    try administer(fixture, "rm 'Managed Preferences'")
    #expect(try fixture.state(of: "photos") == "authorized")
  }

  /// A text that is no identifier restricts nobody in particular, so it restricts all, and says so.
  @Test(arguments: ["org.example.player ", "org.example.*", "*", ""])
  func textThatIsNoIdentifierRestrictsAll(text: String) throws {
    let fixture = try ConsentFixture()
    let mounted = fixture.fixture.mounted
    let services = ["media-library", "photos"]
    for service in services {
      #expect(try fixture.shell("decide allow \(service)").output == "authorized\n")
    }
    func restrict(_ identifier: String) throws {
      let list = Self.list("media-library", "<array><string>\(identifier)</string></array>")
      try administer(
        fixture,
        "mkdir -p 'Managed Preferences'; echo '\(list)' > 'Managed Preferences/org.insula.consent.plist'")
    }
    func states() throws -> [String] { try services.map { try fixture.state(of: $0) } }
    func doctor() throws -> String { try mounted.run("doctor", mounted.store).output }
    try restrict("ORG.example.player")
    #expect(try states() == ["restricted", "authorized"])
    #expect(try !doctor().contains("restrictions:"))
    try restrict("org.example.other")
    #expect(try states() == ["authorized", "authorized"])
    try restrict(text)
    #expect(try states() == ["restricted", "restricted"])
    let words = "'media-library' names '\(text)', which is not an app's identifier"
    let told = try doctor()
    #expect(told.contains("restrictions:") && told.contains(words), "\(told)")
    #expect(mounted.daemonLog?.contains(words) == true)
    let app = try fixture.inside("cat \"$HOME_OF_USER/Music/Music/song\"")
    #expect(app.ending == .failed && app.output.isEmpty, "\(app)")
  }
}
