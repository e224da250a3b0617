// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Work that is left alone where it does not get on.
///
/// Who looks into a directory may wait in the kernel for as long as somebody likes: for a lock that a user
/// holds, or for a disk. Neither a signal nor a timeout ends that.
package enum LeftThread {
  /// Does something on a thread of its own; nil if that has given no sign of life for so long.
  ///
  /// `work` gives one by calling what it gets. What it does after that nobody learns.
  package static func value<Value: Sendable>(
    milliseconds patience: Int, of work: @escaping @Sendable (_ lives: () -> Void) -> Value
  ) -> Value? {
    let state = Condition((lived: monotonicNanoseconds(), value: Value?.none))
    let run = { @Sendable in
      let value = work { state.withLock { $0.lived = monotonicNanoseconds() } }
      state.change { $0.value = value }
    }
    guard let thread = try? JoinableThread(name: "look", run) else {
      run()
      return state.withLock { $0.value }
    }
    thread.detach()
    let limit = UInt64(patience) &* 1_000_000
    var left = patience
    while !state.wait(milliseconds: left, until: { $0.value != nil }) {
      let silent = state.withLock { monotonicNanoseconds() &- $0.lived }
      if silent >= limit { return nil }
      left = Int((limit - silent) / 1_000_000) + 1
    }
    return state.withLock { $0.value }
  }
}
