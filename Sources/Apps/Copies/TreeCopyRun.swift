// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO
internal import Synchronization

/// One run of a copy: what its threads share.
final class TreeCopyRun: Sendable {
  enum Work: Sendable {
    case top
    /// The directory of this name in another.
    case directory([UInt8], in: CopiedDirectory)
    /// What is in one and was not listed yet.
    case rest(of: CopiedDirectory)
    /// Some of the other entries of one.
    case entries(ArraySlice<(name: [UInt8], type: UInt8)>, in: CopiedDirectory)
  }

  let plan: TreeCopy
  let source: FD
  let name: [UInt8]
  let parent: FD
  /// As whom the copy is written; nil for this process itself.
  let writer: ReaderIdentity?
  let stack = WorkStack<Work>([.top])

  private struct State {
    var count = TreeCopy.Count()
    /// What there is already, and what is known to come.
    var entries = 1
    var bytes: Int64 = 0
    var failure: TreeCopyFailure?
  }
  private let state = Mutex(State())
  /// Set with the first failure: after it nothing is begun.
  private let hasFailed = Atomic(false)
  private let device = Atomic<UInt64>(0)

  init(_ plan: TreeCopy, _ source: FD, _ name: Name, _ parent: FD) {
    self.plan = plan
    self.source = source
    self.name = Array(name.buffer)
    self.parent = parent
    writer = Self.writer(plan, parent)
  }

  /// Who copies something for themselves writes as themselves.
  ///
  /// Otherwise they got room that a disk keeps for root, or more than their quota. A server judges by its own
  /// rules who may write.
  private static func writer(_ plan: TreeCopy, _ parent: FD) -> ReaderIdentity? {
    guard let reader = plan.reader, reader.uid == plan.uid,
      (try? parent.filesystemKind().isRemote) == false
    else { return nil }
    return ReaderIdentity(uid: plan.uid, gid: plan.gid, groups: reader.groups)
  }

  func work() {
    let makeWorker: @Sendable () -> (Work) -> Void = { [self] in
      let worker = TreeCopyWorker(self)
      return { worker.work(on: $0) }
    }
    guard plan.reader != nil else { return stack.work(name: "copy", waits: true, makeWorker) }
    do throws(Errno) {
      try stack.workElsewhere(name: "copy", waits: true, makeWorker)
    } catch {
      fail(TreeCopyFailure(path: "", reason: .failed(doing: "start a thread to copy", error)))
    }
  }

  var count: TreeCopy.Count { state.withLock(\.count) }
  /// Why it has ended before it was done.
  var failure: TreeCopyFailure? { state.withLock(\.failure) }

  /// Whether there is no use in going on.
  var isOver: Bool {
    if hasFailed.load(ordering: .relaxed) { return true }
    guard plan.isCancelled() else { return false }
    fail(TreeCopyFailure(path: "", reason: .cancelled))
    return true
  }

  /// The filesystem that the source is on.
  var sourceDevice: UInt64 {
    get { device.load(ordering: .relaxed) }
    set { device.store(newValue, ordering: .relaxed) }
  }

  func fail(_ failure: TreeCopyFailure) {
    state.withLock { if $0.failure == nil { $0.failure = failure } }
    hasFailed.store(true, ordering: .relaxed)
  }

  /// Takes note of entries that are to be copied; false if there are too many of them.
  func announce(_ entries: Int) -> Bool {
    state.withLock {
      $0.entries += entries
      return $0.entries <= plan.limits.entries
    }
  }

  /// Takes note of a file that is to be copied; false if all of them are longer than they may be.
  func announce(bytes: Int64) -> Bool {
    state.withLock {
      $0.bytes = $0.bytes.adding(clamped: bytes)
      return $0.bytes <= plan.limits.bytes
    }
  }

  /// Takes note of what has been copied.
  func count(_ change: (inout TreeCopy.Count) -> Void) {
    // Under the lock, so that whoever hears of it hears it in its order.
    state.withLock {
      change(&$0.count)
      plan.progress($0.count)
    }
  }
}

/// A directory whose copy is being filled; with this object goes the last one who could put something in it.
final class CopiedDirectory: Sendable {
  let source: OwnedFD
  let target: OwnedFD
  /// Below the top, ending in a slash; empty for the top.
  ///
  /// For messages.
  let prefix: String
  let depth: Int
  private let status: FileStatus
  private let run: TreeCopyRun

  init(
    _ source: consuming OwnedFD, _ target: consuming OwnedFD, _ status: FileStatus, prefix: String,
    depth: Int,
    _ run: TreeCopyRun
  ) {
    self.source = source
    self.target = target
    self.status = status
    self.prefix = prefix
    self.depth = depth
    self.run = run
  }

  deinit {
    do throws(Errno) {
      try target.fd.changeTimes(access: .set(status.st_atim), modification: .set(status.st_mtim))
    } catch {
      run.fail(
        TreeCopyFailure(path: String(prefix.dropLast()), reason: .failed(doing: "set the times of", error)))
    }
  }
}
