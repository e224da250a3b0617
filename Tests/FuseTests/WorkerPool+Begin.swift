// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import TestSupport
internal import Testing

extension WorkerPool {
  /// Serves what a test sends as the kernel, which has said INIT by then.
  func begin(_ kernel: KernelEnd, ended: @escaping @Sendable () -> Void) throws {
    try add(kernel.session, ended: ended)
    try kernel.send(.initialize())
    #expect(try kernel.reply(milliseconds: patience) != nil)
  }
}
