// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Testing

@Suite struct NameTests {
  @Test(arguments: ["a", "...", "..a", ".a", "a b", "ä", "-", "\n", String(repeating: "x", count: 300)])
  func component(name: String) throws {
    #expect(try name.withName { $0.isComponent })
  }

  @Test(arguments: ["", ".", "..", "/", "a/b", "a/", "/a"])
  func noComponent(name: String) throws {
    #expect(try !name.withName { $0.isComponent })
  }

  @Test func bytesThatAreNoTextSurvive() throws {
    let bytes: [UInt8] = [0xff, 0xfe, 0x80]
    #expect(try bytes.withName { Array($0.buffer) } == bytes)
  }
}
