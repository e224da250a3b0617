// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
@testable internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

@Suite struct SystemDomainTests {
  private let fixture: AppFixture

  init() throws { fixture = try AppFixture(teams: ["TEAM1", "TEAM2"]) }

  private func state() throws -> [String] { try fixture.temporary.names(in: "store/state/system") }

  private func shell(_ script: String, in path: String) throws {
    let result = try Program.run(["sh", "-ec", script], in: path)
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
  }

  @Test func versionsReplaceEachOtherAndTheOneBeforeIsKept() throws {
    #expect(try fixture.domain().versions() == SystemVersions(current: .none))
    let first = try fixture.update(fixture.system("1"))
    #expect(fixture.face == "face 1\n" && first.current.version == "1" && first.current.team == "TEAM1")
    #expect(first.previous == SystemVersion.none && first.current.installed == fixture.now)
    let second = try fixture.update(fixture.system("2"))
    #expect(fixture.face == "face 2\n" && second.previous == first.current)
    #expect(try fixture.domain().rollback().current == first.current && fixture.face == "face 1\n")
    #expect(try fixture.domain().rollback().current == second.current && fixture.face == "face 2\n")
    _ = try fixture.update(fixture.system("3"))
    #expect(try fixture.domain().rollback().current == second.current, "one version before is kept, not more")
    #expect(try state() == ["previous"] && fixture.staged() == [] && fixture.findings() == [])
    #expect(try fixture.domain().findings() == [])
  }

  /// A mount recovers, also on a disk that has no room for a directory.
  @Test func recoveryMakesNothingWhereNothingWasStopped() throws {
    try fixture.domain().recover()
    #expect(try !fixture.temporary.names(in: "store/state").contains("system"))
    _ = try fixture.update(fixture.system("1"))
    try fixture.temporary.makeDirectory("store/state/system/next")
    try fixture.domain().recover()
    #expect(try state() == ["previous"])
  }

  @Test func rollbackLeadsToWhatTheStoreBeganWith() throws {
    #expect(throws: SystemFailure.noPrevious) { try fixture.domain().rollback() }
    _ = try fixture.update(fixture.system("1"))
    #expect(try fixture.domain().rollback().current == .none)
    #expect(try fixture.names("System") == ["Library"] && fixture.findings() == [])
  }

  @Test func everythingSealedComesOver() throws {
    let path = try fixture.system("1")
    try shell(
      """
      ln -s ../../nowhere Library/link; truncate -s 3M Library/sparse; \
      mkdir -p "Library/a b"; printf x >"Library/a b/%n"
      chmod 750 "Library/a b"; chmod 4711 "Library/a b/%n"; ln Library/sparse Library/second
      setfattr -n user.tag -v value Library/Fonts/Face; touch -d 2001-01-01 Library/Fonts/Face
      """, in: path)
    let tree = try TemporaryDirectory.open(path)
    try fixture.signSystem(tree.fd, path, "1")
    _ = try fixture.update(path)
    let list =
      "find . -printf '%P %y %m %n %s %T@ %l\\n' | sort; "
      + "getfattr -R -d . ; find . -type f -exec sha256sum {} +"
    func all(_ path: String) throws -> [String] {
      try Program.run(["sh", "-c", list], in: path).output.split(separator: "\n").map(String.init).sorted()
    }
    #expect(try all(fixture.tree + "/System") == all(path))
  }

  @Test(.enabled(if: Program.isRoot)) func ownersAreRootsUnlessTheyAreSealed() throws {
    let path = try fixture.system("1", ["Library/d/file": "x"])
    try shell("chown -R 1234:1235 .", in: path)
    let tree = try TemporaryDirectory.open(path)
    try fixture.signSystem(tree.fd, path, "1")
    _ = try fixture.update(path)
    let owners = try Program.run(["find", fixture.tree + "/System", "-printf", "%U:%G\n"]).output
    #expect(Set(owners.split(separator: "\n")) == ["0:0"])
    let other = try fixture.system("2", ["Library/d/file": "x"])
    try shell("chown 1234:1235 Library/d/file; chmod 4755 Library/d/file; chown 7:0 Library/d", in: other)
    let second = try TemporaryDirectory.open(other)
    try fixture.signSystem(second.fd, other, "2", keepingOwners: true)
    _ = try fixture.update(other)
    #expect(
      try Program.run(
        ["stat", "-c", "%u:%g %a", "Library/d", "Library/d/file"], in: fixture.tree + "/System"
      )
      .output == "7:0 755\n1234:1235 4755\n")
    try shell("chown 0:0 Library/d/file", in: fixture.tree + "/System")
    #expect(
      try fixture.domain().findings() == [SystemFinding(kind: .owner, path: "Library/d/file")]
        || fixture.domain().findings() == [SystemFinding(kind: .mode, path: "Library/d/file")])
  }

  private static let damages: [(String, SystemFinding.Kind, String)] = [
    ("echo more >>Library/Fonts/Face", .contents, "Library/Fonts/Face"),
    ("printf F | dd of=Library/Fonts/Face conv=notrunc status=none", .contents, "Library/Fonts/Face"),
    ("rm Library/Fonts/Face", .missing, "Library/Fonts/Face"),
    ("echo x >Library/Fonts/New", .added, "Library/Fonts/New"),
    ("mkdir Library/empty", .added, "Library/empty"),
    ("rmdir Library/Templates", .missing, "Library/Templates"),
    ("chmod 600 Library/Fonts/Face", .mode, "Library/Fonts/Face"),
    ("chmod 700 .", .mode, "the top directory"),
    ("rm Library/Fonts/Face; mkdir Library/Fonts/Face", .type, "Library/Fonts/Face"),
    ("rm Library/link; ln -s elsewhere Library/link", .target, "Library/link"),
    ("setfattr -n user.x -v y Library/Fonts/Face", .attributes, "Library/Fonts/Face"),
    ("setfattr -x user.tag Library", .attributes, "Library"),
    ("setfattr -n user.tag -v other Library", .attributes, "Library"),
    ("mv Library/Fonts/Face Library/Fonts/face", .missing, "Library/Fonts/Face"),
  ]

  @Test(arguments: damages)
  func whateverIsNotAsItWasSignedIsFound(damage: String, kind: SystemFinding.Kind, place: String) throws {
    let path = try fixture.system("1")
    try shell("ln -s near Library/link; setfattr -n user.tag -v v Library", in: path)
    let tree = try TemporaryDirectory.open(path)
    try fixture.signSystem(tree.fd, path, "1")
    _ = try fixture.update(path)
    // What is installed, and what is to be.
    try shell(damage, in: fixture.tree + "/System")
    #expect(try fixture.domain().findings().first == SystemFinding(kind: kind, path: place))
    let other = try fixture.system("2")
    _ = try fixture.update(other)
    if place != "the top directory" {
      if case .differs(_, let findings)? = rollbackRefusal() {
        #expect(findings.first == SystemFinding(kind: kind, path: place))
      } else {
        Issue.record("a damaged version is gone back to")
      }
      #expect(fixture.face == "face 2\n")
    }
    try shell(damage, in: path)
    guard case .differs(_, let findings)? = fixture.refusal(of: path) else {
      Issue.record("\(damage) is not refused")
      return
    }
    #expect(findings.first == SystemFinding(kind: kind, path: place))
    #expect(fixture.face == "face 2\n")
    #expect(try fixture.staged() == [] && state() == ["previous"])
  }

  private func rollbackRefusal() -> SystemFailure? {
    do {
      try fixture.domain().rollback()
      return nil
    } catch {
      return error as? SystemFailure
    }
  }

  @Test(arguments: [
    ("rm -r _CodeSignature", "is not signed"), ("rm _CodeSignature/SystemSignature", "is not signed"),
    ("echo x >_CodeSignature/Other", "'Other', which is not part of a signature"),
    ("echo x >>_CodeSignature/SystemSeal", "can't be read"),
    ("sed -i 's/^version 1/version 2/' _CodeSignature/SystemSeal", "the signature does not match"),
    ("truncate -s 40 _CodeSignature/SystemSignature", "the signature can't be read"),
    ("rm _CodeSignature/SystemSeal; ln -s ../Library/Fonts/Face _CodeSignature/SystemSeal", "can't read"),
  ])
  func badSignaturesAreRefusedByName(damage: String, words: String) throws {
    let path = try fixture.system("1")
    try shell(damage, in: path)
    let refusal = try #require(fixture.refusal(of: path))
    #expect(refusal.description.contains(words), "\(refusal)")
    #expect(fixture.face == nil)
    #expect(try fixture.staged() == [] && fixture.domain().versions().current == .none)
  }

  @Test func strangersAndOtherTeamsAreRefused() throws {
    let path = try fixture.system("1")
    // A seal that names another team than its signer is of.
    let tree = try TemporaryDirectory.open(path)
    var seal = try SystemSignature(in: tree.fd).seal
    seal.team = "TEAM2"
    let keys = try TemporaryDirectory.open(fixture.temporary.appending("keys"))
    let identity = try IdentityDirectory(keys.fd).identity(named: "TEAM1")
    try SystemSignature.write(seal, by: identity, in: tree.fd)
    #expect(fixture.refusal(of: path)?.description.contains("names the team 'TEAM2'") == true)
    for name in try fixture.temporary.names(in: "store/keys/trust") {
      unlink(fixture.temporary.appending("store/keys/trust/\(name)"))
    }
    #expect(fixture.refusal(of: try fixture.system("2"))?.description.contains("is not trusted") == true)
    #expect(fixture.face == nil)
  }

  @Test func skeletonIsCompletedBySigningAndCheckedAfterwards() throws {
    let path = try fixture.system("1")
    #expect(
      try fixture.temporary.names(in: "System-1/Library") == [
        "Application Support", "Caches", "CoreServices", "Fonts", "Frameworks", "LaunchDaemons",
        "Preferences",
        "Templates",
      ])
    let tree = try TemporaryDirectory.open(path)
    chmod(path + "/Library", 0o700)
    do {
      try fixture.signSystem(tree.fd, path, "1")
      Issue.record("it was signed")
    } catch let error as SystemFailure {
      #expect(error.description.contains("'Library' has mode 700; change it to 755 with chmod"))
    }
  }

  /// Earlier versions signed such trees; nothing is added to what is sealed.
  @Test func treesWithoutTheNewerDirectoriesAreWhole() throws {
    let path = try fixture.system("1")
    try shell(
      "rm -r ../_CodeSignature; rmdir 'Application Support' Caches Frameworks Preferences",
      in: path + "/Library")
    let tree = try TemporaryDirectory.open(path)
    let keys = try TemporaryDirectory.open(fixture.temporary.appending("keys"))
    let identity = try IdentityDirectory(keys.fd).identity(named: "TEAM1")
    let seal = try SystemSeal(
      of: tree.fd, version: "1", team: identity.team, keepingOwners: false, progress: { _ in })
    try SystemSignature.write(seal, by: identity, in: tree.fd)
    _ = try fixture.update(path)
    #expect(fixture.face == "face 1\n")
    var check = try StoreCheck(fixture.store, repairing: true)
    try check.run()
    #expect(check.findings.isEmpty)
    #expect(try fixture.findings(deep: true) == [])
  }

  @Test func whatAStoppedSigningHasLeftIsNotSealed() throws {
    let path = try fixture.system("1")
    try shell("mkdir .CodeSignature.new; echo x >.CodeSignature.new/SystemSeal", in: path)
    #expect(fixture.refusal(of: path)?.description.contains(".CodeSignature.new: is not in the seal") == true)
    let tree = try TemporaryDirectory.open(path)
    try fixture.signSystem(tree.fd, path, "1")
    _ = try fixture.update(path)
    #expect(fixture.face == "face 1\n")
  }

  @Test func checkFindsAnotherSystemThanTheOneThatWasInstalled() throws {
    _ = try fixture.update(fixture.system("1"))
    _ = try fixture.update(fixture.system("2"))
    #expect(try fixture.findings(deep: true) == [])
    try shell("echo x >>System/Library/Fonts/Face", in: fixture.tree)
    #expect(try fixture.findings() == [], "a look at the seals reads no files")
    try shell("echo x >>System/_CodeSignature/SystemSeal", in: fixture.tree)
    try shell("echo x >>previous/Library/Fonts/Face", in: fixture.temporary.appending("store/state/system"))
    let found = try fixture.findings(deep: true)
    #expect(
      found.count == 2 && found.allSatisfy { $0.contains("is not the system domain that was installed") })
    try shell("rm -r previous", in: fixture.temporary.appending("store/state/system"))
    #expect(
      try fixture.findings().contains { $0.contains("previous is missing: the previous system domain") })
  }

  @Test func specialFilesAndTheSameVersionAreRefused() throws {
    let path = try fixture.system("1")
    _ = try fixture.update(path)
    #expect(fixture.refusal(of: path) == .sameVersion(version: "1"))
    let other = try fixture.system("2")
    mkfifo(other + "/Library/fifo", 0o644)
    let tree = try TemporaryDirectory.open(other)
    do {
      try fixture.signSystem(tree.fd, other, "2")
      Issue.record("it was signed")
    } catch let error as SystemFailure {
      #expect(error.description.contains("Library/fifo is a fifo"))
    }
    #expect(fixture.refusal(of: other)?.description.contains("Library/fifo is a fifo") == true)
    #expect(fixture.face == "face 1\n")
  }

  @Test func versionIsTakenFromTheSystemItself() throws {
    let path = try fixture.system("x")
    let list = AppFixture.list([("ProductVersion", "<string>26.1</string>")])
    try fixture.write(list, to: "System-x/Library/CoreServices/SystemVersion.plist")
    let tree = try TemporaryDirectory.open(path)
    let keys = try TemporaryDirectory.open(fixture.temporary.appending("keys"))
    let identity = try IdentityDirectory(keys.fd).identity(named: "TEAM1")
    let signed = try SystemDomain.sign(
      tree.fd, named: path, by: identity, version: nil, keepingOwners: false)
    #expect(signed.seal.version == "26.1")
    let judged = try SystemDomain.judge(tree.fd, StoreTrust.read(fixture.store), at: fixture.now)
    #expect(judged.problems == [] && judged.signer?.team == "TEAM1")
  }

  /// Someone who looks at the tree, and may refuse that it changes.
  private final class Watcher: TreeObserver {
    let changes = Mutex<[TreeChange]>([])
    let refuses: Bool
    init(refuses: Bool) { self.refuses = refuses }

    func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno) {
      changes.withLock { $0.append(change) }
      if refuses { throw .EBUSY }
      try body()
    }
  }

  @Test(arguments: [false, true]) func whoeverLooksIsToldOrNothingChanges(refuses: Bool) throws {
    _ = try fixture.update(fixture.system("1"))
    let tree = try TemporaryDirectory.open(fixture.system("2"))
    let watcher = Watcher(refuses: refuses)
    let domain = try fixture.domain(observer: watcher)
    let before = try domain.versions().current.root
    var failure: SystemFailure?
    do {
      _ = try domain.update(from: tree.fd, named: "2")
    } catch {
      failure = error
    }
    #expect((failure != nil) == refuses)
    guard case .system(let root, let old)? = watcher.changes.withLock({ $0.first }), old == before else {
      Issue.record("nobody was told")
      return
    }
    #expect(watcher.changes.withLock { $0.count } == 1)
    #expect(try (root == domain.versions().current.root) == !refuses)
    #expect(fixture.face == (refuses ? "face 1\n" : "face 2\n"))
    #expect(try fixture.staged() == [] && state() == ["previous"] && fixture.domain().findings() == [])
  }

  /// As often as anyone would read it, however many files there are.
  @Test func updateSaysHowFarItIs() throws {
    let files = (0..<300).map { ("Library/Many/\($0)", "\($0)") }
    let tree = try TemporaryDirectory.open(
      fixture.system("1", Dictionary(uniqueKeysWithValues: files)))
    let seen = Mutex<[InstallProgress]>([])
    _ = try fixture.domain().update(
      from: tree.fd, named: "1", InstallWait(progress: { step in seen.withLock { $0.append(step) } }))
    let all = seen.withLock { $0 }
    #expect(Set(all.map(\.phase)) == [.looking, .copying])
    #expect(all.count < 200, "\(all.count)")
    #expect(zip(all, all.dropFirst()).allSatisfy { $0.done <= $1.done })
  }
}
