// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport
internal import Testing

/// The tool behind `make mutants`, which itself takes too long for the tests.
@Suite struct MutantToolTests {
  @Test func rewritingKeepsWhatASourceMeans() throws {
    let result = try Program.run(
      ["python3", "-B", "-m", "unittest", "discover", Checkout.path("Tests/Mutants")])
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    #expect(result.errors.contains("\nOK"))
  }

  /// A fault whose text has been changed since then tries nothing.
  @Test func eachFaultOfTheListStillApplies() throws {
    let result = try Program.run(["python3", "-B", Checkout.path("mount-scripts/mutants.py"), "--check"])
    #expect(result.status == 0, "\(result.output)\(result.errors)")
  }
}
