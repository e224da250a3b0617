// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import Testing

@Suite struct UUIDTextTests {
  @Test func randomOnesAreOfVersionFour() throws {
    var seen: Set<String> = []
    for _ in 0..<1000 {
      let text = UUIDText.random()
      #expect(UUID(uuidString: text)?.uuidString == text && UUIDText.canonical(text) == text)
      let characters = Array(text)
      #expect(characters[14] == "4" && "89AB".contains(characters[19]))
      seen.insert(text)
    }
    #expect(seen.count == 1000)
    // Each of the other digits takes every value.
    for position in 0..<36 where ![8, 13, 14, 18, 19, 23].contains(position) {
      #expect(Set(seen.map { Array($0)[position] }).count == 16)
    }
  }

  @Test(arguments: [
    "", "2AE131DB-3858-4E62-A721-3B00C18A6B5", "2AE131DB-3858-4E62-A721-3B00C18A6B577",
    "2AE131DB03858-4E62-A721-3B00C18A6B57", "{2AE131DB-3858-4E62-A721-3B00C18A6B5}",
    "2AE131DG-3858-4E62-A721-3B00C18A6B57", "2AE131D-B3858-4E62-A721-3B00C18A6B57",
    "2AE131DÉ-3858-4E62-A721-3B00C18A6B57",
  ])
  func othersAreNone(text: String) {
    #expect(UUIDText.canonical(text) == nil)
  }

  @Test func caseMakesNoDifference() {
    #expect(
      UUIDText.canonical("2ae131db-3858-4e62-A721-3b00c18a6b57") == "2AE131DB-3858-4E62-A721-3B00C18A6B57")
  }
}
