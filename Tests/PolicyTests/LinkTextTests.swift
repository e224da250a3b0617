// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Targets of links as UTF-8.
struct LinkTextTests {
  @Test func everyTargetComesBack() {
    for target in [
      [0xff], [0x2f, 0xc3], Array("M\u{fc}ller/\u{fffd}".utf8), Array("insula-bytes:%41".utf8),
      Array("insula-bytes:".utf8) + [0x25, 0xfe, 0x25], Array("50%/../a".utf8),
    ] as [[UInt8]] {
      let text = LinkText.encoded(target)
      #expect(String(validating: text, as: UTF8.self) != nil && LinkText.decoded(text) == target)
    }
    let usual = Array("M\u{fc}ller".utf8)
    #expect(LinkText.encoded(usual) == usual)
  }

  @Test func whatIsNoSuchTextStays() {
    for text in ["insula-bytes:", "insula-bytes:%4", "insula-bytes:%zz", "insula-bytes:%00", "a%41"] {
      #expect(LinkText.decoded(Array(text.utf8)) == Array(text.utf8), "\(text)")
    }
  }
}
