// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Testing

@Suite struct FilesystemKindTests {
  @Test func serversAreKnown() {
    for magic in [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x00c3_6400, 0x0102_1997, 0x6573_5546] as [UInt64] {
      #expect(FilesystemKind(magic: magic).isRemote)
    }
    for magic in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1] as [UInt64] {
      #expect(!FilesystemKind(magic: magic).isRemote)
    }
  }
}
