// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy

/// What bubblewrap is told: the app's view, a system that can only be read, and nothing else of the machine.
struct Sandbox {
  /// Through which the filter of system calls is passed.
  static let filterDescriptor: Int32 = 3

  private let plan: LaunchPlan
  private let place: ViewPlace
  /// The path of the tree that the app is to see.
  private let source: String
  /// Where the app begins, if that was asked for.
  private let chosenDirectory: String?
  private let desktop: AppDesktop
  /// Whether the app can ask the daemon.
  private let hasSocket: Bool
  /// What starts the program with its limits.
  private let limits: [String]

  init(
    _ plan: LaunchPlan, _ place: ViewPlace, tree: String, directory: String?, desktop: AppDesktop,
    hasSocket: Bool, limits: [String]
  ) {
    self.desktop = desktop
    self.hasSocket = hasSocket
    self.limits = limits
    chosenDirectory = directory
    self.plan = plan
    self.place = place
    source = tree
  }

  private var home: String { "\(plan.mountPoint)/\(plan.data)" }

  /// Where the app begins; relative to its home.
  var directory: String {
    chosenDirectory.map { $0.begins(with: "/") ? $0 : "\(home)/\($0)" } ?? home
  }

  /// What programs read of /etc.
  private static let settings = [
    "alternatives", "bash.bashrc", "debian_version", "fonts", "inputrc", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias", "localtime", "magic", "mime.types", "nsswitch.conf", "os-release", "protocols",
    "services",
    "terminfo", "timezone",
  ]
  private static let networkSettings = [
    "ca-certificates", "gai.conf", "host.conf", "hosts", "resolv.conf", "ssl/certs", "ssl/openssl.cnf",
  ]

  /// What we need of the machine, and the sandbox; where programs have stores of their own, these too.
  static let places =
    ["usr", "etc", "proc", "dev", "nix", "gnu"].map { "/" + $0 } + programs.map { "/" + $0 }
  private static let programs = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"]

  /// Whether apps see a file of the machine that is at an absolute path, links in it resolved or not.
  static func shows(_ path: String) -> Bool {
    (["usr"] + programs).contains { path.begins(with: "/\($0)/") }
      && !path.parts(between: "/").contains("..")
  }

  /// Files of /etc that are links to other places, as resolv.conf often is.
  static var targetsElsewhere: [String] {
    (settings + networkSettings).compactMap { realPath("/etc/\($0)") }.filter { path in
      !places.contains { path.begins(with: $0 + "/") }
    }
  }

  /// The words after the program's name; `restoring` names the signals that the app is to get as ever.
  ///
  /// `own` are the arguments of the app's executable, where no command is run instead.
  func arguments(for command: [String], own: [String], restoring signals: [String]) -> [String] {
    var words = [
      "bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    ]
    if !plan.hasNetwork { words.append("--unshare-net") }
    words += ["--disable-userns", "--die-with-parent", "--cap-drop", "ALL"]
    words += Self.system + settings + devices + tree + domains + desktop.words
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", home]
    words += ["--seccomp", "\(Self.filterDescriptor)", "--"]
    let program = command.isEmpty ? ["\(plan.mountPoint)/\(plan.executable)"] + own : command
    return words + start(program, signals) + program
  }

  /// Programs and their libraries, as they are.
  static var system: [String] {
    var words = ["--ro-bind", "/usr", "/usr"]
    for name in programs {
      if let target = try? FD.cwd.linkTarget(of: "/\(name)") {
        words += ["--symlink", String(decoding: target, as: UTF8.self), "/\(name)"]
      } else {
        words += ["--ro-bind-try", "/\(name)", "/\(name)"]
      }
    }
    return words
  }

  private var settings: [String] {
    let names = Self.settings + (plan.hasNetwork ? Self.networkSettings : [])
    let own = ["passwd", "group"] + (plan.hasNetwork ? [] : ["hosts"])
    return names.flatMap { ["--ro-bind-try", "/etc/\($0)", "/etc/\($0)"] }
      + own.flatMap { ["--ro-bind", "\(place.files)/\($0)", "/etc/\($0)"] }
  }

  private var devices: [String] {
    Self.processes + ["--dev", "/dev", "--bind", place.shared, "/dev/shm", "--dir", "/run"]
      + (hasSocket ? ["--ro-bind", place.socket, AppSocket.directory] : [])
  }

  /// /proc, without what it tells of the machine as a whole: whose keys there are, what others do and when,
  /// the kernel and its devices.
  ///
  /// What is not there can't be covered. A program gets EACCES for a file, as from a kernel that is locked
  /// down; a directory is empty.
  static var processes: [String] {
    let isThere = { (name: String) in FD.cwd.has("/proc/\(name)") }
    return ["--proc", "/proc"]
      + hiddenFiles.filter(isThere).flatMap { ["--ro-bind", "/dev/null", "/proc/\($0)"] }
      + hiddenDirectories.filter(isThere).flatMap {
        ["--tmpfs", "/proc/\($0)", "--remount-ro", "/proc/\($0)"]
      }
  }

  private static let hiddenFiles = [
    "buddyinfo", "config.gz", "diskstats", "dma", "interrupts", "iomem", "ioports", "kallsyms", "kcore",
    "key-users", "keys", "kmsg", "kpagecgroup", "kpagecount", "kpageflags", "latency_stats", "locks",
    "mdstat", "modules", "mtrr", "pagetypeinfo", "partitions", "sched_debug", "schedstat", "slabinfo",
    "softirqs", "swaps", "sysrq-trigger", "timer_list", "timer_stats", "vmallocinfo", "zoneinfo",
  ]
  private static let hiddenDirectories = ["acpi", "asound", "bus", "driver", "fs", "irq", "scsi"]

  /// Whether the tree is where the app's socket would be.
  static func coversSocket(_ mountPoint: String) -> Bool {
    "\(mountPoint)/".begins(with: "\(AppSocket.directory)/")
      || "\(AppSocket.directory)/".begins(with: "\(mountPoint)/")
  }

  /// The view where the whole tree is; and whoever writes to /tmp by habit means the app's own.
  private var tree: [String] {
    var view = ["--bind", source, plan.mountPoint]
    // Then it is a directory of ours, in which what there is of the view is mounted.
    if plan.executablePlaces != nil { view += ["--remount-ro", plan.mountPoint] }
    // Where the tree or a socket is below one of them, bubblewrap makes directories there, and no link.
    let isInMemory = { (directory: String) in
      plan.mountPoint.begins(with: directory + "/") || directory == "/tmp" && desktop.isBelowTemporary
    }
    let places = ["/tmp", "/var/tmp"]
    return places.filter(isInMemory).flatMap { ["--bind", place.temporary, $0] } + view + ["--dir", "/var"]
      + places.filter { !isInMemory($0) }.flatMap { ["--symlink", home + "/tmp", $0] }
  }

  /// The tree's directories where programs of Apple's platforms have them.
  private var domains: [String] {
    Self.domainNames(besides: plan.mountPoint).flatMap { name in
      ["--symlink", "\(plan.mountPoint)/\(name)", "/\(name)"]
    }
  }

  /// The directories of the tree that have a link in the sandbox's root: those whose names are known from
  /// Apple's platforms, but not one that leads to the tree itself.
  static func domainNames(besides mountPoint: String) -> [String] {
    let names = DomainTree.directories.map(\.path).filter {
      !$0.hasPrefix(".") && !$0.utf8.contains(UInt8(ascii: "/"))
    }
    return names.inOrder(by: <).filter {
      !mountPoint.hasSameBytes(as: "/\($0)") && !mountPoint.begins(with: "/\($0)/")
    }
  }

  /// bubblewrap must not end by what the terminal sends to the app, so it ignores that, and the app gets it
  /// back.
  private func start(_ program: [String], _ signals: [String]) -> [String] {
    var options: [String] = []
    // With the rights of the app and its view of the tree, so that '..' and links lead nowhere else.
    if chosenDirectory != nil { options.append("--chdir=" + directory) }
    if !signals.isEmpty { options.append("--default-signal=" + signals.joined(separator: ",")) }
    guard !options.isEmpty else { return limits }
    let words = ["/usr/bin/env"] + options + ["--"]
    guard limits.isEmpty else { return words + limits }
    // What has an equals sign in it, env takes for a variable.
    guard program.first?.contains("=") == true else { return words }
    return words + ["/usr/bin/nice", "-n", "0", "--"]
  }
}
