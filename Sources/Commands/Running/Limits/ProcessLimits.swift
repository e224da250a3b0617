// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// The limits that the kernel keeps for each process (`setrlimit(2)`).
///
/// They are set in the sandbox, last of all, so that what makes the sandbox does not run into them. The hard
/// limit is set with the soft one, and raising it takes a right that nobody has in a user namespace.
struct ProcessLimits {
  /// A program of util-linux, which becomes the app.
  static let program = "/usr/bin/prlimit"

  private var settings: [String] = []

  /// `ofCgroup` are kept by a cgroup, which counts all processes together.
  init(_ limits: ResourceLimits, ofCgroup: Set<ResourceLimits.Kind>) {
    // The cgroup counts what is used; here, what is only reserved counts as well.
    if let memory = limits.memory, !ofCgroup.contains(.memory) { set("as", memory, RLIMIT_AS) }
    if let processes = limits.processes, !ofCgroup.contains(.processes), Self.canLimit(.processes) {
      // bubblewrap's process in the sandbox is one of them.
      set("nproc", processes + 1, __RLIMIT_NPROC)
    }
    if let files = limits.openFiles { set("nofile", files, RLIMIT_NOFILE) }
  }

  /// Whether this can be limited without a cgroup.
  ///
  /// Processes are counted for a user in a user namespace since Linux 5.14, and the app has one of its own;
  /// before, all processes of the user would count. For root the kernel counts none.
  static func canLimit(_ kind: ResourceLimits.Kind) -> Bool {
    switch kind {
    case .memory, .openFiles: true
    case .processes: KernelRelease.own >= KernelRelease(5, 14) && ProcessID.user != 0
    case .cpu: false
    }
  }

  /// What starts a program with these limits; nothing if there is none.
  var words: [String] { settings.isEmpty ? [] : [Self.program] + settings + ["--"] }

  /// Nobody gets more than who starts the app has.
  private mutating func set(_ name: String, _ value: Int64, _ resource: __rlimit_resource) {
    var own = rlimit()
    let known = getrlimit(__rlimit_resource_t(resource.rawValue), &own) == 0
    let most = min(UInt64(clamping: value), known ? UInt64(own.rlim_max) : .max)
    settings.append("--\(name)=\(most):\(most)")
  }
}

extension ProcessLimits {
  /// By the words that the kernel has for them.
  private static let names: [(name: String, kind: ResourceLimits.Kind)] = [
    ("Max address space", .memory), ("Max processes", .processes), ("Max open files", .openFiles),
  ]

  /// The limits of an app's process that are stricter than those of who has started it, which are nobody's
  /// wish for this app.
  static func set(of app: Int32, by run: Int32) -> ResourceLimits {
    var limits = ResourceLimits()
    let (apps, runs) = (read(app), read(run))
    for (name, kind) in names {
      guard let value = apps[name], value < runs[name] ?? .max else { continue }
      limits[kind] = kind == .processes ? value - 1 : value
    }
    return limits
  }

  /// The hard limits by their names; those that are not there do not limit anything.
  private static func read(_ pid: Int32) -> [String: Int64] {
    var limits: [String: Int64] = [:]
    for line in FD.text(of: "/proc/\(pid)/limits", limit: 1 << 14)?.parts(between: "\n") ?? [] {
      guard let name = names.first(where: { line.hasPrefix($0.name + " ") })?.name else { continue }
      let words = line.dropFirst(name.utf8.count).parts(between: " ")
      if words.count > 1, let value = Int64(words[1]), value > 0 { limits[name] = value }
    }
    return limits
  }
}
