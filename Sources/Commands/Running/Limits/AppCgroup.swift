// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// The cgroup of an app that runs: in it the kernel counts all processes of the app together.
///
/// It is made in the cgroup that `insula run` itself is in, which somebody must have given us: a service
/// manager that delegates it, or an administrator. The kernel limits nothing below a cgroup that has
/// processes itself; so ours go into a second one beside the app's, if no others are there.
final class AppCgroup {
  /// What it limits.
  let kinds: Set<ResourceLimits.Kind>

  private let base: OwnedFD
  private let app: OwnedFD
  /// Where our own processes are while the app runs: another one in `base`, if they could not stay there.
  private let own: OwnedFD
  private let ownProcesses: [Int32]
  private let controllers: [String]

  /// bubblewrap has two processes in it.
  private static let others: Int64 = 2
  private static let appPrefix = "insula-app-"
  private static let ownPrefix = "insula-run-"

  /// Whether there is such a limit at all.
  static func canLimit(_ kind: ResourceLimits.Kind) -> Bool { kind.controller != nil }

  /// Throws where that can't be had: EBUSY if others are in our cgroup, ENOENT if it can't limit any of that.
  ///
  /// `ours` are the processes that belong to this `insula run`; `root` is that of all cgroups.
  init(_ limits: ResourceLimits, ours: Set<Int32>, path: String, below root: FD) throws(Errno) {
    base = try root.openDirectory(at: path)
    let known = try base.fd.cgroupWords("cgroup.controllers")
    kinds = Set(limits.kinds.filter { kind in kind.controller.map { known.contains($0[...]) } ?? false })
    guard !kinds.isEmpty else { throw .ENOENT }
    let wanted = kinds.compactMap(\.controller).inOrder(by: <)
    let active = try base.fd.cgroupWords("cgroup.subtree_control")
    controllers = wanted.filter { !active.contains($0[...]) }
    Self.clear(base.fd)
    let members = controllers.isEmpty ? [] : try base.fd.cgroupWords("cgroup.procs").compactMap { Int32($0) }
    guard ours.isSuperset(of: members) else { throw .EBUSY }
    ownProcesses = members
    own = controllers.isEmpty ? try base.fd.duplicated() : try Self.make(Self.ownPrefix, in: base.fd)
    do throws(Errno) {
      for process in members { try own.fd.takeIntoCgroup(process) }
      if !controllers.isEmpty {
        try base.fd.setCgroup("cgroup.subtree_control", controllers.map { "+" + $0 }.joined(separator: " "))
      }
      app = try Self.make(Self.appPrefix, in: base.fd)
    } catch {
      try? base.fd.remove(Self.name(Self.appPrefix), directory: true)
      Self.giveBack(base.fd, controllers, members)
      throw error
    }
    do throws(Errno) {
      for kind in kinds { try set(kind, limits[kind] ?? 0) }
    } catch {
      remove()
      throw error
    }
  }

  private func set(_ kind: ResourceLimits.Kind, _ limit: Int64) throws(Errno) {
    switch kind {
    case .memory:
      try app.fd.setCgroup("memory.max", "\(limit)")
      // Or it would use the swap space of all. Some machines have none.
      try? app.fd.setCgroup("memory.swap.max", "0")
    case .processes: try app.fd.setCgroup("pids.max", "\(limit + Self.others)")
    // Microseconds of each tenth of a second.
    case .cpu: try app.fd.setCgroup("cpu.max", "\(limit * 1000) 100000")
    case .openFiles: break
    }
  }

  /// Starts a process that is in the cgroup from its beginning.
  func starting(_ start: () -> Int32) throws(Errno) -> Int32 {
    try app.fd.takeIntoCgroup(0)
    defer { try? own.fd.takeIntoCgroup(0) }
    return start()
  }

  // MARK: The end

  /// How often the kernel has ended a process because their memory was used up.
  var processesEndedForMemory: Int64 { app.fd.cgroupCount("oom_kill", in: "memory.events") }

  /// How often it has refused another process.
  var processesRefused: Int64 { app.fd.cgroupCount("max", in: "pids.events") }

  /// Takes it away when the app has ended, and leaves all as it was.
  func remove() {
    try? base.fd.remove(Self.name(Self.appPrefix), directory: true)
    Self.giveBack(base.fd, controllers, ownProcesses)
  }

  private static func giveBack(_ base: FD, _ controllers: [String], _ processes: [Int32]) {
    guard !controllers.isEmpty else { return }
    try? base.setCgroup("cgroup.subtree_control", controllers.map { "-" + $0 }.joined(separator: " "))
    for process in processes { try? base.takeIntoCgroup(process) }
    try? base.remove(name(ownPrefix), directory: true)
  }

  // MARK: Names

  private static func name(_ prefix: String) -> String { "\(prefix)\(ProcessID.own)" }

  private static func make(_ prefix: String, in base: FD) throws(Errno) -> OwnedFD {
    try base.makeDirectory(name(prefix), mode: 0o755)
    return try base.openDirectory(name(prefix))
  }

  /// Takes away what was left by those of us who were killed.
  ///
  /// The kernel keeps every one that has a process in it.
  private static func clear(_ base: FD) {
    for entry in (try? base.entries(atMost: 10_000)) ?? [] {
      let name = String(decoding: entry.name, as: UTF8.self)
      for prefix in [appPrefix, ownPrefix] where name.hasPrefix(prefix) {
        guard let process = Int32(name.dropFirst(prefix.utf8.count)), ProcessID.isGone(process) else {
          continue
        }
        try? base.remove(name, directory: true)
      }
    }
  }
}

extension ResourceLimits.Kind {
  /// Which part of the kernel limits it for all processes of a cgroup.
  fileprivate var controller: String? {
    switch self {
    case .memory: "memory"
    case .processes: "pids"
    case .cpu: "cpu"
    case .openFiles: nil
    }
  }
}

extension AppCgroup {
  /// What the kernel says of an app's cgroup to who looks from outside.
  struct Reading {
    /// In bytes; nil where the cgroup does not count it.
    let memory: UInt64?
    let limits: ResourceLimits

    /// Nil if the process is in no cgroup of ours.
    init?(of process: Int32, below root: FD?) {
      guard let root, let path = Cgroup.path(of: "\(process)"),
        path.parts(between: "/").last?.hasPrefix(AppCgroup.appPrefix) == true,
        let cgroup = try? root.openDirectory(at: path)
      else { return nil }
      let directory = cgroup.fd
      func numbers(_ name: String) -> [Int64?] {
        ((try? directory.cgroupWords(name)) ?? []).map { Int64($0) }
      }
      memory = numbers("memory.current").first.flatMap { $0 }.map { UInt64(clamping: $0) }
      var limits = ResourceLimits()
      limits.memory = numbers("memory.max").first ?? nil
      limits.processes = (numbers("pids.max").first ?? nil).map {
        max($0, AppCgroup.others) - AppCgroup.others
      }
      let share = numbers("cpu.max")
      if share.count == 2, let time = share[0], let period = share[1], period >= 100 {
        limits.cpu = time / (period / 100)
      }
      self.limits = limits
    }
  }
}
