// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import Testing

/// The name by which a file to be saved is proposed is an app's text.
@Suite struct PanelNameTests {
  @Test(
    arguments: [
      ("Letter.txt", "Letter.txt"), ("a/b", "a:b"), ("/etc/passwd", ":etc:passwd"), ("../x", "..:x"),
      ("..", nil), (".", nil), ("", nil), ("/", ":"), ("../", "..:"), (nil, nil),
    ] as [(String?, String?)])
  func aProposedNameIsNoPath(name: String?, shown: String?) {
    #expect(PanelRequest(.save, name: name).sanitized.name == shown)
  }

  @Test func controlCharactersAreNotShown() {
    let shown = PanelRequest(.save, name: "a\u{1b}[31mb\n/c").sanitized.name ?? ""
    #expect(!shown.contains("\u{1b}") && !shown.contains("\n") && !shown.contains("/"), "\(shown)")
  }
}
