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
  private let house: AppHouse

  init() throws { house = try AppHouse() }

  @Test func installedBundleIsTheOneThatWasSigned() throws {
    let source = try house.bundle {
      $0.version = "7"; $0.shortVersion = "1.2"
    }
    symlink("page.html", source + "/Contents/Resources/first.html")
    try house.sign("Editor.app")
    let app = try house.install()
    #expect(app.path == "Applications/Editor.app" && app.user == nil && app.team == "TEAM1")
    #expect(app.version == "7" && app.shortVersion == "1.2" && app.name == "Editor" && app.seal.count == 32)
    #expect(try house.registry.apps() == [app])
    #expect(
      try Program.run(["diff", "-r", "--no-dereference", source, "\(house.tree)/\(app.path)"]).status == 0)
    #expect(try house.staged() == [])
    #expect(try house.registry.intents() == [])
    #expect(try house.findings(deep: true) == [])
  }

  /// Files of a size that are digested while they are copied: what they are held against is still the seal.
  @Test func largeFileIsTheOneThatWasSigned() throws {
    let place = "Contents/Resources/large"
    let source = try house.bundle {
      $0.files["Resources/large"] = String(repeating: "0123456789abcdef", count: 200_000)
    }
    let app = try house.install()
    #expect(try Program.run(["diff", "-r", source, "\(house.tree)/\(app.path)"]).status == 0)
    #expect(try house.findings(deep: true) == [])
    try house.uninstall()
    try house.temporary.write(
      String(repeating: "0123456789abcdef", count: 199_999) + "0123456789abcdeF", to: "Editor.app/\(place)")
    guard case .refused(_, let findings)? = appFailure({ try house.install() }) else {
      Issue.record("it was installed")
      return
    }
    #expect(findings == [Bundles.Finding(.changed, place)])
    #expect(try house.staged() == [])
  }

  @Test func filesOfAnAppForAllAreRootsAndTheAdministrators() throws {
    let source = try house.bundle()
    chmod(source + "/Contents/Resources", 0o700)
    chmod(source + "/Contents/Resources/page.html", 0o4777)
    try house.install()
    for (place, mode) in [
      ("", 0o755), ("/Contents", 0o755), ("/Contents/Resources", 0o755),
      ("/Contents/Resources/page.html", 0o755),
      ("/Contents/Info.plist", 0o644), ("/Contents/MacOS/editor", 0o755),
    ] as [(String, FileMode)] {
      let status = try #require(house.status("Applications/Editor.app" + place))
      #expect(status.st_mode & 0o7777 == mode, "\(place)")
      #expect(
        status.st_uid == ProcessID.user && status.st_gid == (Program.isRoot ? 1 : ProcessID.group), "\(place)"
      )
    }
  }

  @Test func usersOwnAppIsTheirs() throws {
    try house.bundle()
    // It is made where it is missing.
    #expect(rmdir("\(house.tree)/\(house.home)/Applications") == 0)
    let app = try house.install(for: house.users, asking: house.owner)
    #expect(app.user == house.account.uid && app.path == "\(house.home)/Applications/Editor.app")
    for place in ["", "/Editor.app", "/Editor.app/Contents/Info.plist"] {
      let status = try #require(house.status("\(house.home)/Applications" + place))
      #expect(status.st_uid == house.account.uid && status.st_gid == house.account.gid)
    }
    #expect(try #require(house.status("\(house.home)/Applications")).st_mode & 0o7777 == 0o755)
    #expect(try house.findings(deep: true) == [])
  }

  @Test func installingUserGetsTheContainers() throws {
    try house.bundle {
      $0.groups = ["group.org.example", "TEAM1.shared"]; $0.clouds = ["iCloud.org.example"]
    }
    let app = try house.install(for: house.users, asking: house.owner)
    #expect(app.groups.map(\.text) == ["group.org.example", "TEAM1.shared"])
    #expect(app.clouds.map(\.text) == ["iCloud.org.example"])
    for place in [
      "Containers/org.example.editor/Data/Documents", "Containers/org.example.editor/Data/Editor.app",
      "Group Containers/group.org.example", "Group Containers/TEAM1.shared",
      "Mobile Documents/iCloud~org~example/Documents",
    ] { #expect(house.status("\(house.home)/Library/\(place)") != nil, "\(place)") }
    #expect(
      house.text("\(house.home)/Library/Containers/org.example.editor/Data/Editor.app/Contents/Info.plist")
        != nil)
  }

  @Test(.enabled(if: Program.isRoot, "others than us ask"))
  func administratorGetsTheContainersOfAnAppForAll() throws {
    try house.bundle()
    let administrator = Asker(uid: house.account.uid, gid: house.account.gid, groups: [1])
    try house.install(asking: administrator)
    #expect(house.status("\(house.home)/Library/Containers/org.example.editor") != nil)
  }

  @Test(.enabled(if: Program.isRoot, "others than us ask"))
  func onlyWhoMayInstalls() throws {
    try house.bundle()
    let before = try house.snapshot()
    let stranger = Asker(uid: 12345, gid: 12345, groups: [12346])
    for domain in [house.everyones, house.users] {
      let failure = appFailure { try house.install(for: domain, asking: stranger) }
      #expect(failure == .notAllowed(doing: "install apps in", path: "/\(domain.path)"))
    }
    #expect(appFailure { try house.install(asking: house.owner) } != nil, "no administrator")
    #expect(try house.snapshot() == before)
    try house.install(for: house.users)
    #expect(appFailure { try house.update(for: house.users, asking: stranger) } != nil)
    let failure = appFailure { try house.uninstall(of: house.users, asking: stranger) }
    #expect(failure == .notAllowed(doing: "remove apps from", path: "/\(house.users.path)"))
  }

  @Test(.enabled(if: Program.isRoot, "flags are kept by root's daemon"))
  func flagsOfAUsersApplicationsHoldInstallsThere() throws {
    try house.bundle()
    let directory = try house.store.tree.openDirectory(at: house.users.path)
    try Metadata(isSystem: true).setFlags(.userImmutable, on: directory.fd)
    let before = try house.snapshot()
    for asker in [house.owner, Asker.ourselves] {
      #expect(
        appFailure { try house.install(for: house.users, asking: asker) }
          == .notAllowed(doing: "install apps in", path: "/\(house.users.path)"))
    }
    #expect(try house.snapshot() == before)
    try Metadata(isSystem: true).setFlags([], on: directory.fd)
    try house.install(for: house.users, asking: house.owner)
  }

  @Test func homeThatIsNotThere() throws {
    try house.bundle()
    for name in ["nobody-at-all", "Shared", "..", "", ".new", "a/b"] {
      guard case .store(.noHome)? = appFailure({ try house.install(for: .user(name)) }) else {
        Issue.record("a home '\(name)'")
        continue
      }
    }
  }

  @Test(.enabled(if: Program.isRoot, "others than us own it"))
  func whatIsNotTheUsersOwnApplications() throws {
    try house.bundle()
    let place = "\(house.tree)/\(house.home)/Applications"
    #expect(rmdir(place) == 0)
    mkdir(house.temporary.appending("outside"), 0o777)
    symlink(house.temporary.appending("outside"), place)
    let link = appFailure { try house.install(for: house.users, asking: house.owner) }
    #expect(link == .inTheWay(path: "/\(house.users.path)", what: "something that is no folder"))
    #expect(try house.temporary.names(in: "outside") == [])
    unlink(place)
    mkdir(place, 0o777)
    let strangers = appFailure { try house.install(for: house.users, asking: house.owner) }
    #expect(
      strangers == .inTheWay(path: "/\(house.users.path)", what: "a folder that belongs to someone else"))
  }

  @Test func watchIsToldOfEachChange() throws {
    try house.bundle()
    #expect(rmdir("\(house.tree)/\(house.home)/Applications") == 0)
    let watch = Recorder()
    let app = try house.install(for: house.users, watch: watch)
    let place = BundlePlace(parent: house.users.path, name: "Editor.app")
    #expect(watch.all == [.directory(name: "Applications", in: house.home), .appears(place, seal: app.seal)])
    let refusing = Recorder(failure: .EBUSY)
    let failure = appFailure { try house.install(for: .everyone, watch: refusing) }
    #expect(
      failure == .failed(doing: "install", path: "\(house.tree)/Applications/Editor.app", errno: .EBUSY))
    #expect(try house.names("Applications") == ["Utilities"])
    #expect(try house.staged() == [])
    #expect(try house.registry.intents() == [])
  }

  @Test func progressGrowsToTheWhole() throws {
    try house.bundle { $0.files["Resources/large"] = String(repeating: "0123456789abcdef", count: 2_000_000) }
    let seen = Mutex<[InstallProgress]>([])
    try house.install(waiting: .init(progress: { progress in seen.withLock { $0.append(progress) } }))
    let all = seen.withLock { $0 }
    #expect(Set(all.map(\.phase)) == [.looking, .copying, .verifying, .finishing])
    let last = try #require(all.last)
    #expect(last.done == last.total && last.filesDone == last.filesTotal && last.total > 32_000_000)
    #expect(zip(all, all.dropFirst()).allSatisfy { $0.done <= $1.done })
  }

  @Test(arguments: [InstallProgress.Phase.looking, .copying, .verifying])
  func stoppedInstallationLeavesNothing(phase: InstallProgress.Phase) throws {
    try house.bundle { $0.files["Resources/large"] = String(repeating: "0123456789abcdef", count: 2_000_000) }
    let before = try house.snapshot()
    let isOver = Atomic(false)
    let wait = InstallWait(
      progress: { if $0.phase == phase { isOver.store(true, ordering: .relaxed) } },
      isCancelled: { isOver.load(ordering: .relaxed) })
    #expect(appFailure { try house.install(waiting: wait) } == .cancelled)
    #expect(try house.staged() == [])
    #expect(try house.snapshot() == before)
    #expect(try house.registry.apps() == [])
  }

  @Test func thereMustBeRoom() throws {
    let source = try house.bundle()
    // More than any disk has; none of it is there.
    try house.write("", to: "Editor.app/Contents/Resources/hole")
    #expect(truncate(source + "/Contents/Resources/hole", 1 << 43) == 0)
    guard case .noSpace(let needed, _, _)? = appFailure({ try house.install() }) else {
      Issue.record("there was room")
      return
    }
    #expect(needed > 1 << 43)
  }

  @Test func threadsThatInstallTheSameDoItOnce() throws {
    try house.bundle()
    let installer = try house.installer()
    let source = try TemporaryDirectory.open(house.temporary.appending("Editor.app"))
    let fd = source.fd
    let done = Atomic(0)
    let threads = try (0..<4).map { _ in
      try JoinableThread(name: "install") {
        let own = try? fd.reopened(O_RDONLY | O_DIRECTORY)
        guard let own else { return }
        if (try? installer.install(own.fd, named: "Editor.app", for: .everyone, asking: .ourselves)) != nil {
          done.add(1, ordering: .relaxed)
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(done.load(ordering: .relaxed) == 1)
    #expect(try house.registry.apps().count == 1)
    #expect(try house.staged() == [])
    #expect(try house.findings(deep: true) == [])
  }
}

/// Who is believed, and when.
@Suite struct TrustTests {
  private let house: AppHouse

  init() throws {
    house = try AppHouse()
    try house.bundle()
  }

  private func refusal(_ body: () throws -> Void) throws -> [Bundles.Finding.Kind] {
    let before = try house.snapshot()
    guard case .refused("Editor.app", let findings)? = appFailure(body) else { return [] }
    #expect(try house.snapshot() == before)
    #expect(try house.staged() == [])
    return findings.map(\.kind)
  }

  private func install(ahead: Int64) throws {
    let source = try TemporaryDirectory.open(house.temporary.appending("Editor.app"))
    let installer = try house.installer(ahead: ahead)
    _ = try installer.install(source.fd, named: "Editor.app", for: .everyone, asking: .ourselves)
  }

  @Test func certificatesMustBeValidNow() throws {
    #expect(try refusal { try install(ahead: 10 * 365 * 86400) } == [.expired])
    #expect(try refusal { try install(ahead: -10 * 86400) } == [.notYetValid])
    try install(ahead: 0)
  }

  @Test func storeTrustsOnlyItsOwnRoots() throws {
    for name in try house.temporary.names(in: "store/keys/trust") {
      unlink(house.temporary.appending("store/keys/trust/\(name)"))
    }
    #expect(try refusal { try install(ahead: 0) } == [.untrusted])
    rmdir(house.temporary.appending("store/keys/trust"))
    #expect(try refusal { try install(ahead: 0) } == [.untrusted])
  }

  @Test func unsignedBundleIsRefused() throws {
    let place = try TemporaryDirectory.open(house.temporary.appending("Editor.app/Contents"))
    try "_CodeSignature".withName { (name) throws(Errno) in try place.fd.removeTree(name) }
    #expect(try refusal { try install(ahead: 0) } == [.unsigned])
  }
}
