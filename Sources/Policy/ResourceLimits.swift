// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What an app may use of the machine at most; nil where nothing but the machine limits it.
package struct ResourceLimits: Codable, Equatable, Sendable {
  /// What can be limited, by its key in the `InsulaLimits` of an Info.plist.
  package enum Kind: String, CaseIterable, Sendable {
    case memory = "Memory"
    case processes = "Processes"
    case cpu = "CPU"
    case openFiles = "OpenFiles"
  }

  /// In bytes.
  package var memory: Int64?
  /// Threads count as well, as they do for the kernel.
  package var processes: Int64?
  /// In percent of one CPU.
  package var cpu: Int64?
  /// Of each process.
  package var openFiles: Int64?

  package init() {}

  package subscript(kind: Kind) -> Int64? {
    get {
      switch kind {
      case .memory: memory
      case .processes: processes
      case .cpu: cpu
      case .openFiles: openFiles
      }
    }
    set {
      switch kind {
      case .memory: memory = newValue
      case .processes: processes = newValue
      case .cpu: cpu = newValue
      case .openFiles: openFiles = newValue
      }
    }
  }

  /// What is limited.
  package var kinds: [Kind] { Kind.allCases.filter { self[$0] != nil } }

  /// Each limit in words, in one line; empty if there is none.
  package var text: String {
    kinds.compactMap { kind in self[kind].map { kind.text(of: $0) } }.joined(separator: ", ")
  }
}
