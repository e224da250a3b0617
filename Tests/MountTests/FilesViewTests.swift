// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What a hostile user or app may try with files views:
//
// - pass for another app, for a folder or for iCloud Drive by what it calls itself: `FilesPlacesTests`
// - get at what is not shown, by the names that the tree has: `nothingElseIsThere`
// - make, move or remove what is shown: `nothingElseIsThere`
// - have one mounted where others look: `othersPlacesAreRefused`
// - keep others from having one, by a place that never answers: `whatNeverAnswersHoldsNobody`
// - look into somebody else's: `othersHaveNone`
// - change what was delivered: `inboxKeepsItsRules`
// - have very many: they are in the same budget as the user's running apps (`RunLimitTests`)

/// `insula mount --files`.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct FilesViewTests {
  private static let shares = "<key>UIFileSharingEnabled</key><true/>"

  /// A store with an app that shares its Documents and one that does not, both with a container, and a view.
  private struct Fixture {
    let run: RunFixture
    let files: String

    init(rootless: Bool = false, mounted: Bool = true) throws {
      run = try RunFixture(rootless: rootless)
      try run.install("Pages", options: ["--identifier", "org.example.pages"], info: FilesViewTests.shares)
      try run.mounted.temporary.makeDirectory("files", mode: 0o700)
      files = run.mounted.temporary.appending("files")
      try #require(chown(files, run.user.uid, run.user.gid) == 0)
      let made = try shell("insula path org.example.pages documents; insula path org.example.notes documents")
      try #require(made.status == 0, "\(made.errors)")
      if mounted { try mount() }
    }

    func mount() throws {
      let result = try shell("\"$INSULA\" mount --files \"$POINT\" \"$FILES\"")
      try #require(result.status == 0, "\(result.errors)")
    }

    func shell(_ script: String, as account: Account? = nil) throws -> ProgramResult {
      try run.shell(
        "FILES=\(files); PAGES=\"$(dirname \"$(dirname \"$DATA\")\")/org.example.pages/Data/Documents\"\n"
          + script, as: account)
    }
  }

  @Test(arguments: [false, true])
  func appsThatShareAreShownByTheirNames(rootless: Bool) throws {
    let fixture = try Fixture(rootless: rootless)
    let listed = try fixture.shell("ls \"$FILES\"")
    let names = listed.output.split(separator: "\n")
    #expect(names.contains("Pages") && names.contains("Documents"), "\(listed.output)\(listed.errors)")
    #expect(!names.contains("Notes") && !names.contains("Library"), "\(listed.output)")
    // What is written here is there, and the other way round, at once.
    let written = try fixture.shell(
      """
      cd "$FILES/Pages" && echo 1 >a && cat "$PAGES/a" && echo 2 >"$PAGES/a" && cat a && rm "$PAGES/a" && ls
      echo 3 >../Documents/b && mv ../Documents/b . && cat "$PAGES/b" && pwd -P
      """)
    #expect(written.output == "1\n2\n3\n\(fixture.files)/Pages\n", "\(written.output)\(written.errors)")
    // One that comes and one that goes.
    try fixture.run.install(
      "Draw", options: ["--identifier", "org.example.draw"],
      info: "<key>UISupportsDocumentBrowser</key><true/>")
    let draw = "insula path org.example.draw documents >/dev/null; "
    #expect(try fixture.shell(draw + "ls -d \"$FILES/Draw\"").status == 0)
    try fixture.run.succeed("uninstall", "org.example.draw", "--store", fixture.run.mounted.store)
    let gone = try fixture.shell("ls \"$FILES\"; ls -d \"$FILES/Draw\"")
    #expect(gone.ending == .seriousTrouble && !gone.output.contains("Draw"), "\(gone)")
    // A folder that its user makes, and one that they hide.
    let folders = try fixture.shell(
      """
      home="$POINT/Users/$(id -un)"; mkdir "$home/Mine" "$home/Hidden"; ls -d "$FILES/Mine"
      "$INSULA" flags hidden "$home/Hidden"; ls "$FILES" | grep Hidden
      rmdir "$home/Mine"; ls -d "$FILES/Mine"
      """)
    #expect(folders.output == "\(fixture.files)/Mine\n", "\(folders.output)\(folders.errors)")
  }

  /// What apps keep in iCloud has their names there, and nothing else of the containers is to be seen.
  @Test(arguments: [false, true])
  func cloudDriveHasWhatAppsKeepThere(rootless: Bool) throws {
    let fixture = try Fixture(rootless: rootless)
    let clouds = "com.apple.developer.ubiquity-container-identifiers"
    for name in ["Sky", "Wind"] {
      try fixture.run.install(
        name, entitlements: "<key>\(clouds)</key><array><string>iCloud.org.example.\(name)</string></array>",
        options: ["--identifier", "org.example.\(name.lowercased())"])
    }
    let result = try fixture.shell(
      """
      real=$(insula path org.example.sky icloud); echo 1 >"$real/Documents/a"; mkdir "$real/Other"
      cd "$FILES/iCloud Drive"; cat Sky/a; echo 2 >Sky/a; cat "$real/Documents/a"; ls -d Sky/../Sky
      ls -d iCloud~org~example~Sky Sky/Other; mkdir new; rmdir Sky; mv Sky Sky2
      insula path org.example.wind icloud; ls
      """)
    let container = "Library/Mobile Documents/iCloud~org~example~Wind"
    #expect(result.output.hasPrefix("1\n2\nSky/../Sky\n"), "\(result.output)\(result.errors)")
    #expect(result.output.hasSuffix("\(container)\nSky\nWind\n"), "\(result.output)\(result.errors)")
    #expect(result.errors.components(separatedBy: "No such file").count == 3, "\(result.errors)")
    #expect(!result.output.contains("Other"), "\(result.output)")
  }

  @Test(arguments: [false, true])
  func nothingElseIsThere(rootless: Bool) throws {
    let fixture = try Fixture(rootless: rootless)
    let result = try fixture.shell(
      """
      cd "$FILES"; for name in Users Library Applications System .Trash Notes Users/Shared; do
        ls -d "$name" && echo "found $name"; done
      mkdir new; touch new; ln -s / Pages/link; mv Pages other; rmdir Movies; mv Pages/link .; ln Pages/link x
      mkdir Users; mv Documents Users; mv Pages Documents/; ls -d Pages/../Users Pages/../../Users
      setfattr -n user.a -v 1 .; chmod 777 .; ls Pages
      """)
    #expect(!result.output.contains("found"), "\(result.output)")
    #expect(result.output.hasSuffix("link\n"), "\(result.output)\(result.errors)")
    let refusals = result.errors.components(separatedBy: "Read-only").count - 1
    #expect(refusals >= 7, "\(result.errors)")
    // A folder that becomes a link, and one that is moved out of the view while somebody is in it.
    let swapped = try fixture.shell(
      """
      home="$POINT/Users/$(id -un)"; rmdir "$home/Sites"; ln -s "$home/Library" "$home/Sites"
      ls "$FILES/Sites/Preferences"; mkdir "$home/Downloads/in"; cd "$FILES/Downloads/in"; echo 1 >a
      mv "$home/Downloads/in" "$home/Library/in"; ls .; ls ..
      """)
    #expect(!swapped.output.contains("a\n"), "\(swapped.output)\(swapped.errors)")
    #expect(swapped.errors.contains("Sites/Preferences"), "\(swapped.errors)")
  }

  @Test(arguments: [false, true])
  func inboxKeepsItsRules(rootless: Bool) throws {
    let fixture = try Fixture(rootless: rootless)
    let result = try fixture.shell(
      """
      echo 1 >"$FILES/Documents/letter"
      insula deliver org.example.pages "$POINT/Users/$(id -un)/Documents/letter" >/dev/null
      cd "$FILES/Pages/Inbox"; cat letter; echo 2 >>letter; mv letter other; touch new; mkdir d; rm letter; ls
      """)
    #expect(result.output == "1\n", "\(result.output)\(result.errors)")
    #expect(result.errors.components(separatedBy: "\n").count >= 5, "\(result.errors)")
  }

  @Test func othersHaveNone() throws {
    let fixture = try Fixture()
    let other = try TemporaryAccount()
    try #require(chmod(fixture.run.mounted.temporary.path, 0o755) == 0)
    for account in [other.account, RunFixture.root] {
      let looked = try fixture.shell("ls \"$FILES\"", as: account)
      #expect(looked.ending == .seriousTrouble && looked.errors.contains("Permission denied"), "\(looked)")
    }
    // Who has no home in the store has nothing to see.
    let refused = try fixture.shell("\"$INSULA\" mount --files \"$POINT\" /", as: other.account)
    #expect(refused.ending == .failed, "\(refused)")
    let asked = try fixture.run.ask(
      #"{"verb":"files","files":{"mountPoint":"\#(fixture.files)","languages":""}}"#, as: other.account)
    #expect(asked.contains("there is no home"), "\(asked)")
  }

  @Test func othersPlacesAreRefused() throws {
    let fixture = try Fixture(mounted: false)
    let other = try TemporaryAccount()
    let theirs = fixture.run.mounted.temporary.appending("theirs")
    try fixture.run.mounted.temporary.makeDirectory("theirs", mode: 0o777)
    try #require(chown(theirs, other.account.uid, other.account.gid) == 0)
    let made = try fixture.shell("mkdir -p \"$FILES/own\"; ln -s \"$FILES/own\" \"$FILES/link\"")
    try #require(made.status == 0, "\(made.errors)")
    let home = "\(fixture.run.mounted.point)/Users/\(fixture.run.user.name)/Documents"
    for place in [
      theirs, "/proc/self", "/proc/1", "/proc", "/", "/etc", "/dev/shm", "relative", "", home,
      "\(fixture.files)/link", "\(fixture.files)/missing", "\(fixture.files)/own/../../theirs",
    ] {
      let answer = try fixture.run.ask(
        #"{"verb":"files","files":{"mountPoint":"\#(place)","languages":""}}"#)
      #expect(answer.contains("failure") || answer.contains("files view"), "\(place): \(answer)")
    }
    let mounts = try MountTable.current().entries.filter { $0.source == "insula-files" }.map(\.mountPoint)
    #expect(!mounts.contains { $0.hasPrefix(fixture.run.mounted.temporary.path) || $0.hasPrefix("/proc") })
    // The command says what to do.
    let worded = try fixture.shell("\"$INSULA\" mount --files \"$POINT\" \(theirs)")
    #expect(worded.errors.contains("must be yours"), "\(worded.errors)")
  }

  @Test func whatNeverAnswersHoldsNobody() throws {
    let fixture = try Fixture(mounted: false)
    let other = try TemporaryAccount()
    try fixture.run.succeed("user", "add", other.account.name, "--store", fixture.run.mounted.store)
    // A filesystem of another user's, who has stopped what serves it.
    let hanging = try MountedStore(owner: other.account)
    try hanging.mount()
    let worker = try #require(try hanging.daemon())
    try #require(kill(worker, SIGSTOP) == 0)
    defer { kill(worker, SIGCONT) }
    let line = #"{"verb":"files","files":{"mountPoint":"\#(hanging.point)/a/b","languages":""}}"#
    let ask = """
      import socket, sys
      s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(60)
      s.sendall(sys.argv[2].encode() + b"\\n"); print(s.makefile().readline())
      """
    let (socket, user) = (try fixture.run.mounted.socket(), "\(other.account.uid)")
    let answer = Condition(String?.none)
    let thread = try JoinableThread(name: "asks") {
      let become = ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
      let asked = try? Program.run(become + ["/usr/bin/python3", "-c", ask, socket, line])
      answer.change { $0 = asked.map { $0.output + $0.errors } ?? "" }
    }
    let mounted = try fixture.shell("\"$INSULA\" mount --files \"$POINT\" \"$FILES\" && ls \"$FILES\"")
    #expect(mounted.output.contains("Pages"), "\(mounted.errors)")
    thread.join()
    let told = answer.withLock { $0 } ?? ""
    #expect(told.contains("can't mount"), "\(told)")
  }

  @Test(arguments: [false, true])
  func goesOnWhenTheWorkerDies(rootless: Bool) throws {
    let fixture = try Fixture(rootless: rootless)
    let held = fixture.files + "/Pages/held"
    let before = try fixture.shell("echo 1 >\(held)")
    try #require(before.status == 0, "\(before.errors)")
    let worker = try #require(try fixture.run.mounted.daemon())
    try #require(kill(worker, SIGKILL) == 0)
    let after = try fixture.shell("cd \"$FILES/Pages\" && cat held && echo 2 >held && cat \"$PAGES/held\"")
    #expect(after.output == "1\n2\n", "\(after.output)\(after.errors)")
    #expect(try fixture.shell("ls \"$FILES\"").output.contains("Pages"))
  }

  @Test(arguments: [false, true])
  func goesWithTheStore(rootless: Bool) throws {
    let fixture = try Fixture(rootless: rootless)
    let twice = try fixture.shell("\"$INSULA\" mount --files \"$POINT\" \"$FILES\"")
    #expect(twice.ending == .busy && twice.errors.contains("in use"), "\(twice)")
    // Its user takes it away, and has it again.
    let taken = try fixture.shell("\"$INSULA\" unmount \"$FILES\" && ls \"$FILES\"")
    #expect(taken.status == 0 && taken.output.isEmpty, "\(taken.output)\(taken.errors)")
    try fixture.mount()
    // While it is used, the store stays.
    let busy = try fixture.shell(
      """
      cd "$FILES/Pages"; sleep 60 >/dev/null 2>&1 & user=$!
      until [ "$(readlink /proc/$user/cwd)" = "$FILES/Pages" ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.01; done
      echo $user
      """)
    let user = try #require(Int32(busy.output.trimmingCharacters(in: .whitespacesAndNewlines)))
    defer { kill(user, SIGKILL) }
    let point = fixture.run.mounted.point
    let refused = try fixture.run.mounted.run(["unmount", point])
    #expect(refused.status == 3 && refused.errors.contains("pid \(user)"), "\(refused.errors)")
    kill(user, SIGKILL)
    let unmounted = try fixture.run.mounted.unmount()
    #expect(unmounted.status == 0, "\(unmounted.errors)")
    #expect(try MountTable.current().top(at: fixture.files) == nil)
  }

  /// Two of one user: each that is used is named, and both go with the store.
  @Test(arguments: [false, true])
  func twoOfOneUserGoWithTheStore(rootless: Bool) throws {
    let fixture = try Fixture(rootless: rootless)
    let mounted = fixture.run.mounted
    try mounted.temporary.makeDirectory("more", mode: 0o700)
    let places = [fixture.files, mounted.temporary.appending("more")]
    try #require(chown(places[1], fixture.run.user.uid, fixture.run.user.gid) == 0)
    let added = try fixture.shell("\"$INSULA\" mount --files \"$POINT\" \(places[1])")
    #expect(added.ending == .ok, "\(added)")
    var users: [Int32] = []
    defer { for user in users { kill(user, SIGKILL) } }
    for place in places {
      let started = try fixture.shell("cd \(place)/Pages; sleep 600 >/dev/null 2>&1 & echo $!")
      users.append(try #require(Int32(started.output.dropLast()), "\(started)"))
    }
    while let user = users.first {
      let refused = try mounted.run("unmount", mounted.point)
      #expect(refused.ending == .busy, "\(refused)")
      for user in users { #expect(refused.errors.contains("pid \(user) "), "\(refused)") }
      #expect(refused.errors.components(separatedBy: "working directory ").count - 1 == users.count)
      for place in places { #expect(try MountTable.current().top(at: place) != nil) }
      kill(user, SIGKILL)
      #expect(try Program.waitForEnd(user))
      users.removeFirst()
    }
    let result = try mounted.unmount()
    #expect(result.ending == .ok, "\(result)")
    for place in places { #expect(try MountTable.current().top(at: place) == nil, "\(place)") }
    try mounted.mount()
  }

  /// The mount option.
  @Test func comesWithTheStore() throws {
    let fixture = try Fixture(rootless: true, mounted: false)
    let point = fixture.run.mounted.point
    try fixture.run.succeed("unmount", point)
    let mounted = try fixture.run.mounted.run(
      ["mount", fixture.run.mounted.store, point, "-o", "files=\(fixture.files)"])
    #expect(mounted.status == 0, "\(mounted.errors)")
    #expect(try fixture.shell("ls \"$FILES\"").output.contains("Pages"))
    try fixture.run.succeed("unmount", point)
    #expect(try MountTable.current().top(at: fixture.files) == nil)
    try fixture.run.mounted.mount()
    // A machine's store has many users.
    let system = try Fixture(mounted: false)
    try system.run.succeed("unmount", system.run.mounted.point)
    let refused = try system.run.mounted.run(
      ["mount", system.run.mounted.store, system.run.mounted.point, "-o", "files=\(system.files)"])
    #expect(refused.ending == .failed && refused.errors.contains("insula mount --files"), "\(refused)")
  }
}
