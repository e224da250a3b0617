// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Volume

/// Two of them, usually.
typealias TwoMounts = SeveralMounts

/// One volume mounted several times by this process; other processes must do all that is done in it.
final class SeveralMounts {
  let temporary: TemporaryDirectory
  private let tree: OwnedFD
  let volume: Volume
  let views: [View]
  private let pool: WorkerPool
  private let areFilesViews: Bool

  /// With nothing remembered, what one changes the other sees at once; with local locks, neither sees the
  /// other's.
  ///
  /// `scope` is what all but the first have of the tree, and `user` whose they are; or they are `app`'s, with
  /// what it is granted; or files views that show the directory `files`. `rootless` is how a user's daemon
  /// does things: data through it, no handles. Without `passthrough` root's does that, too. `say` gets what
  /// the volume has to say.
  init(
    _ count: Int = 2, remembering: Bool = true, localLocks: Bool = false, rootless: Bool = false,
    passthrough: Bool = true, scope: Scope = .wholeTree, user: UInt32? = nil, app: AppIdentifier? = nil,
    files: String? = nil, say: @escaping @Sendable (String) -> Void = { _ in }
  ) throws {
    temporary = try TemporaryDirectory()
    for name in ["tree", "tree/Applications", "tree/Users", "tree/Users/Shared"] {
      try temporary.makeDirectory(name, mode: name.hasSuffix("Shared") ? 0o1777 : 0o755)
    }
    tree = try TemporaryDirectory.open(temporary.appending("tree"))
    var volumeSettings = VolumeSettings()
    if !remembering { volumeSettings.cacheSeconds = 0 }
    volumeSettings.localLocks = localLocks
    volumeSettings.isSystem = !rootless
    volumeSettings.fileHandles = !rootless
    let volume = Volume(tree: tree.fd, settings: volumeSettings, say: say)
    self.volume = volume
    views = try (0..<count).map { number in
      if number == 0 { return try View(volume) }
      if let files {
        let places = FilesPlaces(home: "Users/Shared", folders: [files], apps: [], clouds: [])
        return try volume.filesView(FilesTop { _ in places }, user: 0)
      }
      if let app { return try volume.view(of: app, Team("T", root: nil), user: user ?? 0, []) }
      return try View(volume, scope: scope, user: user)
    }
    areFilesViews = files != nil
    pool = try WorkerPool(PoolSettings())
    try pool.start()
    for (number, view) in views.enumerated() {
      var settings = MountSettings()
      settings.allowOther = true
      var wanted = ConnectionSettings()
      wanted.passthrough = !rootless && passthrough
      wanted.localLocks = localLocks
      wanted.sharesDirectMaps = number > 0 && wanted.passthrough
      try temporary.makeDirectory("\(number)", mode: 0o755)
      let point = try TemporaryDirectory.open(temporary.appending("\(number)"))
      let connection = try Mount.direct(over: point.fd, settings)
      try pool.add(Session(view, over: connection, settings: wanted)) {}
      guard view.waitUntilStarted(milliseconds: patience) else { throw Errno.EAGAIN }
    }
  }

  deinit {
    // Once nobody serves, whoever still has a file open here would wait for ever when they close it: programs
    // that other tests start have our files for a moment, until they are themselves.
    abort()
    for number in views.indices { try? unmount(number) }
    pool.stop()
  }

  /// Takes one of the mounts away.
  func unmount(_ number: Int) throws { try Mount.remove(at: temporary.appending("\(number)"), lazily: true) }

  /// Ends connections: frees everyone who waits for an answer, whatever holds it up.
  func abort(_ numbers: [Int]? = nil) {
    // MNT_FORCE ends the connection even where the mount is busy, and asks it nothing.
    let force: Int32 = 1
    for number in numbers ?? Array(views.indices) {
      _ = umount2(temporary.appending("\(number)"), force)
    }
  }

  /// The path of a shared file through one of them.
  func path(_ number: Int, _ name: String) -> String {
    temporary.appending("\(number)/\(number > 0 && areFilesViews ? "" : "Users/Shared/")\(name)")
  }

  /// The same place in the tree itself.
  func backing(_ name: String) -> String { temporary.appending("tree/Users/Shared/\(name)") }
}
