// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO

/// What the kernel keeps of files that were taken back, on volumes that may not answer.
///
/// It waits there for what is being read, and for what it has to write back. So each volume has a thread, and
/// never more than one: what is taken back on one is never in the queue behind another.
final class LostContents: Sendable {
  private let kernel: KernelLink
  /// What is not forgotten yet, by its volume's device; there is a thread for each of those.
  private let pending = Condition<[UInt32: Set<NodeID>]>([:])

  init(_ kernel: KernelLink) { self.kernel = kernel }

  /// Whether what was stored in a file may still be written.
  func has(_ node: NodeID) -> Bool { pending.withLock { $0.values.contains { $0.contains(node) } } }

  /// Has the kernel write back and forget the contents of files, and waits for that until some time at most;
  /// false if that is over.
  ///
  /// What was waited for before is not waited for again.
  func forget(_ files: [UInt32: Set<NodeID>], until end: UInt64) -> Bool {
    let new = pending.withLock { pending in
      let known = pending
      pending.merge(files) { $0.union($1) }
      return files.map { (device: $0, isFirst: known[$0] == nil, files: $1.subtracting(known[$0] ?? [])) }
    }
    for volume in new where volume.isFirst { begin(volume.device) }
    return pending.wait(milliseconds: millisecondsLeft(until: end)) { pending in
      new.allSatisfy { pending[$0.device]?.isDisjoint(with: $0.files) ?? true }
    }
  }

  private func begin(_ device: UInt32) {
    let thread = try? JoinableThread(name: "revoked") { [self] in forgetAll(device) }
    // Without a thread the caller waits, rather than leave contents to those who have lost them.
    if let thread { thread.detach() } else { forgetAll(device) }
  }

  private func forgetAll(_ device: UInt32) {
    while let file = next(device) {
      kernel.forgetContents(of: [file])
      pending.change { _ = $0[device]?.remove(file) }
    }
  }

  /// Nil, and no thread any more, if there is none.
  private func next(_ device: UInt32) -> NodeID? {
    pending.withLock { pending in
      if let file = pending[device]?.first { return file }
      pending[device] = nil
      return nil
    }
  }
}
