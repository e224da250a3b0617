// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

/// The commands that need no mount.
@Suite struct StoreCommandTests {
  private let shell: Shell
  private var store: String { shell.temporary.appending("store") }

  init() throws { shell = try Shell() }

  @Test func initTellsWhatToDoNext() {
    let result = shell.run("init", "store")
    #expect(result.code == .ok)
    #expect(result.output.contains("Created the store \(store)"))
    #expect(result.output.contains("insula mount \(store)"))
    let again = shell.run("init", "store")
    #expect(again.code == .failed)
    #expect(again.errors.hasPrefix("insula: \(store) is already a store"))
  }

  @Test func initRefusesAGroupThatThereIsNot() throws {
    let result = shell.run("init", "store", "--admin-group", "no-such-group")
    #expect(result.code == .usage && result.errors.contains("'no-such-group'"))
    #expect(try shell.temporary.names() == [])
  }

  @Test(.enabled(if: Program.isRoot, "a store of all users is root's"))
  func initTakesTheGroupThatIsNamed() throws {
    #expect(shell.run("init", "store", "--admin-group", "daemon").code == .ok)
    var status = stat()
    #expect(stat(store + "/tree/Applications", &status) == 0)
    #expect(AccountGroup.numbered(status.st_gid)?.name == "daemon")
  }

  @Test(arguments: [false, true]) func storeTellsWhetherAppsMayRunWhatTheyWrite(allowed: Bool) throws {
    #expect(shell.run(["init", "store"] + (allowed ? ["--allow-writable-code"] : [])).code == .ok)
    let status = Data(shell.run("status", "store", "--json").output.utf8)
    let fields = try JSONSerialization.jsonObject(with: status) as? [String: Any]
    #expect(fields?["writableCode"] as? Bool == allowed)
    #expect(try Store(opening: store, .inspect).description.allowsWritableCode == allowed)
  }

  @Test(arguments: [false, true]) func storeTellsWhetherAppsMayBeStartedDirectly(allowed: Bool) throws {
    #expect(shell.run(["init", "store"] + (allowed ? ["--allow-direct-start"] : [])).code == .ok)
    let status = Data(shell.run("status", "store", "--json").output.utf8)
    let fields = try JSONSerialization.jsonObject(with: status) as? [String: Any]
    #expect(fields?["directStart"] as? Bool == allowed)
    #expect(try Store(opening: store, .inspect).description.allowsDirectStart == allowed)
    #expect(try !Store(opening: store, .inspect).description.allowsWritableCode)
  }

  @Test(arguments: [false, true]) func storeTellsWhatTheMediaLibraryIs(isAll: Bool) throws {
    #expect(shell.run(["init", "store"] + (isAll ? ["--all-music"] : [])).code == .ok)
    let status = Data(shell.run("status", "store", "--json").output.utf8)
    let fields = try JSONSerialization.jsonObject(with: status) as? [String: Any]
    #expect(fields?["allMusic"] as? Bool == isAll)
    #expect(try Store(opening: store, .inspect).description.offersAllMusic == isAll)
  }

  @Test(arguments: [false, true]) func storeTellsWhetherCaseCounts(ignored: Bool) throws {
    #expect(shell.run(["init", "store"] + (ignored ? ["--case-insensitive"] : [])).code == .ok)
    let status = Data(shell.run("status", "store", "--json").output.utf8)
    let fields = try JSONSerialization.jsonObject(with: status) as? [String: Any]
    #expect(fields?["caseInsensitive"] as? Bool == ignored)
    #expect(try Store(opening: store, .inspect).description.ignoresCase == ignored)
  }

  @Test func storeTellsTheUmaskOfApps() throws {
    for (words, mask) in [
      ([], 0o077), (["--app-umask", "022"], 0o022), (["--app-umask", "0"], 0),
      (["--app-umask", "777"], 0o777),
    ] {
      let path = "store-\(mask)"
      #expect(shell.run(["init", path] + words).code == .ok)
      let status = Data(shell.run("status", path, "--json").output.utf8)
      let fields = try JSONSerialization.jsonObject(with: status) as? [String: Any]
      #expect(fields?["appUmask"] as? String == String(mask, radix: 8))
      let description = try Store(opening: "\(shell.temporary.path)/\(path)", .inspect).description
      #expect(description.appUmask == UInt32(mask))
    }
    for text in ["1000", "u=rwx", "-1", "+7", "8"] {
      let result = shell.run("init", "other", "--app-umask", text)
      #expect(result.code == .usage, "\(text)")
      #expect(result.errors.includes("three octal digits"), "\(text): \(result.errors)")
    }
  }

  @Test func everyCommandTellsThatThereIsNoStore() {
    for words in [
      ["mount", "x", "y", "-f"], ["status", "x"], ["check", "x"], ["user", "list", "--store", "x"],
      ["user", "add", "nobody", "--store", "x"], ["user", "remove", "nobody", "--store", "x"],
    ] {
      let result = shell.run(words)
      #expect(result.code == .noStore, "\(words)")
      #expect(result.errors.contains("insula init \(shell.temporary.path)/x"), "\(words)")
      #expect(result.output.isEmpty)
    }
  }

  @Test func formatOfAnotherVersionHasItsOwnCode() throws {
    #expect(shell.run("init", "store").code == .ok)
    try shell.temporary.write(
      "<plist version='1.0'><dict><key>Format</key><integer>2</integer></dict></plist>",
      to: "store/store.plist")
    for words in [["mount", "store", "y", "-f"], ["status", "store"], ["check", "store"]] {
      let result = shell.run(words)
      #expect(result.code == .wrongFormat && result.errors.contains("format 2"), "\(words)")
    }
  }

  @Test func statusOfAStoreThatIsNotMounted() throws {
    #expect(shell.run("init", "store").code == .ok)
    #expect(shell.run("status", "store").code == .notMounted)
    let json = shell.run("status", "store", "--json")
    #expect(json.code == .notMounted)
    let fields = try #require(
      try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
    #expect(fields["mounted"] as? Bool == false)
    #expect(fields["store"] as? String == store)
    #expect((fields["uuid"] as? String).flatMap(UUID.init) != nil)
  }

  @Test func statusAndUnmountOfAnyOtherDirectory() {
    for words in [
      ["status", "."], ["unmount", "."], ["unmount", "nowhere"], ["mount", "-o", "remount,ro", "."],
    ] {
      #expect(shell.run(words).code == .notMounted, "\(words)")
    }
  }

  @Test func checkFindsAndRepairs() throws {
    #expect(shell.run("init", "store").code == .ok)
    #expect(shell.run("check", "store").output == "The store \(store) is in order.\n")
    #expect(rmdir(store + "/tree/Volumes") == 0)
    let found = shell.run("check", "store")
    #expect(found.code == .problemsFound && found.output.contains("\(store)/tree/Volumes is missing"))
    let json = shell.run("check", "store", "--json")
    let findings = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [[String: Any]]
    #expect(findings?.count == 1 && findings?.first?["repaired"] as? Bool == false)
    #expect(shell.run("check", "store", "--repair").code == .ok)
    #expect(shell.run("check", "store").code == .ok)
  }

  @Test(.enabled(if: Program.isRoot, "homes of others are made by root"))
  func homesComeAndGo() throws {
    #expect(shell.run("init", "store").code == .ok)
    #expect(shell.run("user", "list", "--store", "store").output.contains("no homes yet"))
    #expect(shell.run("user", "add", "nobody", "--store", "store").code == .ok)
    #expect(shell.run("user", "add", "nobody", "--store", "store").code == .failed)
    #expect(shell.run("user", "list", "--store", "store").output.contains("nobody  nobody  complete"))
    let json = shell.run("user", "list", "--store", "store", "--json").output
    let homes = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Any]]
    #expect(homes?.first?["uid"] as? Int == 65534)
    // Without the word for it, nothing is removed.
    let refused = shell.run("user", "remove", "nobody", "--store", "store")
    #expect(refused.code == .failed && refused.errors.contains("--delete-home"))
    #expect(shell.run("user", "list", "--store", "store").output.contains("nobody"))
    #expect(shell.run("user", "remove", "nobody", "--store", "store", "--delete-home").code == .ok)
    #expect(shell.run("user", "remove", "nobody", "--store", "store", "--delete-home").code == .failed)
    #expect(shell.run("user", "add", "../x", "--store", "store").code == .usage)
  }

  @Test(.enabled(if: Program.isRoot, "becoming an ordinary user needs root"))
  func ownHomeIsRemovedThoughItsOwnerHasTakenHisRightsAway() throws {
    let temporary = try TemporaryDirectory(mode: 0o1777)
    let store = temporary.appending("store")
    let home = "\(store)/tree/Users/nobody"
    func run(_ words: String...) throws -> Int32 {
      try Program.runAsNobody(words, environment: ["HOME": temporary.path]).status
    }
    #expect(try run(Program.insula, "init", store) == 0)
    #expect(try run(Program.insula, "user", "add", "nobody", "--store", store) == 0)
    #expect(try run("mkdir", "-p", home + "/Documents/a/b/c") == 0)
    #expect(try run("chmod", "0", home + "/Documents/a/b", home + "/Documents/a", home + "/Documents") == 0)
    #expect(try run(Program.insula, "user", "remove", "nobody", "--delete-home", "--store", store) == 0)
    #expect(try temporary.names(in: "store/tree/Users") == ["Shared"])
  }

  /// With a device that is root's alone no user can mount.
  @Test func doctorSaysWhoMayUseTheDevice() throws {
    let device = try shell.temporary.write("", to: "fuse")
    let context = Context.current()
    for (mode, level) in [(mode_t(0o600), Diagnosis.Level.warn), (0o660, .warn), (0o666, .ok)] {
      #expect(chmod(device, mode) == 0)
      let diagnosis = MachineDiagnosis(context, device: device).device
      // A user's own file can be opened by them whatever others may.
      let isMine = !context.isRoot || mode == 0o666
      #expect(diagnosis.level == (isMine ? .ok : level), "\(String(mode, radix: 8)): \(diagnosis)")
      if diagnosis.level == .warn {
        #expect(diagnosis.advice?.contains("chmod 0666 \(device)") ?? false)
      }
    }
    #expect(MachineDiagnosis(context, device: device + "x").device.level == .fail)
  }

  /// The same in a mount namespace in which the machine's device is such a one.
  @Test(.enabled(if: Program.isRoot, "mounting needs root"))
  func doctorTellsUsersOfADeviceThatIsRootsAlone() throws {
    let folder = try TemporaryDirectory()
    let script = """
      set -e
      cd '\(folder.path)'
      mount -t tmpfs none .
      mknod fuse c 10 229
      chmod 600 fuse
      mount --bind fuse /dev/fuse
      as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups '\(Program.insula)' "$@"; }
      as_user doctor /nowhere || echo "rc $?"
      cd '\(folder.path)'
      mkdir home home/point
      chown 65534 . home home/point
      cd home
      as_user init "$PWD/store"
      as_user mount "$PWD/store" "$PWD/point"
      """
    let result = try Program.run(["unshare", "-m", "sh", "-c", script])
    #expect(
      result.output.contains("fail: FUSE: /dev/fuse has mode 0600, so only root can mount"),
      "\(result.output)\(result.errors)")
    #expect(
      result.ending == .notPermitted && result.errors.contains("only root can open /dev/fuse"), "\(result)")
    #expect(result.errors.contains("chmod 0666 /dev/fuse"), "\(result.errors)")
  }

  /// What only some features call for.
  @Test func doctorTellsOfLibrariesThatAreMissing() throws {
    let folder = try TemporaryDirectory()
    for name in ["libtag_c.so.0", "libtag_c.so.2", "libsystemd.so.0"] { try folder.write("", to: name) }
    let words = ["timeout", "60", Program.insula, "doctor", "/nowhere"]
    let result = try Program.run(words, environment: ["LD_LIBRARY_PATH": folder.path])
    #expect(result.output.contains("warn: songs: TagLib can't be loaded, so apps are told of no songs"))
    #expect(result.output.contains("warn: dialogs: libsystemd can't be loaded, so 'insula agent' asks at"))
    #expect(result.output.contains("libtagc0") && result.output.contains("libsystemd0"), "\(result)")
    #expect(try Program.run(words).output.contains("ok:   songs: TagLib can be loaded"))
  }

  @Test func doctorJudgesTheMachineAndChangesNothing() throws {
    let result = shell.run("doctor", "store", "--json")
    #expect(result.code == .ok || result.code == .problemsFound)
    let found = try #require(
      try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]])
    let levels = found.compactMap { $0["level"] as? String }
    #expect((result.code == .problemsFound) == levels.contains("fail"))
    let names = Set(found.compactMap { $0["name"] as? String })
    #expect(
      names.isSuperset(of: [
        "FUSE", "fusermount3", "user_allow_other", "kernel", "passthrough", "cache epochs", "open files",
        "store",
        "filesystem", "file handles", "extended attributes", "free space",
      ]))
    for one in found where one["level"] as? String == "fail" { #expect(one["advice"] is String) }
    #expect(try shell.temporary.names() == [])
    #expect(shell.run("doctor", "store").output.contains("FUSE: "))
  }

  @Test(
    arguments: [("6.18.44-fc-v657", 6, 18), ("5.10.0", 5, 10), ("6.9", 6, 9), ("unknown", 0, 0), ("6", 0, 0)])
  func kernelVersionsAreUnderstood(release: String, major: Int, minor: Int) {
    #expect(KernelRelease(release) == KernelRelease(major, minor))
  }

  @Test func pathsAreResolvedAsFarAsTheyExist() throws {
    try shell.temporary.makeDirectory("real")
    #expect(symlink("real", shell.temporary.appending("link")) == 0)
    let context = Context(
      environment: [:], uid: 1, home: "/h", currentDirectory: shell.temporary.path, console: .standard)
    let base = shell.temporary.path
    for (path, expected) in [
      ("link", base + "/real"), ("link/new", base + "/real/new"), ("./real/../link", base + "/real"),
      ("/", "/"), ("/new", "/new"), ("real//", base + "/real"), ("new/", base + "/new"),
    ] {
      #expect(context.absolute(path) == expected, "\(path)")
    }
    #expect(context.defaultStore == "/h/.local/share/insula" && context.defaultMountPoint == "/h/Insula")
  }
}
