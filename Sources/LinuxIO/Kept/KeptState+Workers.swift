// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import Synchronization

// What a keeper and its workers tell each other, and what is told of them.

extension KeptState {
  /// Counts the workers that have been replaced.
  package var restarts: Int { Int(header.pointee.restarts) }

  /// Why the last one was; nil if none was.
  package var lastReason: Reason? {
    guard restarts > 0 else { return nil }
    switch header.pointee.lastSignal {
    case Header.wish: return .wish
    case Header.keeperEnded: return .keeperEnded
    case let signal: return .signal(signal)
    }
  }

  /// For how long nobody has served then.
  package var lastPauseMilliseconds: Double {
    Double(header.pointee.lastPause / 10_000) / 100
  }

  /// The worker serves from here on.
  package func serves() {
    let died = header.pointee.diedAt
    if died != 0 { header.pointee.lastPause = monotonicNanoseconds() &- died }
    header.pointee.diedAt = 0
    lock.withLock { _ in
      // It may have ended while it was taken over.
      guard !hasSeenTheEnd.load(ordering: .relaxed) else { return }
      header.pointee.isServing = Header.yes
      header.pointee.isNotServing = 0
    }
  }

  package var isServing: Bool {
    header.pointee.isServing == Header.yes || header.pointee.isNotServing != Header.yes
  }

  /// The mount is gone: whoever dies from here on is not replaced.
  package func mountIsGone() {
    lock.withLock { _ in
      hasSeenTheEnd.store(true, ordering: .relaxed)
      header.pointee.isNotServing = Header.yes
      header.pointee.isServing = 0
    }
  }

  /// There is nothing to take over any more.
  package func endsServing() {
    mountIsGone()
    for (kind, view, _) in all where kind != .keepers { forget(kind, view: view) }
    store?.forget(DescriptorStore.table)
  }

  /// A worker has ended, and another one is to follow.
  package func ended(_ reason: Reason) {
    header.pointee.restarts &+= 1
    header.pointee.lastSignal =
      switch reason {
      case .signal(let signal): signal
      case .wish: Header.wish
      case .keeperEnded: Header.keeperEnded
      }
    // Who dies while it takes over has not ended the pause.
    if header.pointee.diedAt == 0 { header.pointee.diedAt = monotonicNanoseconds() }
  }

  /// What has been mounted, for the next worker: when that begins, something else may lie at the mount point.
  package var mountDevice: DeviceNumber? {
    get {
      let packed = header.pointee.mountDevice
      guard packed != 0, header.pointee.mountDeviceCheck == ~packed else { return nil }
      return DeviceNumber(
        major: UInt32(truncatingIfNeeded: packed >> 32), minor: UInt32(truncatingIfNeeded: packed))
    }
    set {
      let packed = newValue.map { UInt64($0.major) << 32 | UInt64($0.minor) } ?? 0
      header.pointee.mountDevice = packed
      header.pointee.mountDeviceCheck = ~packed
    }
  }

  /// Whether a worker has served that notes which volumes were added on this machine.
  package var notesVolumes: Bool {
    get { header.pointee.notesVolumes == Header.yes }
    set { header.pointee.notesVolumes = newValue ? Header.yes : 0 }
  }

  // MARK: Changes that no request has asked for

  package func beginsOwnChange() { lock.withLock { _ in header.pointee.ownChanges &+= 1 } }
  package func endsOwnChange() { lock.withLock { _ in header.pointee.ownChanges &-= 1 } }

  /// Whether a worker has died in such a change: nobody asks for it again, so kernels may not know of it.
  package func takeLeftOwnChange() -> Bool {
    lock.withLock { _ in
      defer { header.pointee.ownChanges = 0 }
      return header.pointee.ownChanges != 0
    }
  }

  /// Whether a worker has died, and the next one does not serve yet.
  package var isBeingTakenOver: Bool { header.pointee.diedAt != 0 }

  // MARK: Wishes

  /// Drops an answer that nobody has waited for.
  package func awaitAnswer() {
    _ = try? answered.use { (fd) throws(Errno) in try fd.readAvailable(limit: 8) }
  }

  /// The keeper's answer; nil if there is none in time.
  ///
  /// That the wish is granted is not told: the worker ends.
  package func answer(milliseconds: Int32) -> Answer? {
    let isThere = try? answered.use { (fd) throws(Errno) in
      try fd.waitUntilReadable(milliseconds: milliseconds)
    }
    return isThere == true ? Answer(rawValue: header.pointee.answer) : nil
  }

  /// What became of the last wish; nil if there was none, or it was granted.
  package var lastAnswer: Answer? {
    Answer(rawValue: header.pointee.answer).flatMap { $0 == .none ? nil : $0 }
  }

  package func grantsWish() { header.pointee.answer = Answer.none.rawValue }

  package func answer(_ answer: Answer) {
    header.pointee.answer = answer.rawValue
    var one: UInt64 = 1
    _ = Glibc.write(answered.number, &one, 8)
  }
}

extension KeptState.Reason: CustomStringConvertible {
  package var description: String {
    switch self {
    case .signal(let signal): "ended by signal \(signal)"
    case .wish: "restarted on request"
    case .keeperEnded: "ended with its keeper"
    }
  }
}
