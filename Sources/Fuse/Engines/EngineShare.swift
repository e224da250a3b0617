// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// What a program that serves a volume may take of what the daemon needs, beside which it runs.
///
/// A user's is any program that they want (the ProxyCommand of ssh), with all that it starts, and runs in the
/// control group of root's daemon: outside of all limits of the user's own session.
enum EngineShare {
  /// By how many thousandths of all memory it counts as larger than it is.
  ///
  /// A worker is smaller, and its end stops everybody for a moment, while a program that ends is started
  /// again.
  private static let memoryScore = 200
  /// Less is not enough for any program.
  private static let leastTasks = 64

  /// Called by a process of root's that is about to become somebody's: they can't take it back.
  static func limit() {
    // What protects the daemon is not meant for what users start.
    _ = MemoryScore.set(min(max(MemoryScore.own, 0) + memoryScore, MemoryScore.most))
    // The kernel counts nothing of root's.
    guard let limit = tasks(of: TasksLimit.of("self")) else { return }
    let kind = __rlimit_resource_t(__RLIMIT_NPROC.rawValue)
    var known = rlimit()
    guard getrlimit(kind, &known) == 0 else { return }
    let most = min(known.rlim_max, rlim_t(limit))
    var wanted = rlimit(rlim_cur: min(known.rlim_cur, most), rlim_max: most)
    _ = setrlimit(kind, &wanted)
  }

  /// Half of what there may be beside the daemon, which counts all that the user has anywhere.
  static func tasks(of all: Int?) -> Int? { all.map { max($0 / 2, leastTasks) } }
}
