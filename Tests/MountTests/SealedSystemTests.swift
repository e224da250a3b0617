// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing
internal import Volume

/// The system domain with a seal is held against it, as an app is.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct SealedSystemTests {
  private static let files = ["Library/CoreServices/version", "Library/data", "_CodeSignature/SystemSeal"]

  /// Puts some things into a tree and seals it; gives the digest of the seal.
  private func seal(_ tree: String, _ text: String) throws -> [UInt8] {
    let script = """
      cd "$1"; mkdir -p Library/CoreServices Library/empty; echo "$2" > Library/CoreServices/version
      echo data > Library/data; ln -sfn data Library/link; setfattr -n user.mark -v x Library/data
      """
    try SealedFixture.command("sh", "-ec", script, "sh", tree, text)
    let keys = try TemporaryDirectory()
    let directory = try TemporaryDirectory.open(keys.path)
    let now = Int64(time(nil))
    let identity = try IdentityDirectory(directory.fd).make("Someone", team: "TEAM1", at: now)
    let top = try TemporaryDirectory.open(tree)
    let seal = try SystemSeal(of: top.fd, version: "1", team: "TEAM1", keepingOwners: false)
    try SystemSignature.write(seal, by: identity, in: top.fd)
    return try SystemSignature(in: top.fd).rootHash
  }

  private func mounted(after damage: String) throws -> MountedStore {
    let mounted = try MountedStore()
    let root = try seal(mounted.backing("System"), "one")
    let state = try TemporaryDirectory.open("\(mounted.store)/state")
    let registry = try Registry(state: state.fd, path: "\(mounted.store)/state")
    try registry.beginSystem(SystemVersion(root: root, version: "1", team: "TEAM1", installed: 1))
    try registry.finishSystem()
    try SealedFixture.command("sh", "-ec", "cd \"$1\"; " + damage, "sh", mounted.backing("System"))
    try mounted.mount()
    return mounted
  }

  private func errno(_ mounted: MountedStore, _ name: String) -> Int32 {
    let file = clx_open(mounted.path("System/" + name), O_RDONLY, 0)
    if file < 0 { return Errno.last.code }
    close(file)
    return 0
  }

  @Test(
    arguments: [
      (":", []), ("chmod 600 Library/data", ["Library/data", "Library/link"]),
      ("chown 4321 Library/CoreServices/version", ["Library/CoreServices/version"]),
      ("setfattr -n user.mark -v y Library/data", ["Library/data", "Library/link"]),
      ("setfattr -n user.new -v y Library/CoreServices/version", ["Library/CoreServices/version"]),
      ("echo more >> Library/data", ["Library/data", "Library/link"]),
      ("rm Library/data", ["Library/data", "Library/link"]),
      ("ln -sfn CoreServices/version Library/link", ["Library/link"]),
      ("echo x > Library/new", ["Library/new"]), ("mkdir Library/directory", ["Library/directory"]),
      ("chmod 700 Library/empty", ["Library/empty"]), ("rmdir Library/empty", ["Library/empty"]),
      ("echo >> _CodeSignature/SystemSignature", ["_CodeSignature/SystemSignature"]),
      ("echo x > _CodeSignature/new", ["_CodeSignature/new"]),
    ] as [(String, [String])])
  func whatIsNotAsItWasSealedIsNotServed(damage: String, lost: [String]) throws {
    let mounted = try mounted(after: damage)
    for name in lost { #expect(errno(mounted, name) == EIO, "\(name)") }
    let others = Self.files + ["Library/link", "Library/empty", "_CodeSignature/SystemSignature"]
    for name in others where !lost.contains(name) { #expect(errno(mounted, name) == 0, "\(name)") }
    let log = try #require(mounted.temporary.text(of: "store/state/daemon.log"))
    #expect(log.contains("/System: ") == !lost.isEmpty, "\(log)")
    #expect(errno(mounted, "Library/nothing") == ENOENT)
  }

  @Test func withoutItsSealNoFileIsServed() throws {
    let mounted = try mounted(after: "echo >> _CodeSignature/SystemSeal")
    for name in Self.files { #expect(errno(mounted, name) == EIO, "\(name)") }
    #expect(try Program.run(["ls", mounted.path("System/Library")]).status == 0)
  }

  /// From none to one, to another, and back to none.
  @Test func itIsReplacedWhileItIsServed() throws {
    let mounts = try TwoMounts { Issue.record("\($0)") }
    for name in ["tree/System", "one", "two"] { try mounts.temporary.makeDirectory(name) }
    try mounts.temporary.write("none", to: "tree/System/plain")
    let roots = ["one", "two"].map { name in Result { try seal(mounts.temporary.appending(name), name) } }
    let (one, two) = (try roots[0].get(), try roots[1].get())
    let client = try Client()
    func replace(with name: String, _ root: [UInt8], before: [UInt8]) throws {
      try mounts.volume.systemIsReplaced(root: root, before: before) { () throws(Errno) in
        try check(
          clx_renameat2(
            AT_FDCWD, mounts.temporary.appending(name), AT_FDCWD, mounts.temporary.appending("tree/System"),
            UInt32(CLX_RENAME_EXCHANGE)))
      }
    }
    func read(_ view: Int, _ name: String) throws -> String {
      let opened = try client.run("open", mounts.temporary.appending("\(view)/System/\(name)"), "\(O_RDONLY)")
      guard opened.errno == 0, let file = opened.words.first else { return "\(opened.errno)" }
      return try client.run("stat", "/proc/self/fd/\(file)").errno == 0 ? "there" : "?"
    }
    let version = "Library/CoreServices/version"
    for view in 0...1 { #expect(try read(view, "plain") == "there") }
    try replace(with: "one", one, before: [])
    for view in 0...1 {
      #expect(try read(view, version) == "there")
      #expect(try read(view, "plain") == "\(ENOENT)")
    }
    try replace(with: "two", two, before: one)
    for view in 0...1 { #expect(try read(view, version) == "there") }
    // Where "two" was is "one" now, and where "one" was is what had no seal.
    try replace(with: "one", [], before: two)
    for view in 0...1 {
      #expect(try read(view, version) == "\(ENOENT)")
      #expect(try read(view, "plain") == "there")
      #expect(
        try client.errno("create", mounts.temporary.appending("\(view)/System/new"), "\(0o644)") == EROFS)
    }
  }
}
