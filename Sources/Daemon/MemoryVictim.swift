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
  /// From -1000, never, to 1000; one stands for a thousandth of all memory.
  private let inherited: Int
  private static let never = -1000
  private static let most = 1000
  private static let workersMore = 100
  private let isKeeperSpared: Bool

  /// Called by the keeper.
  init() {
    let text = FD.text(of: Self.file, limit: 16) ?? ""
    inherited = Int(text.prefix { $0 != "\n" }) ?? 0
    isKeeperSpared = Self.set(Self.never)
  }

  /// Called by a keeper that has not become another program.
  func isSpared() { _ = Self.set(Self.never) }

  /// Called by the keeper before it waits.
  func waits() { clx_unmap_code() }

  /// Called by each worker.
  func isWorker() {
    _ = Self.set(isKeeperSpared ? inherited : min(inherited + Self.workersMore, Self.most))
  }

  /// Called by the keeper before it becomes another program, which begins as this one did.
  func givesWay() { _ = Self.set(inherited) }

  private static let file = "/proc/self/oom_score_adj"

  private static func set(_ value: Int) -> Bool {
    do throws(Errno) {
      let file = try FD.cwd.openFollowing(Self.file, O_WRONLY)
      try file.fd.writeAll(String(value).utf8)
      return true
    } catch {
      return false
    }
  }
}
