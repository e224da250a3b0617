// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Testing

@Suite struct CryptoLibraryTests {
  /// It is an error if only one is missing.
  @Test func allFunctionsAreFound() throws {
    try CryptoLibrary.load()
    try CryptoLibrary.load()
  }
}
