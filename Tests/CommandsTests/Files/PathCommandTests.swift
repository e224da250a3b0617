// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite(.enabled(if: MountedStore.isPossible)) struct PathCommandTests {
  private static let places = [
    ("home", "Data"), ("documents", "Data/Documents"), ("inbox", "Data/Documents/Inbox"),
    ("library", "Data/Library"), ("caches", "Data/Library/Caches"),
    ("application-support", "Data/Library/Application Support"),
    ("preferences", "Data/Library/Preferences"), ("tmp", "Data/tmp"),
  ]

  @Test(arguments: [false, true]) func placesAreWhereTheAppHasThem(isMounted: Bool) throws {
    let fixture = try AppFixture(isMounted: isMounted)
    let root = isMounted ? fixture.mounted.point : fixture.store + "/tree"
    func path(_ place: String, _ identifier: String = "com.example.editor") throws -> String {
      try fixture.run("path", identifier, place, "--user", "nobody", "--store", fixture.store)
    }
    #expect(try path("bundle") == "\(root)/Applications/Editor.app\n")
    #expect(try path("bundle", "com.example.own") == "\(root)/Users/nobody/Applications/Own.app\n")
    var status = FileStatus()
    #expect(
      lstat("\(fixture.store)/tree/\(AppFixture.container)", &status) != 0, "not made before it is needed")
    for (word, place) in Self.places {
      #expect(try path(word) == "\(root)/\(AppFixture.container)/\(place)\n")
    }
    let library = "\(root)/Users/nobody/Library"
    #expect(try path("group:group.com.example") == "\(library)/Group Containers/group.com.example\n")
    #expect(try path("icloud") == "\(library)/Mobile Documents/iCloud~com~x\n")
    #expect(try path("icloud:iCloud.com.x") == "\(library)/Mobile Documents/iCloud~com~x\n")
    // In another spelling it is the same app.
    #expect(try path("home", "COM.example.Editor") == "\(root)/\(AppFixture.container)/Data\n")
    for (word, place) in Self.places where word != "inbox" {
      #expect(lstat("\(root)/\(AppFixture.container)/\(place)", &status) == 0, "\(place)")
      #expect(status.st_uid == 65534 && status.st_mode & 0o7777 == 0o700)
    }
    #expect(try fixture.problems() == [] || !isMounted)
  }

  @Test func usersAskTheDaemonOfAStoreThatIsClosedToThem() throws {
    let fixture = try AppFixture(isMounted: true)
    let point = fixture.mounted.point
    let path = try fixture.nobody("path", "com.example.editor", "documents")
    #expect(path.output == "\(point)/\(AppFixture.container)/Data/Documents\n" && path.status == 0)
    try fixture.shell("echo mine >\"$1/file\"", in: String(path.output.dropLast()))
    let apps = try fixture.nobody("apps")
    #expect(apps.output.contains("com.example.editor") && apps.output.contains("com.example.own"))
    #expect(!apps.output.contains("com.example.roots"), "the apps of others are theirs")
    let info = try fixture.nobody("info", "com.example.editor", "--json")
    #expect(info.output.contains("\"identifier\" : \"com.example.editor\""))
    #expect(info.output.contains("\(point)/\(AppFixture.container)"))
    #expect(try fixture.nobody("info", "com.example.roots").status == 1)
    let asRoot = try fixture.run("apps", "--store", fixture.store)
    #expect(asRoot.contains("com.example.roots") && asRoot.contains("nobody"))
    let other = try fixture.nobody("apps", "--user", "root")
    #expect(other.status == 7 && other.errors.contains("only root"))
  }

  @Test(arguments: [false, true]) func whatAnAppIsNotEntitledToIsRefusedByName(isMounted: Bool) throws {
    let fixture = try AppFixture(isMounted: isMounted)
    func refusal(_ identifier: String, _ place: String) throws -> ProgramResult {
      try fixture.mounted.run(["path", identifier, place, "--user", "nobody", "--store", fixture.store])
    }
    let group = try refusal("com.example.editor", "group:group.other")
    #expect(group.status == 7)
    #expect(
      group.errors.contains(
        "com.example.editor is not entitled to the group group.other; it is entitled to group:g"))
    let cloud = try refusal("com.example.own", "icloud")
    #expect(cloud.status == 7 && cloud.errors.contains("not entitled to iCloud; it has no such entitlement"))
    let missing = try refusal("com.example.nothing", "home")
    #expect(missing.status == 1 && missing.errors.contains("the app com.example.nothing is not installed"))
    let word = try refusal("com.example.editor", "desktop")
    #expect(word.status == 2 && word.errors.contains("unknown place 'desktop'"))
    #expect(try refusal("com.example.editor/..", "home").status == 2)
  }

  @Test(arguments: [false, true]) func standardDirectoriesOfDomains(isMounted: Bool) throws {
    let fixture = try AppFixture(isMounted: isMounted)
    let root = isMounted ? fixture.mounted.point : fixture.store + "/tree"
    func paths(_ words: String...) throws -> String {
      let result = try fixture.mounted.run(["path"] + words + ["--user", "nobody", "--store", fixture.store])
      return result.status == 0 ? result.output.replacing(root, with: "") : "\(result.status)"
    }
    #expect(try paths("documents") == "/Users/nobody/Documents\n")
    #expect(
      try paths("library", "--domain", "all")
        == "/Users/nobody/Library\n/Library\n/Network/Library\n/System/Library\n")
    #expect(try paths("caches", "--domain", "system,local") == "/Library/Caches\n")
    #expect(try paths("users") == "/Users\n/Network/Users\n")
    #expect(try paths("core-services") == "/System/Library/CoreServices\n")
    #expect(try paths("documents", "--domain", "nowhere") == "2")
    #expect(try paths("nothing") == "2")
  }
}
