// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport

/// The ways that data can go between a program and the backing file.
enum DataWay: CaseIterable {
  case passthrough, throughDaemon, rootless

  /// A store that is mounted so, by root or by nobody.
  func mounted() throws -> MountedStore {
    let mounted = try MountedStore(asNobody: self == .rootless)
    try mounted.mount(options: self == .throughDaemon ? "nopassthrough" : nil)
    return mounted
  }

  /// Runs a script of Python as whoever has mounted it.
  ///
  /// The first python3 of root's may be where nobody else gets.
  func python(_ script: String, _ words: String...) throws -> ProgramResult {
    let words = ["/usr/bin/python3", "-c", script] + words
    return try self == .rootless ? Program.runAsNobody(words) : Program.run(words)
  }
}
