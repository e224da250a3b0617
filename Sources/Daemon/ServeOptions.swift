// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
package import Policy
internal import Store
internal import Volume

/// A flag of mount(2), named as in its option.
package enum MountFlag: String, Sendable, CaseIterable {
  case nosuid, nodev, noexec, noatime, nodiratime, relatime, strictatime, sync, dirsync

  /// The `MS_*` bit.
  var bit: UInt {
    switch self {
    case .nosuid: UInt(MS_NOSUID)
    case .nodev: UInt(MS_NODEV)
    case .noexec: UInt(MS_NOEXEC)
    case .noatime: UInt(MS_NOATIME)
    case .nodiratime: UInt(MS_NODIRATIME)
    case .relatime: UInt(MS_RELATIME)
    case .strictatime: UInt(MS_STRICTATIME)
    case .sync: UInt(MS_SYNCHRONOUS)
    case .dirsync: UInt(MS_DIRSYNC)
    }
  }
}

/// How a store is to be served.
package struct ServeOptions: Sendable, Equatable {
  package var readOnly = false
  /// A new object's group is its maker's and not its directory's: mount option `nogrpid`.
  package var callerGroup = false
  package var mountFlags: Set<MountFlag> = []
  /// What `mount` shows as the source.
  package var source = "insula"
  package var allowOther = false
  /// How often the process that serves may die within ten seconds and be replaced.
  package var restarts = 4
  /// How many threads serve; nil leaves it to us.
  package var threads: Int?
  /// For how long a thread looks for the next request before it sleeps; 0 turns it off, nil leaves it to us.
  package var pollMicroseconds: Int?
  package var passthrough = true
  package var fileHandles = true
  /// POSIX and flock locks are the kernel's own: closing is faster, other views do not see them.
  package var localLocks = false
  /// When what apps can make again is thrown away by itself.
  package var purges = PurgeRule.usual
  /// For how long removed containers can be restored.
  package var removed = RemovedLimit.usual
  /// For how long the kernel may keep what it was told; nil leaves it to us.
  package var cacheSeconds: Double?
  /// Where the daemon's own user has a files view as long as the store is mounted.
  package var files: String?
  /// The file that names servers of the network; nil for none.
  package var serversFile: String?
  /// The languages in which names are shown to programs that ask for no other.
  package var languages = Languages.none

  package init() {}

  /// How the volume of a store behaves that is served so.
  func volumeSettings(for description: StoreDescription) -> VolumeSettings {
    var settings = VolumeSettings()
    settings.isSystem = description.mode == .system
    settings.callerGroup = callerGroup
    settings.localLocks = localLocks
    settings.appUmask = description.appUmask
    settings.allowsDirectStart = description.allowsDirectStart
    settings.hidesExtensions = !description.showsExtensions
    settings.languages = languages
    settings.ignoresCase = description.ignoresCase
    if !settings.isSystem {
      settings.sparesFileTimes = accessTimes.files == .never
      settings.sparesDirectoryTimes = settings.sparesFileTimes || accessTimes.sparesDirectories
    }
    return settings
  }

  /// All bits of mount(2) that these ask for.
  package var mountBits: UInt {
    mountFlags.reduce(readOnly ? UInt(MS_RDONLY) : 0) { $0 | $1.bit }
  }

  /// What reading does to access times: the kernel leaves that to us, and we to the filesystem below.
  var accessTimes: AccessTimeRule {
    var rule = AccessTimeRule()
    if mountFlags.contains(.noatime) { rule.files = .never }
    if mountFlags.contains(.relatime) { rule.files = .relative }
    if mountFlags.contains(.strictatime) { rule.files = .always }
    rule.sparesDirectories = mountFlags.contains(.nodiratime)
    return rule
  }

  /// The same in words, for `fusermount3`, which knows no others.
  var helperOptions: [String] {
    let known: Set<MountFlag> = [.nosuid, .nodev, .noexec, .noatime, .sync, .dirsync]
    var words = [
      "fsname=\(source.replacing(each: ",", by: "\\,"))", "subtype=insula", readOnly ? "ro" : "rw",
    ]
    words += mountFlags.intersection(known).map(\.rawValue).inOrder(by: <)
    if allowOther { words.append("allow_other") }
    return words
  }
}
