// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Whose are decisions for a number that has no home, and for which the account `eva` gets one.
@Suite struct NumberHolderTests {
  @Test(
    arguments: [
      (nil, false, false, .unknown), (nil, false, true, .former), (nil, true, false, .former),
      (nil, true, true, .former), ("eva", false, true, .account), ("eva", false, false, .account),
      ("eva", true, true, .former), ("eva", true, false, .former), ("Eva", false, true, .former),
      ("anna", false, true, .former), ("anna", false, false, .former), ("anna", true, true, .former),
      ("", false, true, .former),
    ] as [(String?, Bool, Bool, NumberHolder)])
  func table(noted: String?, hadHome: Bool, hasDecisions: Bool, expected: NumberHolder) {
    #expect(
      NumberHolder(of: "eva", noted: noted, hadHome: hadHome, hasDecisions: hasDecisions) == expected)
  }

  /// Two spellings of a letter are two names.
  @Test func namesAreBytes() {
    let (one, other) = ("e\u{301}va", "\u{e9}va")
    #expect(NumberHolder(of: one, noted: other, hadHome: false, hasDecisions: true) == .former)
    #expect(NumberHolder(of: one, noted: one, hadHome: false, hasDecisions: true) == .account)
  }
}
