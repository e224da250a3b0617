// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import PropertyLists
internal import Synchronization

/// What several threads have found.
final class SharedResults: Sendable {
  private struct Found {
    var items: [SealItem] = []
    var findings: [Finding] = []
  }

  private let found = Mutex(Found())

  func add(_ items: [SealItem], _ findings: [Finding]) {
    found.withLock {
      $0.items += items
      $0.findings += findings
    }
  }

  /// All of it, ordered by path.
  func take() -> (items: [SealItem], findings: [Finding]) {
    let all = found.withLock { $0 }
    let order = all.items.indices.map { (order: all.items[$0].order, index: $0) }.sorted { one, other in
      one.order != other.order
        ? one.order < other.order : all.items[one.index].path.precedes(all.items[other.index].path)
    }
    return (order.map { all.items[$0.index] }, all.findings.sortedByPath())
  }
}

extension [Finding] {
  func sortedByPath() -> [Finding] {
    inOrder {
      $0.path.hasSameBytes(as: $1.path) ? $0.kind.rawValue < $1.kind.rawValue : $0.path.precedes($1.path)
    }
  }
}
