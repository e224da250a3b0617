// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite struct SharedMemoryTests {
  private static let range = (1 << 30)..<(1 << 30 + 65_536)

  /// How many bytes of it there are.
  private func bytes(_ memory: SharedMemory) throws -> Int {
    Int(try memory.fd.status().st_blocks) * 512
  }

  @Test func roomIsMadeAndGivenBack() throws {
    // More than any machine has.
    let memory = try SharedMemory("insula-test", size: 1 << 36)
    #expect(try bytes(memory) == 0)
    try memory.whole.makeRoom(Self.range)
    #expect(try bytes(memory) == 65_536)
    let numbers = (memory.base + (1 << 30)).assumingMemoryBound(to: UInt64.self)
    #expect(numbers[8191] == 0)
    numbers[8191] = 7
    memory.whole.giveBack(Self.range)
    #expect(try bytes(memory) == 0)
    try memory.whole.makeRoom(Self.range)
    #expect(numbers[8191] == 0)
  }

  /// Another process maps the same pages.
  @Test func whoHasTheFileHasTheMemory() throws {
    let memory = try SharedMemory("insula-test", size: 4096)
    try memory.whole.makeRoom(0..<4096)
    let other = try #require(mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd.raw, 0))
    defer { munmap(other, 4096) }
    memory.base.storeBytes(of: 0x1234, as: UInt32.self)
    #expect(other.load(as: UInt32.self) == 0x1234)
  }

  /// A shorter file would end the daemon at its next access.
  @Test func sizeStays() throws {
    let memory = try SharedMemory("insula-test", size: 8192)
    #expect(ftruncate(memory.fd.raw, 4096) == -1 && Errno.last == .EPERM)
    #expect(ftruncate(memory.fd.raw, 16_384) == -1 && Errno.last == .EPERM)
    #expect(throws: Errno.self) { try memory.whole.makeRoom(8192..<12_288) }
  }

  /// Nobody runs it.
  @Test func itIsNoProgram() throws {
    let memory = try SharedMemory("insula-test", size: 4096)
    #expect(try memory.fd.status().st_mode & 0o111 == 0)
  }
}
