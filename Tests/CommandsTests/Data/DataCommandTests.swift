// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Moving an app's data, as its user would do it and as root would.
@Suite(.enabled(if: MountedStore.isPossible)) struct DataCommandTests {
  /// All that can be told of what is in a directory of the store.
  private func fingerprint(_ fixture: AppFixture, _ path: String) throws -> String {
    try fixture.rootShell(
      """
      find . -mindepth 1 \\( -name .com.apple.mobile_container_manager.metadata.plist -o \
      -name '*.app' \\) -o \
        -printf '%P %y %m %n %s %U:%G %T@ %l\\n' | sort
      find . -type f ! -name .com.apple.mobile_container_manager.metadata.plist -print0 | sort -z |
        xargs -0 sha256sum
      find . -mindepth 1 -print0 | sort -z | xargs -0 getfattr -h -d -m 'user\\.|trusted\\.insula' -e hex
      """, in: "\(fixture.store)/tree/\(path)")
  }

  /// The lines that only one of them has.
  private func differences(_ one: String, _ other: String) -> [String] {
    let lines = [one, other].map { $0.split(separator: "\n").map(String.init) }
    return lines[0].filter { !lines[1].contains($0) }.map { "+ \($0)" }
      + lines[1].filter { !lines[0].contains($0) }.map { "- \($0)" }
  }

  private static let everything = """
    printf 'text' >Documents/text; touch -d '2001-02-03 04:05:06.789' Documents/text
    mkdir -p 'Documents/A b/deep'; printf x >'Documents/A b/deep/x'; ln 'Documents/A b/deep/x' Library/second
    ln Library/second tmp/third
    ln -s ../nowhere Documents/dangling; ln -s /no/where Documents/absolute; ln -s text Documents/near
    truncate -s 4M Library/sparse; printf end >>Library/sparse
    setfattr -n user.com.example.tag -v value Documents/text; setfattr -n user.on-a-directory -v v Library
    chmod 640 Documents/text; chmod 1755 'Documents/A b'; chmod 6755 Library/second
    insula acl +a 'everyone deny delete' Documents/text
    insula acl +a 'user:daemon allow list,search,file_inherit,directory_inherit' 'Documents/A b'
    insula flags hidden Documents/text; insula flags uchg Library/second; \
    insula flags uappnd 'Documents/A b/deep'
    touch -d 1999-01-01 'Documents/A b/deep' || :; mkfifo tmp/fifo; touch -d 2002-02-02 Library Documents
    """

  @Test func everythingSurvivesTheRoundTripAndTheIdentityDoesNot() throws {
    let first = try AppFixture(isMounted: true)
    let home = try String(first.nobody("path", "com.example.editor", "home").output.dropLast())
    try first.shell(Self.everything, in: home)
    let package = first.mounted.temporary.appending("Editor.xcappdata")
    let exported = try first.nobody("export", "com.example.editor", package)
    #expect(exported.status == 0, "\(exported.errors)")
    #expect(exported.errors.contains("tmp/fifo: a fifo has no contents"))
    try first.shell("rm tmp/fifo; touch -d 2003-03-03 tmp", in: home)
    let before = try fingerprint(first, AppFixture.container + "/Data")
    #expect(before.contains("trusted.insula.acl") && before.contains("trusted.insula.flags"))

    // In another store, by a command of root's.
    let second = try AppFixture(isMounted: false)
    let identity = try metadata(second)
    try second.mounted.mount()
    try second.run("import", package, "--user", "nobody", "--store", second.store)
    try second.shell(
      "touch -d 2003-03-03 tmp", in: "\(second.mounted.point)/\(AppFixture.container)/Data")
    // What came with set-user-id and set-group-id is a program of someone else's now.
    #expect(before.contains(" f 6755 "))
    let expected = before.replacing(" f 6755 ", with: " f 755 ")
    let found = try differences(fingerprint(second, AppFixture.container + "/Data"), expected)
    #expect(found.isEmpty, "\(found)")
    #expect(try metadata(second) == identity && metadata(first) != identity)
    #expect(try second.problems() == [])

    // By its user, over what is there.
    let refused = try second.nobody("import", package)
    #expect(refused.status == 1 && refused.errors.contains("already has data"))
    let replaced = try second.nobody("import", package, "--replace")
    #expect(replaced.status == 0, "\(replaced.errors)")
    try second.shell(
      "touch -d 2003-03-03 tmp", in: "\(second.mounted.point)/\(AppFixture.container)/Data")
    let after = try differences(fingerprint(second, AppFixture.container + "/Data"), expected)
    #expect(after.isEmpty, "\(after)")
    #expect(try metadata(second) == identity)
    #expect(try second.mounted.temporary.names(in: "store/tree/Users/nobody/Library/Containers").count == 1)
    // The new one is a container like the old one.
    let made = try Program.runAsNobody(["mkdir", "\(second.mounted.point)/\(AppFixture.container)/Data/new"])
    #expect(made.errors.contains("Operation not permitted"))
  }

  private func metadata(_ fixture: AppFixture) throws -> String {
    try fixture.run("path", "com.example.editor", "home", "--user", "nobody", "--store", fixture.store)
    let path =
      "\(fixture.store)/tree/\(AppFixture.container)/.com.apple.mobile_container_manager.metadata.plist"
    return try #require(FD.text(of: path, limit: 1 << 16))
  }

  @Test func packageIsWhatXcodeMakes() throws {
    let fixture = try AppFixture(isMounted: true)
    let package = fixture.mounted.temporary.appending("E.xcappdata")
    #expect(try fixture.nobody("export", "com.example.editor", package).status == 0)
    #expect(try fixture.mounted.temporary.names(in: "E.xcappdata") == ["AppData", "AppDataInfo.plist"])
    #expect(
      try fixture.mounted.temporary.names(in: "E.xcappdata/AppData") == [
        ".com.apple.mobile_container_manager.metadata.plist", "Documents", "Library", "tmp",
      ])
    let data = try Data(contentsOf: URL(fileURLWithPath: package + "/AppDataInfo.plist"))
    var info = try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: String]
    // Whose the data are, which Xcode does not say.
    #expect(info?.removeValue(forKey: "InsulaTeam") == "TEAM")
    #expect(
      info == [
        "CFBundleIdentifier": "com.example.editor", "CFBundleName": "Editor",
        "CFBundleShortVersionString": "1.2", "XCExecutableVersion": "7",
      ])
    let again = try fixture.nobody("export", "com.example.editor", package)
    #expect(again.status == 1 && again.errors.contains("already exists; nothing was changed"))
    #expect(try fixture.nobody("export", "com.example.editor", package + ".zip").status == 2)
    let closed = try fixture.mounted.temporary.makeDirectory("closed", mode: 0o555) + "/x.xcappdata"
    let refused = try fixture.nobody("export", "com.example.editor", closed)
    #expect(refused.errors == "insula: can't make \(closed): Permission denied\n", "\(refused)")
    #expect(try fixture.mounted.temporary.names(in: ".").filter { $0.contains("export") } == [])
  }

  @Test(arguments: [
    ("rm AppDataInfo.plist", "has no AppDataInfo.plist"),
    ("rm -r AppData", "has no AppDataInfo.plist or no"),
    ("rm -r AppData; ln -s ../other AppData", "no AppData"),
    ("mkfifo x; mv x AppDataInfo.plist", "has no App"),
    ("echo nonsense >AppDataInfo.plist", "can't be read"),
    ("sed -i s/CFBundleIdentifier/CFBundle/ AppDataInfo.plist", "has no CFBundleIdentifier"),
    ("sed -i s,com.example.editor,../../x, AppDataInfo.plist", "'../../x' is not an app's identifier"),
    ("sed -i s/com.example.editor/com.other/ AppDataInfo.plist", "the data of com.other, which is not"),
    ("mkdir AppData/Else", "a container has no 'AppData/Else'"),
    ("rm -r AppData/tmp; ln -s /no/where AppData/tmp", "'AppData/tmp' is not a directory"),
    ("mkfifo AppData/tmp/pipe", "AppData/tmp/pipe is a fifo"),
    (
      "mkdir -p AppData/Documents/$(yes d | head -300 | paste -sd/)",
      "is nested more than 250 directories deep"
    ),
  ])
  func whatIsNoPackageIsRefusedByName(damage: String, words: String) throws {
    let fixture = try AppFixture(isMounted: true)
    let package = fixture.mounted.temporary.appending("E.xcappdata")
    #expect(try fixture.nobody("export", "com.example.editor", package).status == 0)
    let data = "\(AppFixture.container)/Data/Documents/mine"
    try fixture.shell("echo kept >mine", in: fixture.mounted.path("\(AppFixture.container)/Data/Documents"))
    try fixture.shell(damage, in: package)
    let result = try fixture.nobody("import", package, "--replace")
    #expect(result.status == 1 && result.errors.contains(words), "\(result.errors)")
    #expect(FD.text(of: fixture.mounted.backing(data), limit: 10) == "kept\n")
    #expect(try fixture.mounted.temporary.names(in: "store/tree/Users/nobody/Library/Containers").count == 1)
  }

  @Test func linksInAPackageAreDataAndLeadNowhere() throws {
    let fixture = try AppFixture(isMounted: true)
    let package = fixture.mounted.temporary.appending("E.xcappdata")
    #expect(try fixture.nobody("export", "com.example.editor", package).status == 0)
    let secret = try fixture.mounted.temporary.write("secret", to: "secret")
    try fixture.shell("ln -s \(secret) AppData/Documents/out; ln -s . AppData/Documents/loop", in: package)
    #expect(try fixture.nobody("import", package).status == 0)
    let documents = fixture.mounted.backing("\(AppFixture.container)/Data/Documents")
    let target = try FileManager.default.destinationOfSymbolicLink(atPath: documents + "/out")
    #expect(target == secret)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: documents + "/loop") == ".")
  }

  @Test func anotherAppGetsThemIfItIsNamed() throws {
    let fixture = try AppFixture(isMounted: true)
    let package = fixture.mounted.temporary.appending("E.xcappdata")
    let home = try String(fixture.nobody("path", "com.example.editor", "home").output.dropLast())
    try fixture.shell("echo moved >Documents/file", in: home)
    #expect(try fixture.nobody("export", "com.example.editor", package).status == 0)
    #expect(try fixture.nobody("import", package, "--to", "com.example.own").status == 0)
    let file = "Users/nobody/Library/Containers/com.example.own/Data/Documents/file"
    #expect(FD.text(of: fixture.mounted.path(file), limit: 10) == "moved\n")
    let link = "\(fixture.mounted.point)/Users/nobody/Library/Containers/com.example.own/Data/Own.app"
    #expect(
      try FileManager.default.destinationOfSymbolicLink(atPath: link)
        == "../../../../Applications/Own.app")
  }

  @Test func deliveriesAreCopiesUnderFreeNames() throws {
    let fixture = try AppFixture(isMounted: true)
    let letter = try fixture.mounted.temporary.write("one", to: "Letter.txt")
    _ = try fixture.mounted.temporary.write("dotless", to: "README")
    try fixture.mounted.temporary.makeDirectory("Note.rtfd")
    _ = try fixture.mounted.temporary.write("inside", to: "Note.rtfd/TXT.rtf")
    let inbox = "\(fixture.mounted.point)/\(AppFixture.container)/Data/Documents/Inbox"
    func deliver(_ name: String) throws -> String {
      let result = try fixture.nobody(
        "deliver", "com.example.editor", fixture.mounted.temporary.appending(name))
      return result.status == 0 ? result.output : result.errors
    }
    let held = try letter.withName { (name) throws(Errno) in try FD.cwd.open(name, O_RDWR) }
    #expect(try deliver("Letter.txt") == "\(inbox)/Letter.txt\n")
    try held.fd.writeAll(Array("changed".utf8))
    #expect(
      FD.text(of: inbox + "/Letter.txt", limit: 100) == "one", "whoever has the original open has no more")
    #expect(try deliver("Letter.txt") == "\(inbox)/Letter-2.txt\n")
    #expect(try deliver("Letter.txt") == "\(inbox)/Letter-3.txt\n")
    #expect(try deliver("README") == "\(inbox)/README\n" && deliver("README") == "\(inbox)/README-2\n")
    #expect(
      try deliver("Note.rtfd") == "\(inbox)/Note.rtfd\n" && deliver("Note.rtfd") == "\(inbox)/Note-2.rtfd\n")
    #expect(FD.text(of: inbox + "/Note-2.rtfd/TXT.rtf", limit: 100) == "inside")
    var status = FileStatus()
    #expect(lstat(inbox, &status) == 0 && status.st_mode & 0o7777 == 0o700 && status.st_uid == 65534)
    try fixture.shell("mv Letter-2.txt ..; rm Letter-3.txt; rm -r Note.rtfd", in: inbox)
    #expect(try deliver("Letter.txt") == "\(inbox)/Letter-2.txt\n")
    #expect(try deliver("missing").contains("missing"))
    // Several at once, of which one is missing.
    let both = try fixture.nobody(
      "deliver", "com.example.editor", letter, fixture.mounted.temporary.appending("missing"), letter)
    #expect(both.ending == .failed && both.output == "\(inbox)/Letter-3.txt\n\(inbox)/Letter-4.txt\n")
  }

  @Test func deliveriesAreMarkedAsComingFromElsewhere() throws {
    let fixture = try AppFixture(isMounted: true)
    let letter = try fixture.mounted.temporary.write("one", to: "Letter.txt")
    #expect(setxattr(letter, "user.com.apple.quarantine", "0000;;;", 7, 0) == 0)
    try fixture.mounted.temporary.makeDirectory("Note.rtfd")
    _ = try fixture.mounted.temporary.write("inside", to: "Note.rtfd/TXT.rtf")
    symlink("TXT.rtf", fixture.mounted.temporary.appending("Note.rtfd/link"))
    let before = time(nil)
    for name in ["Letter.txt", "Note.rtfd"] {
      let path = fixture.mounted.temporary.appending(name)
      try fixture.run("deliver", "com.example.editor", path, "--user", "nobody", "--store", fixture.store)
    }
    let inbox = fixture.mounted.backing("\(AppFixture.container)/Data/Documents/Inbox")
    var numbers: [String: String] = [:]
    for name in ["Letter.txt", "Note.rtfd", "Note.rtfd/TXT.rtf"] {
      let value = try fixture.rootShell(
        "getfattr --only-values -n user.com.apple.quarantine '\(name)'", in: inbox)
      let parts = value.split(separator: ";").map(String.init)
      try #require(parts.count == 4, "\(name): \(value)")
      #expect(parts[0] == "0081" && parts[2] == "insula" && parts[1].count == 8)
      let when = try #require(Int(parts[1], radix: 16))
      #expect(when >= before && when <= time(nil))
      numbers[name] = try #require(UUID(uuidString: parts[3])).uuidString
    }
    #expect(numbers["Note.rtfd"] == numbers["Note.rtfd/TXT.rtf"], "one occasion")
    #expect(numbers["Note.rtfd"] != numbers["Letter.txt"])
    // The original is as it was.
    let own = try fixture.rootShell(
      "getfattr --only-values -n user.com.apple.quarantine '\(letter)'", in: "/")
    #expect(own == "0000;;;")
  }

  @Test(arguments: [
    ("com.example.nothing", "echo x >it", "com.example.nothing"),
    ("com.example.roots", "echo x >it", "com.example.roots"),
    ("com.example.editor", "echo x >it; chmod 0 it", "Permission denied"),
    ("com.example.editor", "mkdir it; echo x >it/in; chmod 0 it/in", "Permission denied"),
    ("com.example.editor", "mkfifo it", "it is a fifo"),
    ("com.example.editor", "mkdir it; mkfifo it/pipe", "it/pipe is a fifo"),
    ("com.example.editor", "mknod it c 1 5", "is a device"),
    ("com.example.editor", "ln -s nowhere it", "No such file"),
    ("com.example.editor", "mkdir -p it/$(yes d | head -300 | paste -sd/)", "more than 250 directories deep"),
  ])
  func whatCanNotBeDeliveredIsRefusedByName(app: String, making: String, words: String) throws {
    let fixture = try AppFixture(isMounted: true)
    let place = try fixture.mounted.temporary.makeDirectory("place", mode: 0o777)
    // As root, so that what has the mode 0 is nobody else's.
    try fixture.rootShell(making, in: place)
    let result = try fixture.nobody("deliver", app, place + "/it")
    #expect(result.ending == .failed && result.errors.contains(words), "\(result)")
    let inbox = fixture.mounted.backing("\(AppFixture.container)/Data/Documents/Inbox")
    #expect((try? FileManager.default.contentsOfDirectory(atPath: inbox)) ?? [] == [])
    let containers = fixture.mounted.backing("Users/nobody/Library/Containers")
    let left = (try? FileManager.default.contentsOfDirectory(atPath: containers)) ?? []
    #expect(left.filter { $0.hasPrefix(".") } == [])
  }

  /// Who acts in a home while its owner can be at work there is its owner, whoever has given the command.
  @Test func whatRootHasDoneForOthersIsDoneByThem() throws {
    let fixture = try AppFixture(isMounted: true)
    let package = fixture.mounted.temporary.appending("E.xcappdata")
    #expect(try fixture.nobody("export", "com.example.editor", package).status == 0)
    let letter = try fixture.mounted.temporary.write("secret", to: "Letter.txt")
    let closed = try fixture.mounted.temporary.makeDirectory("closed", mode: 0o700)
    try fixture.rootShell(
      "chmod 600 Letter.txt; chmod 700 .; echo x >E.xcappdata/AppData/Documents/new",
      in: fixture.mounted.temporary.path)
    try fixture.rootShell(
      "chmod 755 .; chown -R root E.xcappdata; chmod 700 E.xcappdata", in: fixture.mounted.temporary.path)
    for (words, ending) in [
      (["import", package, "--replace"], .notPermitted),
      (["deliver", "com.example.editor", letter], .failed),
      (["export", "com.example.editor", closed + "/E.xcappdata"], .notPermitted),
    ] as [([String], Ending)] {
      let result = try fixture.mounted.run(words + ["--user", "nobody", "--store", fixture.store])
      #expect(result.ending == ending && result.errors.contains("Permission denied"), "\(words): \(result)")
    }
    // What they can read, they bring along, and it is theirs.
    try fixture.rootShell("chmod -R a+rX E.xcappdata", in: fixture.mounted.temporary.path)
    try fixture.run("import", package, "--replace", "--user", "nobody", "--store", fixture.store)
    var status = FileStatus()
    let file = fixture.mounted.backing("\(AppFixture.container)/Data/Documents/new")
    #expect(lstat(file, &status) == 0 && status.st_uid == 65534)
  }

  /// A path that root names may lead through links of that user's: what root alone can reach stays closed.
  @Test func whatRootDoesForOthersNeedsAMount() throws {
    let fixture = try AppFixture(isMounted: true)
    let package = fixture.mounted.temporary.appending("E.xcappdata")
    #expect(try fixture.nobody("export", "com.example.editor", package).status == 0)
    let backup = fixture.mounted.temporary.appending("backup")
    #expect(try fixture.nobody("backup", "export", backup).status == 0)
    #expect(try fixture.mounted.unmount().status == 0)
    try fixture.mounted.temporary.makeDirectory("closed", mode: 0o700)
    try fixture.mounted.temporary.write("secret", to: "closed/secret")
    try fixture.mounted.temporary.makeDirectory("theirs", mode: 0o777)
    let theirs = fixture.mounted.temporary.appending("theirs")
    try fixture.shell("ln -s ../closed link; ln -s ../closed/secret letter", in: theirs)
    func tree() throws -> String { try fixture.rootShell("find . | sort", in: fixture.store + "/tree") }
    let before = try tree()
    for words in [
      ["deliver", "com.example.editor", theirs + "/letter"],
      ["export", "com.example.editor", theirs + "/link/x.xcappdata"], ["import", package, "--replace"],
      ["backup", "export", theirs + "/link/backup"], ["backup", "import", backup, "--replace"],
      ["defaults", "read"], ["open", "--print-only", theirs + "/letter"],
    ] {
      let result = try fixture.mounted.run(words + ["--user", "nobody", "--store", fixture.store])
      #expect(result.status == 6, "\(words): \(result)")
      #expect(result.errors.contains("nobody can only use it through a mount"), "\(words): \(result.errors)")
    }
    #expect(try fixture.mounted.temporary.names(in: "closed") == ["secret"])
    #expect(try tree() == before)
    // Root's own process does for nobody what it does for root, also where a mount shows another source.
    try fixture.mounted.mount(options: "fsname=other")
    for (words, ending) in [
      (["deliver", "com.example.editor", theirs + "/letter"], Ending.failed),
      (["export", "com.example.editor", theirs + "/link/x.xcappdata"], .notPermitted),
    ] {
      let result = try fixture.mounted.run(words + ["--user", "nobody", "--store", fixture.store])
      #expect(
        result.ending == ending && result.errors.contains("Permission denied"), "\(words): \(result.errors)")
    }
    #expect(try fixture.mounted.temporary.names(in: "closed") == ["secret"])
  }

  @Test func rootDeliversAndMovesForOthersAndFollowsNoLinkOfTheirs() throws {
    let fixture = try AppFixture(isMounted: true)
    let letter = try fixture.mounted.temporary.write("for you", to: "Letter.txt")
    let other = try fixture.mounted.temporary.makeDirectory("other", mode: 0o700)
    let home = try String(fixture.nobody("path", "com.example.editor", "home").output.dropLast())
    try fixture.run("deliver", "com.example.editor", letter, "--user", "nobody", "--store", fixture.store)
    var status = FileStatus()
    #expect(lstat(home + "/Documents/Inbox/Letter.txt", &status) == 0 && status.st_uid == 65534)
    // An Inbox that leads elsewhere.
    let documents = fixture.mounted.backing("\(AppFixture.container)/Data/Documents")
    try fixture.rootShell("mv Inbox was; ln -s \(other) Inbox", in: documents)
    let result = try fixture.mounted.run([
      "deliver", "com.example.editor", letter, "--user", "nobody", "--store", fixture.store,
    ])
    #expect(result.status == 1)
    #expect(try fixture.mounted.temporary.names(in: "other") == [])
    let names = try fixture.mounted.temporary.names(in: "store/tree/Users/nobody/Library/Containers")
    #expect(names == ["com.example.editor"])
  }
}
