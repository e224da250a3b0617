// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Testing

@Suite struct DeliveryNameTests {
  @Test(arguments: [
    ("Letter.txt", "Letter-2.txt"), ("README", "README-2"), (".profile", ".profile-2"),
    ("archive.tar.gz", "archive.tar-2.gz"), ("ends.", "ends-2."),
    (String(repeating: "a", count: 255), String(repeating: "a", count: 253) + "-2"),
    (String(repeating: "ä", count: 125) + ".txt", String(repeating: "ä", count: 124) + "-2.txt"),
  ])
  func numberComesBeforeTheExtension(name: String, expected: String) {
    #expect(Deliverer.numbered(Array(name.utf8), 2) == Array(expected.utf8))
  }

  @Test func numberedNamesAreNamesThatFilesCanHave() {
    for name in ["x." + String(repeating: "y", count: 253), String(repeating: ".", count: 255)] {
      #expect(Deliverer.numbered(Array(name.utf8), 99_999).count <= 255)
    }
  }
}
