// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO

/// Which process the kernel ends when the machine, or a control group, has no memory left.
///
/// A worker is replaced, and the keeper is not: with it the mount would go. So the keeper is spared where it
/// may ask for that (root's, by CAP_SYS_RESOURCE), and its workers are as likely to be chosen as they would
/// be without a keeper. Elsewhere the workers make themselves more likely to be chosen, as everyone may, but
/// not more than a process that takes a tenth of the memory: what they keep for the next one is not given
/// back by their end, so that one is the better choice.
///
/// The kernel counts what a process has mapped of its program, too. Most of that has served to start, and is
/// more than a new worker has.
struct MemoryVictim {
  private let inherited: Int
  private static let workersMore = 100
  private let isKeeperSpared: Bool

  /// Called by the keeper.
  init() {
    inherited = MemoryScore.own
    isKeeperSpared = MemoryScore.set(MemoryScore.never)
  }

  /// Called by a keeper that has not become another program.
  func isSpared() { _ = MemoryScore.set(MemoryScore.never) }

  /// Called by the keeper before it waits.
  func waits() { clx_unmap_code() }

  /// Called by each worker.
  func isWorker() {
    _ = MemoryScore.set(isKeeperSpared ? inherited : min(inherited + Self.workersMore, MemoryScore.most))
  }

  /// Called by the keeper before it becomes another program, which begins as this one did.
  func givesWay() { _ = MemoryScore.set(inherited) }
}
