// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Testing

/// A slash and a combining mark that follows it are one character, and two names.
@Suite struct ByteTextTests {
  private static let marks = ["\u{301}", "\u{200d}", "\u{fe0f}", "\u{20dd}", "\u{e0100}"]

  @Test(arguments: marks) func aMarkHidesNoSeparator(mark: String) {
    let path = "a/\(mark)b"
    #expect(path.split(separator: "/").count == 1, "this is what must not count")
    #expect(path.parts(between: "/").map { Array($0.utf8) } == [Array("a".utf8), Array("\(mark)b".utf8)])
    let (above, name) = path.splitAtName
    #expect(above == "a" && Array(name.utf8) == Array("\(mark)b".utf8))
    #expect(path.begins(with: "a/") && !path.begins(with: "a/b") && !"a".begins(with: "a/"))
    #expect("a\(mark)/".ends(with: "/") && !path.ends(with: "/"))
  }

  @Test func partsAreAsOfASplit() {
    #expect("/a//b/".parts(between: "/") == ["a", "b"])
    #expect("/a//b/".parts(between: "/", keepingEmpty: true) == ["", "a", "", "b", ""])
    #expect("a b c d".parts(between: " ", max: 2) == ["a", "b", "c d"])
    #expect("a=b=c".dropFirst(2).parts(between: "=", max: 1, keepingEmpty: true) == ["b", "c"])
    #expect("".parts(between: "/").isEmpty && "".parts(between: "/", keepingEmpty: true) == [""])
    // Two characters for everybody but Swift.
    #expect("a\r\nb".parts(between: "\n") == ["a\r", "b"])
  }

  @Test func bytesAreCompared() {
    #expect(!"e\u{301}/x".begins(with: "\u{e9}/") && !"/e\u{301}".ends(with: "\u{e9}"))
  }

  /// Whoever makes a mount chooses what its source is called.
  @Test(arguments: marks) func aMarkHidesNoMount(mark: String) {
    let table = MountTable(
      parsing: """
        40 22 0:35 / /home/a rw - fuse \(mark)hidden rw
        41 22 0:36 / /home/\(mark)b rw - tmpfs none rw
        """)
    #expect(table.entries.map(\.id) == [40, 41])
    #expect(table.entries.first.map { Array($0.source.utf8) } == Array("\(mark)hidden".utf8))
    #expect(table.below("/home").map(\.id) == [40, 41])
  }
}
