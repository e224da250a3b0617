// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport

/// A store in which an app is installed twice: for everyone, and for one user.
///
/// It is put there by hand, as the installer would, so that nothing but the seals are tested here.
final class SealedFixture {
  let mounted: MountedStore
  /// Whose app the second one is.
  let uid: UInt32

  static let localApp = "Applications/Note.app"
  static let home = "Users/anna"
  static let userApp = "\(home)/Applications/Note.app"
  static let resources = "Contents/Resources"
  /// So large that it is not read by a worker.
  static let largeSize = 3 << 20

  /// What `before` does to the store happens before it is mounted.
  ///
  /// With `settled` what is found out about a file is kept from the start.
  init(
    owner: Account? = nil, uid: UInt32 = 54321, options: String? = nil, settled: Bool = false,
    before: (SealedFixture) throws -> Void = { _ in }
  ) throws {
    mounted = try MountedStore(owner: owner)
    self.uid = owner?.uid ?? uid
    let made = try TemporaryDirectory()
    try Self.makeBundle(in: made.path)
    let seal = try Self.sign(made.appending("Note.app"), with: made)
    for directory in [Self.home, "\(Self.home)/Applications", "Users/Shared/work"] {
      guard mkdir(backing(directory), directory.hasSuffix("work") ? 0o777 : 0o755) == 0 else {
        throw Errno.last
      }
    }
    chmod(backing("Users/Shared/work"), 0o777)
    for path in [Self.localApp, Self.userApp] {
      try Self.command("cp", "-a", made.appending("Note.app"), backing(path))
    }
    try register(seal)
    let user = self.uid
    try Self.command("chown", "-hR", "\(user):\(user)", backing(Self.home))
    if owner != nil { try Self.command("chown", "-hR", "\(user):\(user)", mounted.store) }
    // Long ago, so that a look that changes it is seen.
    try Self.command(
      "sh", "-c", "find \"$1\" \"$2\" -exec touch -h -a -d 2001-01-01 {} +", "sh",
      backing(Self.localApp), backing(Self.userApp))
    try before(self)
    // What has only just been changed is read again at each open.
    if settled { usleep(1_100_000) }
    try mounted.mount(options: options)
  }

  func path(_ name: String) -> String { mounted.path(name) }
  func backing(_ name: String) -> String { mounted.backing(name) }

  /// What the daemon has written.
  var log: String { mounted.temporary.text(of: "store/state/daemon.log") ?? "" }

  /// What is in a file, or why it can't be read.
  func read(_ path: String) -> Result<[UInt8], Errno> {
    do throws(Errno) {
      return .success(
        try path.withName { (name) throws(Errno) in
          let file = try FD.cwd.openFollowing(name, O_RDONLY)
          return try file.fd.readToEnd(limit: 1 << 24)
        })
    } catch {
      return .failure(error)
    }
  }

  /// The files of an app, from its directory on.
  static let files = [
    "Contents/Info.plist", "Contents/PkgInfo", "Contents/MacOS/note", "Contents/Resources/page.html",
    "Contents/Resources/first.html", "Contents/Resources/en.lproj/words.txt",
    "Contents/Resources/deep/er/data", "Contents/Resources/.DS_Store", "Contents/Resources/two words.txt",
    "Contents/Resources/large", "Contents/_CodeSignature/CodeDirectory",
    "Contents/_CodeSignature/CodeResources", "Contents/_CodeSignature/CodeSignature",
    "Contents/PlugIns/Help.bundle/Contents/Info.plist",
    "Contents/PlugIns/Help.bundle/Contents/MacOS/help",
    "Contents/PlugIns/Help.bundle/Contents/Resources/text",
    "Contents/PlugIns/Help.bundle/Contents/_CodeSignature/CodeDirectory",
    "Contents/PlugIns/Help.bundle/Contents/_CodeSignature/CodeResources",
    "Contents/PlugIns/Help.bundle/Contents/_CodeSignature/CodeSignature",
  ]

  static func command(_ words: String...) throws { try command(words) }

  static func command(_ words: [String]) throws {
    let result = try Program.run(words)
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
  }

  private func register(_ seal: [UInt8]) throws {
    try withRegistry { registry in try register(seal, in: registry) }
  }

  private func register(_ seal: [UInt8], in registry: Registry) throws {
    for (path, user) in [(Self.localApp, nil), (Self.userApp, uid)] as [(String, UInt32?)] {
      guard let identifier = AppIdentifier("org.example.note") else { throw Errno.EINVAL }
      try registry.add(
        InstalledApp(
          identifier: identifier, user: user, name: "Note", executable: "note", version: "1",
          shortVersion: "1", team: "TEAM1", path: path, seal: seal, installed: 1))
    }
  }

  /// Signs an app again after it was changed, before it is mounted.
  func signAgain(_ path: String) throws {
    let made = try TemporaryDirectory()
    let seal = try Self.sign(backing(path), with: made)
    try withRegistry { registry in
      for var app in try registry.apps() where app.path == path {
        app.seal = seal
        try registry.update(app)
      }
    }
  }

  /// Nobody but its owner uses a registry, so it is ours meanwhile.
  private func withRegistry(_ body: (Registry) throws -> Void) throws {
    let path = "\(mounted.store)/state"
    let state = try TemporaryDirectory.open(path)
    let owner = try state.fd.status()
    try Self.command("chown", "-hR", "0:0", path)
    defer { try? Self.command("chown", "-hR", "\(owner.st_uid):\(owner.st_gid)", path) }
    try body(Registry(state: state.fd, path: path))
  }

  // MARK: The bundle

  static func info(_ identifier: String, _ executable: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <plist version="1.0"><dict><key>CFBundleIdentifier</key><string>\(identifier)</string>
    <key>CFBundleExecutable</key><string>\(executable)</string><key>CFBundleVersion</key><string>1</string>
    </dict></plist>

    """
  }

  static func makeBundle(in place: String) throws {
    let contents = "\(place)/Note.app/Contents"
    let files = [
      ("Info.plist", info("org.example.note", "note")), ("PkgInfo", "APPL????"),
      ("MacOS/note", "#!/bin/sh\necho hello from \"$0\"\n"), ("Resources/page.html", "<p>page</p>\n"),
      ("Resources/en.lproj/words.txt", "words\n"), ("Resources/deep/er/data", "deep\n"),
      ("Resources/.DS_Store", "finder\n"), ("Resources/two words.txt", "two\n"),
      ("Resources/large", String(repeating: "0123456789abcdef", count: largeSize / 16)),
      ("PlugIns/Help.bundle/Contents/Info.plist", info("org.example.help", "help")),
      ("PlugIns/Help.bundle/Contents/MacOS/help", "#!/bin/sh\necho help\n"),
      ("PlugIns/Help.bundle/Contents/Resources/text", "help\n"),
    ]
    for (path, text) in files {
      try command(
        "mkdir", "-p", "\(contents)/\(path.split(separator: "/").dropLast().joined(separator: "/"))")
      try Data(text.utf8).write(to: URL(fileURLWithPath: "\(contents)/\(path)"))
    }
    mkdir("\(contents)/Resources/empty", 0o755)
    symlink("page.html", "\(contents)/Resources/first.html")
    for tool in ["MacOS/note", "PlugIns/Help.bundle/Contents/MacOS/help"] {
      chmod("\(contents)/\(tool)", 0o755)
    }
    setxattr("\(contents)/Resources/page.html", "user.mark", "mark", 4, 0)
  }

  /// Signs a bundle as someone; gives what pins that.
  static func sign(_ path: String, with made: TemporaryDirectory) throws -> [UInt8] {
    try made.makeDirectory("identities", mode: 0o700)
    let keys = try TemporaryDirectory.open(made.appending("identities"))
    let now = Int64(time(nil))
    let identity = try IdentityDirectory(keys.fd).make("Someone", team: "TEAM1", at: now)
    let bundle = try CodeBundle(in: TemporaryDirectory.open(path), name: "Note.app")
    try bundle.sign(as: identity, entitlements: nil, at: now)
    return try CodeBundle(in: TemporaryDirectory.open(path), name: "Note.app").sealDigest()
  }
}
