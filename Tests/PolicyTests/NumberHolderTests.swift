// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Whose are decisions for a number that has no home, and for which the account `eva` gets one.
@Suite struct NumberHolderTests {
  @Test(
    arguments: [
      (nil, false, .never, .unknown), (nil, false, .gone, .former), (nil, false, .accounts, .account),
      ("eva", false, .never, .account), ("eva", true, .never, .account), ("eva", true, .gone, .former),
      ("eva", true, .accounts, .account), ("Eva", false, .never, .former), ("", false, .never, .former),
      ("anna", false, .never, .former), ("anna", false, .gone, .former), ("anna", true, .gone, .former),
      ("anna", false, .accounts, .account),
      // Another account of the same number.
      ("anna", true, .never, .account), ("anna", true, .accounts, .account),
    ] as [(String?, Bool, FormerHome, NumberHolder)])
  func table(noted: String?, isNotedThere: Bool, home: FormerHome, expected: NumberHolder) {
    #expect(NumberHolder(of: "eva", noted: noted, isNotedThere: isNotedThere, home: home) == expected)
  }

  /// Two spellings of a letter are two names.
  @Test func namesAreBytes() {
    let (one, other) = ("e\u{301}va", "\u{e9}va")
    #expect(NumberHolder(of: one, noted: other, isNotedThere: false, home: .never) == .former)
    #expect(NumberHolder(of: one, noted: one, isNotedThere: false, home: .never) == .account)
  }
}
