// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO

/// What the kernel keeps of files that were taken back, on volumes that may not answer.
///
/// It waits there for what is being read, and for what it has to write back. So each volume has a thread for
/// each view, and never more than one: what is taken back on one is never in the queue behind another.
final class LostContents: Sendable {
  private struct Pending {
    /// What is not forgotten yet, and may still be written; how often each was taken back meanwhile, since
    /// what was granted again between has been read again.
    var files: [NodeID: UInt64] = [:]
    /// The devices of volumes that have a thread.
    var threads: Set<UInt32> = []
  }
  private let pending = Condition(Pending())
  private let kernel: KernelLink
  private let nodes: NodeTable

  init(_ kernel: KernelLink, _ nodes: NodeTable) { (self.kernel, self.nodes) = (kernel, nodes) }

  /// Whether what was stored in a file may still be written.
  func has(_ file: NodeID) -> Bool { pending.withLock { $0.files[file] != nil } }

  /// Has the kernel write back and forget the contents of files, and waits for that until some time at most;
  /// false if that is over.
  ///
  /// What was waited for before is not waited for again.
  func forget(_ files: Set<NodeID>, until end: UInt64) -> Bool {
    let new = pending.withLock { pending in
      for file in files { pending.files[file, default: 0] &+= 1 }
      return files.filter { pending.files[$0] == 1 }
    }
    for file in new { begin(device(of: file)) }
    return pending.wait(milliseconds: millisecondsLeft(until: end)) { pending in
      new.allSatisfy { pending.files[$0] == nil }
    }
  }

  private func begin(_ device: UInt32) {
    guard pending.withLock({ $0.threads.insert(device).inserted }) else { return }
    let thread = try? JoinableThread(name: "revoked") { [self] in forgetAll(on: device) }
    // Without a thread the caller waits, rather than leave contents to those who have lost them.
    if let thread { thread.detach() } else { forgetAll(on: device) }
  }

  private func forgetAll(on device: UInt32) {
    while let files = next(on: device) {
      for (file, times) in files {
        kernel.forgetContents(of: [file])
        pending.withLock { if $0.files[file] == times { $0.files[file] = nil } }
      }
      pending.wake()
    }
  }

  /// Nil, and no thread any more, if there is nothing.
  private func next(on device: UInt32) -> [NodeID: UInt64]? {
    pending.withLock { pending in
      // Whatever the kernel has left alone meanwhile has no device any more.
      let files = pending.files.filter { [device, 0].contains(self.device(of: $0.key)) }
      if !files.isEmpty { return files }
      pending.threads.remove(device)
      return nil
    }
  }

  private func device(of file: NodeID) -> UInt32 { nodes.number(of: file)?.device ?? 0 }
}
