// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

#if DEBUG
  internal import Synchronization
#else
  package import Synchronization
#endif

// A mutex that has a place in the order of locks. A debug build stops at the first lock that is taken out of
// order, whether or not anybody waits.
#if DEBUG
  package struct OrderedMutex<Value: ~Copyable>: ~Copyable {
    private let mutex: Mutex<Value>
    private let rank: LockRank

    package init(_ rank: LockRank, _ value: consuming sending Value) {
      mutex = Mutex(value)
      self.rank = rank
    }

    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
      _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
      rank.enter()
      defer { rank.leave() }
      return try mutex.withLock(body)
    }
  }

  extension OrderedMutex: @unchecked Sendable where Value: ~Copyable {}
#else
  // A wrapper would not be specialized across modules, and each lock would cost some hundred instructions.
  package typealias OrderedMutex = Mutex

  extension Mutex where Value: ~Copyable {
    package init(_ rank: LockRank, _ value: consuming sending Value) { self.init(value) }
  }
#endif
