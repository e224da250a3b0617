// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Volume

/// One volume mounted twice by this process; other processes must do all that is done in it.
final class TwoMounts {
  let temporary: TemporaryDirectory
  private let tree: OwnedFD
  let volume: Volume
  let views: [View]
  private let pool: WorkerPool

  /// With nothing remembered, what one changes the other sees at once; with local locks, neither sees the other's.
  ///
  /// `scope` is what the second has of the tree. `say` gets what the volume has to say.
  init(
    remembering: Bool = true, localLocks: Bool = false, scope: Scope = .wholeTree, user: UInt32? = nil,
    say: @escaping @Sendable (String) -> Void = { _ in }
  ) throws {
    temporary = try TemporaryDirectory()
    for name in ["tree", "tree/Applications", "tree/Users", "tree/Users/Shared", "0", "1"] {
      try temporary.makeDirectory(name, mode: name.hasSuffix("Shared") ? 0o1777 : 0o755)
    }
    tree = try TemporaryDirectory.open(temporary.appending("tree"))
    var volumeSettings = VolumeSettings()
    if !remembering { volumeSettings.cacheSeconds = 0 }
    volumeSettings.localLocks = localLocks
    let volume = Volume(tree: tree.fd, settings: volumeSettings, say: say)
    self.volume = volume
    views = [try View(volume), try View(volume, scope: scope, user: user)]
    pool = try WorkerPool(PoolSettings())
    try pool.start()
    for (number, view) in views.enumerated() {
      var settings = MountSettings()
      settings.allowOther = true
      var wanted = ConnectionSettings()
      wanted.passthrough = true
      wanted.localLocks = localLocks
      wanted.sharesDirectMaps = number == 1
      let connection = try Mount.direct(at: temporary.appending("\(number)"), settings)
      try pool.add(Session(view, over: connection, settings: wanted)) {}
      guard view.waitUntilStarted(milliseconds: 20_000) else { throw Errno.EAGAIN }
    }
  }

  deinit {
    for number in 0..<2 { try? Mount.remove(at: temporary.appending("\(number)"), lazily: true) }
    pool.stop()
  }

  /// The path of a shared file in the store.
  func stored(_ name: String) -> String { temporary.appending("tree/Users/Shared/\(name)") }

  /// The path of a shared file through one of the two.
  func path(_ number: Int, _ name: String) -> String { temporary.appending("\(number)/Users/Shared/\(name)") }
}
