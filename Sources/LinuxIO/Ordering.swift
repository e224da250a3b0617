// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension Sequence {
  /// Like `sorted(by:)`, for what is short, or sorted once in a while.
  ///
  /// The compiler makes four kilobytes of code for each place that calls that one. This is the same code for
  /// all of them.
  @inline(never) @_semantics("optimize.sil.specialize.generic.never")
  package func inOrder(by isBefore: (Element, Element) throws -> Bool) rethrows -> [Element] {
    try sorted(by: isBefore)
  }
}
