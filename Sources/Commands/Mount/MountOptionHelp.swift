// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A mount option of our own, as help and the manual describe it; `MountOptions` understands them.
struct MountOptionHelp: Sendable {
  let spelling: String
  let help: String

  static let all = [
    MountOptionHelp(spelling: "nonempty", help: "mount even if the directory is not empty"),
    MountOptionHelp(
      spelling: "nogrpid",
      help: "give new files the group of their creator, as usual on Linux, not of their directory"),
    MountOptionHelp(spelling: "nopassthrough", help: "let all data go through the daemon"),
    MountOptionHelp(
      spelling: "nohandles", help: "don't use file handles; keep some descriptors open instead"),
    MountOptionHelp(spelling: "local_locks", help: "let POSIX locks apply within this mount only"),
    MountOptionHelp(
      spelling: "purge=BELOW:UNTIL",
      help: "delete caches and temporary files of apps that don't run when less than BELOW is free on the "
        + "disk, until UNTIL is free, as 5%:10% or 2G:4G (default: below 5% or 2 GiB, whichever is less, "
        + "until twice that)"),
    MountOptionHelp(spelling: "nopurge", help: "delete them only by 'insula purge'"),
    MountOptionHelp(
      spelling: "removed=DAYS",
      help: "for how many days the containers of uninstalled apps can be restored (0 to 30, default: 30; "
        + "see 'insula removed list')"),
    MountOptionHelp(
      spelling: "files[=DIRECTORY]",
      help: "of your own store: mount your files view too (see '--files'), at ~/Files or there"),
    MountOptionHelp(
      spelling: "cache=SECONDS", help: "how long the kernel may use cached names and attributes"),
    MountOptionHelp(
      spelling: "restarts=N",
      help: "how often the process that serves may die within ten seconds and be replaced (default: 4); "
        + "then the mount is removed"),
    MountOptionHelp(
      spelling: "servers=FILE",
      help: "the file that names servers of the network (default: network.conf, beside insula.conf)"),
    MountOptionHelp(spelling: "threads=N", help: "number of threads that process requests (1 to 256)"),
    MountOptionHelp(
      spelling: "poll=USEC",
      help: "how long a thread polls for the next request before it sleeps (0 to 10000)"),
  ]

  /// The options of mount(8) that a mount understands.
  static let general = """
    Mount options of mount(8): ro rw remount nosuid noexec nodev noatime nodiratime relatime strictatime
    sync dirsync and their opposites, and fsname=NAME. Options for fstab (auto, user, nofail, x-...) are
    ignored.
    """
}
