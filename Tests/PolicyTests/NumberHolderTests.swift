// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Whose are decisions for a number that has no home, and for which the account `eva` gets one.
@Suite struct NumberHolderTests {
  @Test(
    arguments: [
      (nil, .never, false, .unknown), (nil, .never, true, .former), (nil, .gone, false, .former),
      (nil, .gone, true, .former), ("eva", .never, true, .account), ("eva", .never, false, .account),
      ("eva", .gone, true, .former), ("eva", .gone, false, .former), ("Eva", .never, true, .former),
      ("anna", .never, true, .former), ("anna", .never, false, .former), ("anna", .gone, true, .former),
      ("", .never, true, .former), (nil, .accounts, false, .account), (nil, .accounts, true, .account),
      ("eva", .accounts, true, .account), ("anna", .accounts, true, .account),
    ] as [(String?, FormerHome, Bool, NumberHolder)])
  func table(noted: String?, home: FormerHome, hasDecisions: Bool, expected: NumberHolder) {
    #expect(NumberHolder(of: "eva", noted: noted, home: home, hasDecisions: hasDecisions) == expected)
  }

  /// Two spellings of a letter are two names.
  @Test func namesAreBytes() {
    let (one, other) = ("e\u{301}va", "\u{e9}va")
    #expect(NumberHolder(of: one, noted: other, home: .never, hasDecisions: true) == .former)
    #expect(NumberHolder(of: one, noted: one, home: .never, hasDecisions: true) == .account)
  }
}
