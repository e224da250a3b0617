// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// The processes of an app in its sandbox.
enum AppProcesses {
  /// Deeper than this no kernel nests namespaces of processes, nor an app its processes.
  private static let most = 4096

  /// Ends all processes of the app that a thread belongs to, by the first one of their namespace; where there
  /// is none of their own, the thread's process alone.
  static func endAll(of thread: Int32, for user: UInt32) throws(Errno) {
    guard let process = ProcessID.process(ofThread: thread)?.id else { throw .ESRCH }
    let target = first(above: process) ?? process
    let descriptor = try ProcessID.open(target)
    // The number and the descriptor mean the same process if it is still what was looked for.
    guard ProcessID.maySignal(user, target), target == process || isFirst(target) else { throw .EPERM }
    try descriptor.fd.send(signal: SIGKILL)
  }

  /// Ends all processes of the app that a process has started, and of whatever else it has started in
  /// namespaces of their own, by the first one of each namespace.
  static func endAll(startedBy starter: Int32, for user: UInt32) throws(Errno) {
    var found = false
    for process in ProcessTable().descendants(of: starter).map(\.pid) where isFirst(process) {
      guard let descriptor = try? ProcessID.open(process) else { continue }
      // The number and the descriptor mean the same process if it is still what was looked for.
      guard isFirst(process), ProcessID.maySignal(user, process) else { continue }
      try descriptor.fd.send(signal: SIGKILL)
      found = true
    }
    guard found else { throw .ESRCH }
  }

  private static func parent(of process: Int32) -> Int32? {
    ProcessID.field("PPid", of: "\(process)").flatMap { Int32($0) }.flatMap { $0 > 0 ? $0 : nil }
  }

  /// The first process of the namespace in which one is; nil if that is ours.
  private static func first(above process: Int32) -> Int32? {
    var process = process
    for _ in 0..<most {
      if isFirst(process) { return process }
      guard let parent = parent(of: process) else { return nil }
      // It may have been adopted by one outside.
      guard depth(parent) == depth(process) || isFirst(parent) else { return nil }
      process = parent
    }
    return nil
  }

  /// Whether a process is the first one of a namespace below ours.
  private static func isFirst(_ process: Int32) -> Bool {
    let numbers = numbers(of: process)
    return numbers.count > 1 && numbers.last == 1
  }

  private static func depth(_ process: Int32) -> Int { numbers(of: process).count }

  /// The numbers of a process in all namespaces that it is in, ours first.
  private static func numbers(of process: Int32) -> [Int32] {
    (ProcessID.field("NSpid", of: "\(process)") ?? "").parts(between: "\t").compactMap { Int32($0) }
  }
}
