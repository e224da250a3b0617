// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO

/// What the kernel keeps of files that were taken back.
///
/// It waits there for what is being read, and for what it has to write back: on a volume that may not answer,
/// or of a file whose lock somebody holds. So each volume has a thread for each view, and never more than
/// one: what is taken back on one is never in the queue behind another.
final class LostContents: Sendable {
  private struct Pending {
    /// What is not forgotten yet, and may still be written.
    var files: Set<NodeID> = []
    /// Those that were taken back once more while they were being forgotten: if they were granted again
    /// between, something has been read again.
    var again: Set<NodeID> = []
    /// The devices of volumes that have a thread.
    var threads: Set<UInt32> = []
  }
  private let pending = Condition(Pending())
  private let kernel: KernelLink
  private let nodes: NodeTable

  init(_ kernel: KernelLink, _ nodes: NodeTable) { (self.kernel, self.nodes) = (kernel, nodes) }

  /// Whether what was stored in a file may still be written.
  func has(_ file: NodeID) -> Bool { pending.withLock { $0.files.contains(file) } }

  /// Has the kernel write back and forget the contents of files, and waits for that until some time at most;
  /// false if that is over.
  ///
  /// What was waited for before is waited for only with `again`: where that may never end it is not.
  func forget(_ files: Set<NodeID>, until end: UInt64, again: Bool) -> Bool {
    let new = pending.withLock { pending in
      let new = files.subtracting(pending.files)
      pending.again.formUnion(files.subtracting(new))
      pending.files.formUnion(new)
      return new
    }
    for file in new { begin(device(of: file)) }
    let waited = again ? files : new
    return pending.wait(milliseconds: millisecondsLeft(until: end)) { $0.files.isDisjoint(with: waited) }
  }

  private func begin(_ device: UInt32) {
    guard pending.withLock({ $0.threads.insert(device).inserted }) else { return }
    let thread = try? JoinableThread(name: "revoked") { [self] in forgetAll(on: device) }
    // Without a thread the caller waits, rather than leave contents to those who have lost them.
    if let thread { thread.detach() } else { forgetAll(on: device) }
  }

  private func forgetAll(on device: UInt32) {
    while let files = next(on: device) {
      for file in files {
        pending.withLock { _ = $0.again.remove(file) }
        kernel.forgetContents(of: [file])
        pending.withLock { if $0.again.remove(file) == nil { $0.files.remove(file) } }
      }
      pending.wake()
    }
  }

  /// Nil, and no thread any more, if there is nothing.
  private func next(on device: UInt32) -> Set<NodeID>? {
    pending.withLock { pending in
      // Whatever the kernel has left alone meanwhile has no device any more.
      let files = pending.files.filter { [device, 0].contains(self.device(of: $0)) }
      if !files.isEmpty { return files }
      pending.threads.remove(device)
      return nil
    }
  }

  private func device(of file: NodeID) -> UInt32 { nodes.number(of: file)?.device ?? 0 }
}
