// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct ExactTextTests {
  @Test func textsThatLookAlikeAreTwo() throws {
    let (one, two) = ("Caf\u{e9}", "Cafe\u{301}")
    try #require(one == two, "this is what must not count")
    #expect(ExactText(one) != ExactText(two) && ExactText(one) == ExactText(one))
    #expect(Set([one, two, one].map(ExactText.init)).count == 2)
    #expect([one, two].map(ExactText.init).sorted().map(\.text.utf8.count) == [6, 5])
    #expect(ExactText("a") < ExactText("ab") && !(ExactText(one) < ExactText(one)))
  }
}
