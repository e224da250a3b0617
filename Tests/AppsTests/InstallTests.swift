// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

@Suite struct InstallTests {
  private let fixture: AppFixture

  init() throws { fixture = try AppFixture() }

  @Test func installedBundleIsTheOneThatWasSigned() throws {
    let source = try fixture.bundle {
      $0.version = "7"; $0.shortVersion = "1.2"
    }
    symlink("page.html", source + "/Contents/Resources/first.html")
    try fixture.sign("Editor.app")
    let app = try fixture.install()
    #expect(app.path == "Applications/Editor.app" && app.user == nil && app.team == "TEAM1")
    #expect(app.version == "7" && app.shortVersion == "1.2" && app.name == "Editor" && app.seal.count == 32)
    #expect(try fixture.registry.apps() == [app])
    #expect(
      try Program.run(["diff", "-r", "--no-dereference", source, "\(fixture.tree)/\(app.path)"]).status == 0)
    #expect(try fixture.staged() == [])
    #expect(try fixture.registry.intents() == [])
    #expect(try fixture.findings(deep: true) == [])
  }

  /// Files of a size that are digested while they are copied: what they are held against is still the seal.
  @Test func largeFileIsTheOneThatWasSigned() throws {
    let place = "Contents/Resources/large"
    let source = try fixture.bundle {
      $0.files["Resources/large"] = String(repeating: "0123456789abcdef", count: 200_000)
    }
    let app = try fixture.install()
    #expect(try Program.run(["diff", "-r", source, "\(fixture.tree)/\(app.path)"]).status == 0)
    #expect(try fixture.findings(deep: true) == [])
    try fixture.uninstall()
    try fixture.temporary.write(
      String(repeating: "0123456789abcdef", count: 199_999) + "0123456789abcdeF", to: "Editor.app/\(place)")
    guard case .refused(_, let findings)? = appFailure({ try fixture.install() }) else {
      Issue.record("it was installed")
      return
    }
    #expect(findings == [Bundles.Finding(.changed, place)])
    #expect(try fixture.staged() == [])
  }

  @Test func filesOfAnAppForAllAreRootsAndTheAdministrators() throws {
    let source = try fixture.bundle()
    chmod(source + "/Contents/Resources", 0o700)
    chmod(source + "/Contents/Resources/page.html", 0o4777)
    try fixture.install()
    for (place, mode) in [
      ("", 0o755), ("/Contents", 0o755), ("/Contents/Resources", 0o755),
      ("/Contents/Resources/page.html", 0o755),
      ("/Contents/Info.plist", 0o644), ("/Contents/MacOS/editor", 0o755),
    ] as [(String, FileMode)] {
      let status = try #require(fixture.status("Applications/Editor.app" + place))
      #expect(status.st_mode & 0o7777 == mode, "\(place)")
      #expect(
        status.st_uid == ProcessID.user && status.st_gid == (Program.isRoot ? 1 : ProcessID.group), "\(place)"
      )
    }
  }

  @Test func usersOwnAppIsTheirs() throws {
    try fixture.bundle()
    // It is made where it is missing.
    #expect(rmdir("\(fixture.tree)/\(fixture.home)/Applications") == 0)
    let app = try fixture.install(for: fixture.users, by: fixture.owner)
    #expect(app.user == fixture.account.uid && app.path == "\(fixture.home)/Applications/Editor.app")
    for place in ["", "/Editor.app", "/Editor.app/Contents/Info.plist"] {
      let status = try #require(fixture.status("\(fixture.home)/Applications" + place))
      #expect(status.st_uid == fixture.account.uid && status.st_gid == fixture.account.gid)
    }
    #expect(try #require(fixture.status("\(fixture.home)/Applications")).st_mode & 0o7777 == 0o755)
    #expect(try fixture.findings(deep: true) == [])
  }

  @Test func installingUserGetsTheContainers() throws {
    try fixture.bundle {
      $0.groups = ["group.org.example", "TEAM1.shared"]; $0.clouds = ["iCloud.org.example"]
    }
    let app = try fixture.install(for: fixture.users, by: fixture.owner)
    #expect(app.groups.map(\.text) == ["group.org.example", "TEAM1.shared"])
    #expect(app.clouds.map(\.text) == ["iCloud.org.example"])
    for place in [
      "Containers/org.example.editor/Data/Documents", "Containers/org.example.editor/Data/Editor.app",
      "Group Containers/group.org.example", "Group Containers/TEAM1.shared",
      "Mobile Documents/iCloud~org~example/Documents",
    ] { #expect(fixture.status("\(fixture.home)/Library/\(place)") != nil, "\(place)") }
    #expect(
      fixture.text(
        "\(fixture.home)/Library/Containers/org.example.editor/Data/Editor.app/Contents/Info.plist")
        != nil)
  }

  @Test(.enabled(if: Program.isRoot, "others than us ask"))
  func administratorGetsTheContainersOfAnAppForAll() throws {
    try fixture.bundle()
    let administrator = CallerIdentity(uid: fixture.account.uid, gid: fixture.account.gid, groups: [1])
    try fixture.install(by: administrator)
    #expect(fixture.status("\(fixture.home)/Library/Containers/org.example.editor") != nil)
  }

  @Test(.enabled(if: Program.isRoot, "others than us ask"))
  func onlyWhoMayInstalls() throws {
    try fixture.bundle()
    let before = try fixture.snapshot()
    let stranger = CallerIdentity(uid: 12345, gid: 12345, groups: [12346])
    for domain in [fixture.everyones, fixture.users] {
      let failure = appFailure { try fixture.install(for: domain, by: stranger) }
      #expect(failure == .notAllowed(doing: "install apps in", path: "/\(domain.path)"))
    }
    #expect(appFailure { try fixture.install(by: fixture.owner) } != nil, "no administrator")
    #expect(try fixture.snapshot() == before)
    try fixture.install(for: fixture.users)
    #expect(appFailure { try fixture.update(for: fixture.users, by: stranger) } != nil)
    let failure = appFailure { try fixture.uninstall(of: fixture.users, by: stranger) }
    #expect(failure == .notAllowed(doing: "remove apps from", path: "/\(fixture.users.path)"))
  }

  @Test(.enabled(if: Program.isRoot, "flags are kept by root's daemon"))
  func flagsOfAUsersApplicationsHoldInstallsThere() throws {
    try fixture.bundle()
    let directory = try fixture.store.tree.openDirectory(at: fixture.users.path)
    try Metadata(isSystem: true).setFlags(.userImmutable, on: directory.fd)
    let before = try fixture.snapshot()
    for caller in [fixture.owner, CallerIdentity.ourselves] {
      #expect(
        appFailure { try fixture.install(for: fixture.users, by: caller) }
          == .notAllowed(doing: "install apps in", path: "/\(fixture.users.path)"))
    }
    #expect(try fixture.snapshot() == before)
    try Metadata(isSystem: true).setFlags([], on: directory.fd)
    try fixture.install(for: fixture.users, by: fixture.owner)
  }

  /// The attack: whoever may add apps removes others', and with those what all users have in them.
  ///
  /// What root has made a directory that only gets more is that for root too.
  @Test(.enabled(if: Program.isRoot, "others than us ask"), arguments: [false, true])
  func whoMayOnlyAddRemovesNothing(isAppendOnly: Bool) throws {
    try fixture.bundle()
    try fixture.bundle("Other.app") { $0.identifier = "org.example.other" }
    try fixture.install()
    let caller = isAppendOnly ? CallerIdentity.ourselves : CallerIdentity(uid: 12345, gid: 12345, groups: [])
    let directory = try fixture.store.tree.openDirectory(at: "Applications")
    let metadata = Metadata(isSystem: true)
    if isAppendOnly {
      try metadata.setFlags(.systemAppend, on: directory.fd)
    } else {
      let rights: Rights = [.list, .search, .addSubdirectory]
      try SecurityAccess.store(metadata).give(
        AccessControlList([AccessControlEntry(.permit, .user(caller.uid), rights)]), to: directory.fd)
    }
    let before = try fixture.snapshot("Applications/Editor.app")
    #expect(
      appFailure { try fixture.uninstall(by: caller) }
        == .notAllowed(doing: "remove apps from", path: "/Applications"))
    try fixture.bundle { $0.version = "2" }
    for name in ["Editor.app", "Renamed.app"] {
      if name != "Editor.app" { try fixture.bundle(name) { $0.version = "2" } }
      #expect(
        appFailure { try fixture.update(name, by: caller) }
          == .notAllowed(doing: "update apps in", path: "/Applications"))
    }
    #expect(try fixture.snapshot("Applications/Editor.app") == before)
    // What has gone otherwise has left what is not theirs to remove.
    #expect(
      appFailure { try fixture.uninstall("org.example.gone", by: caller) }
        == .notAllowed(doing: "remove apps from", path: "/Applications"))
    try fixture.install("Other.app", by: caller)
    if isAppendOnly {
      try metadata.setFlags([], on: directory.fd)
    } else {
      let rights: Rights = [.list, .search, .addSubdirectory, .deleteChild]
      try SecurityAccess.store(metadata).give(
        AccessControlList([AccessControlEntry(.permit, .user(caller.uid), rights)]), to: directory.fd)
    }
    try fixture.update(by: caller)
    try fixture.uninstall(by: caller)
    #expect(fixture.status("Applications/Editor.app") == nil)
  }

  @Test func homeThatIsNotThere() throws {
    try fixture.bundle()
    for name in ["nobody-at-all", "Shared", "..", "", ".new", "a/b"] {
      guard case .store(.noHome)? = appFailure({ try fixture.install(for: .user(name)) }) else {
        Issue.record("a home '\(name)'")
        continue
      }
    }
  }

  @Test(.enabled(if: Program.isRoot, "others than us own it"))
  func whatIsNotTheUsersOwnApplications() throws {
    try fixture.bundle()
    let place = "\(fixture.tree)/\(fixture.home)/Applications"
    #expect(rmdir(place) == 0)
    mkdir(fixture.temporary.appending("outside"), 0o777)
    symlink(fixture.temporary.appending("outside"), place)
    let link = appFailure { try fixture.install(for: fixture.users, by: fixture.owner) }
    #expect(link == .inTheWay(path: "/\(fixture.users.path)", what: "something that is not a folder"))
    #expect(try fixture.temporary.names(in: "outside") == [])
    unlink(place)
    mkdir(place, 0o777)
    let strangers = appFailure { try fixture.install(for: fixture.users, by: fixture.owner) }
    #expect(
      strangers == .inTheWay(path: "/\(fixture.users.path)", what: "a folder that belongs to someone else"))
  }

  @Test func observerIsToldOfEachChange() throws {
    try fixture.bundle()
    #expect(rmdir("\(fixture.tree)/\(fixture.home)/Applications") == 0)
    let observer = Recorder()
    let app = try fixture.install(for: fixture.users, observer: observer)
    let place = BundlePlace(parent: fixture.users.path, name: "Editor.app")
    #expect(
      observer.all == [.directory(name: "Applications", in: fixture.home), .appears(place, seal: app.seal)])
    let refusing = Recorder(failure: .EBUSY)
    let failure = appFailure { try fixture.install(for: .everyone, observer: refusing) }
    #expect(
      failure == .failed(doing: "install", path: "\(fixture.tree)/Applications/Editor.app", errno: .EBUSY))
    #expect(try fixture.names("Applications") == ["Utilities"])
    #expect(try fixture.staged() == [])
    #expect(try fixture.registry.intents() == [])
  }

  @Test func progressGrowsToTheWhole() throws {
    try fixture.bundle {
      $0.files["Resources/large"] = String(repeating: "0123456789abcdef", count: 2_000_000)
    }
    let seen = Mutex<[InstallProgress]>([])
    try fixture.install(waiting: .init(progress: { progress in seen.withLock { $0.append(progress) } }))
    let all = seen.withLock { $0 }
    #expect(Set(all.map(\.phase)) == [.looking, .copying, .verifying, .finishing])
    let last = try #require(all.last)
    #expect(last.done == last.total && last.filesDone == last.filesTotal && last.total > 32_000_000)
    #expect(zip(all, all.dropFirst()).allSatisfy { $0.done <= $1.done })
  }

  @Test(arguments: [InstallProgress.Phase.looking, .copying, .verifying])
  func stoppedInstallationLeavesNothing(phase: InstallProgress.Phase) throws {
    try fixture.bundle {
      $0.files["Resources/large"] = String(repeating: "0123456789abcdef", count: 2_000_000)
    }
    let before = try fixture.snapshot()
    let isOver = Atomic(false)
    let wait = InstallWait(
      progress: { if $0.phase == phase { isOver.store(true, ordering: .relaxed) } },
      isCancelled: { isOver.load(ordering: .relaxed) })
    #expect(appFailure { try fixture.install(waiting: wait) } == .cancelled)
    #expect(try fixture.staged() == [])
    #expect(try fixture.snapshot() == before)
    #expect(try fixture.registry.apps() == [])
  }

  /// Who waits goes away while what was copied is being read: that is not what is wrong with it.
  @Test func stoppedVerificationIsNoRefusal() throws {
    let source = try fixture.bundle()
    #expect(truncate(source + "/Contents/Resources/page.html", 1 << 30) == 0)
    let isOver = Atomic(false)
    let wait = InstallWait(
      progress: { if $0.phase == .verifying { isOver.store(true, ordering: .relaxed) } },
      isCancelled: { isOver.load(ordering: .relaxed) })
    #expect(appFailure { try fixture.install(waiting: wait) } == .cancelled)
    #expect(try fixture.staged() == [])
  }

  @Test func thereMustBeRoom() throws {
    let source = try fixture.bundle()
    // More than any disk has; none of it is there.
    try fixture.write("", to: "Editor.app/Contents/Resources/hole")
    #expect(truncate(source + "/Contents/Resources/hole", 1 << 43) == 0)
    guard case .noSpace(let needed, _, _)? = appFailure({ try fixture.install() }) else {
      Issue.record("there was room")
      return
    }
    #expect(needed > 1 << 43)
  }

  /// Another bundle of the same app gets there while the first one is copied.
  @Test func whatWasInstalledMeanwhileIsThereAlready() throws {
    try fixture.bundle()
    try fixture.bundle("Other.app")
    let other = try TemporaryDirectory.open(fixture.temporary.appending("Other.app"))
    let installer = try fixture.installer()
    let hasBegun = Atomic(false)
    let second = Mutex<InstalledApp?>(nil)
    let wait = InstallWait(progress: { progress in
      guard progress.phase == .verifying, !hasBegun.exchange(true, ordering: .relaxed) else { return }
      let fd = other.fd
      let app = try? installer.install(fd, named: "Other.app", for: .everyone, by: .ourselves)
      second.withLock { $0 = app }
    })
    let failure = appFailure { try fixture.install(waiting: wait) }
    let installed = try #require(second.withLock { $0 })
    #expect(failure == .alreadyInstalled(identifier: "org.example.editor", path: "/Applications/Other.app"))
    #expect(try fixture.registry.apps() == [installed])
    #expect(try fixture.names("Applications") == ["Other.app", "Utilities"])
    #expect(try fixture.staged() == [])
  }

  /// A folder comes meanwhile that a Mac would take for the bundle's own name.
  @Test func whatIsCreatedMeanwhileIsInTheWay() throws {
    try fixture.bundle()
    let twin = "\(fixture.tree)/Applications/editor.app"
    let wait = InstallWait(progress: { if $0.phase == .verifying { mkdir(twin, 0o755) } })
    let failure = appFailure { try fixture.install(waiting: wait) }
    #expect(failure == .twin(path: "/Applications/Editor.app", other: "editor.app"))
    #expect(try fixture.names("Applications") == ["Utilities", "editor.app"])
    #expect(try fixture.registry.apps() == [] && fixture.staged() == [])
  }

  @Test func threadsThatInstallTheSameDoItOnce() throws {
    try fixture.bundle()
    let installer = try fixture.installer()
    let source = try TemporaryDirectory.open(fixture.temporary.appending("Editor.app"))
    let fd = source.fd
    let done = Atomic(0)
    let threads = try (0..<4).map { _ in
      try JoinableThread(name: "install") {
        let own = try? fd.reopened(O_RDONLY | O_DIRECTORY)
        guard let own else { return }
        if (try? installer.install(own.fd, named: "Editor.app", for: .everyone, by: .ourselves)) != nil {
          done.add(1, ordering: .relaxed)
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(done.load(ordering: .relaxed) == 1)
    #expect(try fixture.registry.apps().count == 1)
    #expect(try fixture.staged() == [])
    #expect(try fixture.findings(deep: true) == [])
  }
}

/// Who is believed, and when.
@Suite struct TrustTests {
  private let fixture: AppFixture

  init() throws {
    fixture = try AppFixture()
    try fixture.bundle()
  }

  private func refusal(_ body: () throws -> Void) throws -> [Bundles.Finding.Kind] {
    let before = try fixture.snapshot()
    guard case .refused("Editor.app", let findings)? = appFailure(body) else { return [] }
    #expect(try fixture.snapshot() == before)
    #expect(try fixture.staged() == [])
    return findings.map(\.kind)
  }

  private func install(ahead: Int64) throws {
    let source = try TemporaryDirectory.open(fixture.temporary.appending("Editor.app"))
    let installer = try fixture.installer(ahead: ahead)
    _ = try installer.install(source.fd, named: "Editor.app", for: .everyone, by: .ourselves)
  }

  @Test func certificatesMustBeValidNow() throws {
    #expect(try refusal { try install(ahead: 10 * 365 * 86400) } == [.expired])
    #expect(try refusal { try install(ahead: -10 * 86400) } == [.notYetValid])
    try install(ahead: 0)
  }

  @Test func storeTrustsOnlyItsOwnRoots() throws {
    for name in try fixture.temporary.names(in: "store/keys/trust") {
      unlink(fixture.temporary.appending("store/keys/trust/\(name)"))
    }
    #expect(try refusal { try install(ahead: 0) } == [.untrusted])
    rmdir(fixture.temporary.appending("store/keys/trust"))
    #expect(try refusal { try install(ahead: 0) } == [.untrusted])
  }

  @Test func unsignedBundleIsRefused() throws {
    let place = try TemporaryDirectory.open(fixture.temporary.appending("Editor.app/Contents"))
    try "_CodeSignature".withName { (name) throws(Errno) in try place.fd.removeTree(name) }
    #expect(try refusal { try install(ahead: 0) } == [.unsigned])
  }
}
