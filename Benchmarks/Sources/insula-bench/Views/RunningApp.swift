// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// How an installed app is run: the program, its store, its identifier.
struct RunningApp {
  let program: String
  let store: String
  let identifier: String

  /// Reads `INSULA,STORE,ID`.
  init(_ text: String) throws(Failure) {
    let parts = text.split(separator: ",").map(String.init)
    guard parts.count == 3 else { throw Failure("not INSULA,STORE,ID: \(text)") }
    (program, store, identifier) = (parts[0], parts[1], parts[2])
  }

  func words(_ command: [String]) -> [String] {
    [program, "run", "--store", store, identifier, "--"] + command
  }
}
