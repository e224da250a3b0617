// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// Whether this worker is about to take over what another one has left.
///
/// Until it serves, it may have to give up, for want of memory, threads or descriptors. What is kept is the
/// next worker's then, and all workers share one table of descriptors: so whatever is unwound meanwhile must
/// not close any that are kept, nor have them forgotten.
package enum TakingOver {
  private static let underWay = Atomic<Bool>(false)
  private static let kept = Mutex<KeptState?>(nil)

  package static func begin(_ state: KeptState) {
    kept.withLock { $0 = state }
    underWay.store(true, ordering: .sequentiallyConsistent)
  }

  /// The worker serves, and what it closes from here on is to be closed.
  package static func end() {
    underWay.store(false, ordering: .sequentiallyConsistent)
    kept.withLock { $0 = nil }
  }

  package static var isUnderWay: Bool { underWay.load(ordering: .relaxed) }

  /// Whether a descriptor must not be closed now.
  package static func spares(_ descriptor: Int32) -> Bool {
    isUnderWay && kept.withLock { $0 }?.holds(descriptor) == true
  }
}
