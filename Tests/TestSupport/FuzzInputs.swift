// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// How many inputs a fuzz test reads in a run: as many as INSULA_FUZZ says, which `make fuzz` sets.
package func fuzzInputs(usually count: Int) -> Int {
  getenv("INSULA_FUZZ").flatMap { Int(String(cString: $0)) } ?? count
}
