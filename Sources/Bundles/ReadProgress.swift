// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// Counts what is read of a bundle, and of those in it, for someone who waits for the end.
package final class ReadProgress: Sendable {
  private let bytes = Atomic<Int>(0)
  private let files = Atomic<Int>(0)

  package init() {}

  /// How much was read until now.
  package var count: (files: Int, bytes: Int) {
    (files.load(ordering: .relaxed), bytes.load(ordering: .relaxed))
  }

  func add(bytes count: Int) { bytes.wrappingAdd(count, ordering: .relaxed) }
  func addFile() { files.wrappingAdd(1, ordering: .relaxed) }
}
