// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension Sequence {
  /// What the first element gives that gives anything; each is asked once.
  ///
  /// `lazy.compactMap(_:).first` asks the one that it finds a second time, and ends the process if that gives
  /// nothing by then: a process has ended, say, or a name is gone.
  package func firstResult<Result, Failure: Error>(
    _ result: (Element) throws(Failure) -> Result?
  ) throws(Failure) -> Result? {
    for element in self {
      if let found = try result(element) { return found }
    }
    return nil
  }
}
