// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy

/// The limits of an app that is about to run, and what enforces them: a cgroup where there can be one, and
/// else the limits of processes.
struct EnforcedLimits {
  private let app: String
  private let limits: ResourceLimits
  private let cgroup: AppCgroup?
  private let ofProcesses: ProcessLimits

  /// `cgroups` is the root of all of them, opened before it was out of reach; `scope` can get us one.
  ///
  /// A limit that a person has asked for and that can't be had is a failure; one of the bundle's is a note.
  init(
    of app: String, bundle: ResourceLimits, chosen: ChosenLimits, cgroups: FD?,
    scope: DelegatedScope?, ours: Set<Int32>, _ console: Console
  ) throws(CommandFailure) {
    self.app = app
    limits = chosen.over(bundle)
    cgroup = Self.cgroup(limits, cgroups, scope, ours)
    let ofCgroup = cgroup?.kinds ?? []
    ofProcesses = ProcessLimits(limits, ofCgroup: ofCgroup)
    if !ofProcesses.words.isEmpty, access(ProcessLimits.program, X_OK) != 0 {
      remove()
      throw CommandFailure(
        .failed, "\(ProcessLimits.program) is missing, which is required to limit apps; install util-linux")
    }
    for kind in limits.kinds where !ofCgroup.contains(kind) && !ProcessLimits.canLimit(kind) {
      let sentence = "can't limit the \(kind.subject) of \(app): that takes a cgroup delegated to you"
      guard !chosen.has(kind) else {
        remove()
        throw CommandFailure(
          .failed,
          "\(sentence) (version 2, as systemd does it); leave out --\(kind.option) to run it without")
      }
      console.note("run: \(sentence), so it runs without that limit")
    }
  }

  private static func cgroup(
    _ limits: ResourceLimits, _ root: FD?, _ scope: DelegatedScope?, _ ours: Set<Int32>
  ) -> AppCgroup? {
    func make() -> AppCgroup? {
      guard let root, let path = Cgroup.path(of: "self") else { return nil }
      return try? AppCgroup(limits, ours: ours, path: path, below: root)
    }
    guard limits.kinds.contains(where: AppCgroup.canLimit) else { return nil }
    if let cgroup = make() { return cgroup }
    return scope?.enter() == true ? make() : nil
  }

  /// How much the app may keep in files in memory.
  var memory: Int64? { limits.memory }

  /// What comes before the words of the program, in the sandbox.
  var words: [String] { ofProcesses.words }

  /// Starts a process that the limits hold for.
  func starting(_ start: () -> Int32) throws(CommandFailure) -> Int32 {
    guard let cgroup else { return start() }
    do throws(Errno) {
      return try cgroup.starting(start)
    } catch {
      throw CommandFailure(.failed, "can't start \(app) in its cgroup: \(error.message)")
    }
  }

  // MARK: The end

  /// Which limit the kernel has enforced, as far as it says so.
  var reached: AppEnding.Limit? {
    guard let cgroup else { return nil }
    if limits.memory != nil, cgroup.processesEndedForMemory > 0 { return .memory }
    return limits.processes != nil && cgroup.processesRefused > 0 ? .processes : nil
  }

  /// Tells which limit the app has reached, as far as that can be known, and takes away what was made for it.
  ///
  /// `status` is its exit status; nil if it was not even started.
  func end(_ status: Int32?, _ console: Console) {
    defer { remove() }
    guard let status else { return }
    guard let cgroup else { return hint(status, console) }
    let (ended, refused) = (cgroup.processesEndedForMemory, cgroup.processesRefused)
    if let memory = limits.memory, ended > 0 {
      let what = status == 128 + SIGKILL ? app : "processes of \(app) (\(ended))"
      let limit = ResourceLimits.Kind.memory.text(of: memory)
      console.note("run: the kernel has ended \(what), because it used more than its \(limit)")
    }
    if let processes = limits.processes, refused > 0 {
      let limit = ResourceLimits.Kind.processes.text(of: processes)
      console.note(
        "run: \(app) wanted more than its \(limit); the kernel has refused others (\(refused))")
    }
  }

  /// Without a cgroup the kernel tells only the app, which may not expect that.
  private func hint(_ status: Int32, _ console: Console) {
    let signals = [SIGABRT, SIGSEGV, SIGBUS, SIGTRAP, SIGILL]
    guard let memory = limits.memory, signals.contains(status - 128) else { return }
    console.note(
      "run: \(app) was ended by signal \(status - 128); its processes may have "
        + "\(ResourceLimits.Kind.memory.text(of: memory)) each, which may have been too little")
  }

  private func remove() { cgroup?.remove() }
}

extension ResourceLimits.Kind {
  fileprivate var subject: String {
    switch self {
    case .memory: "memory"
    case .processes: "processes"
    case .cpu: "CPU share"
    case .openFiles: "open files"
    }
  }
}
