// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Requests that no kernel sends.
struct FuzzTests {
  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func noMessageStopsTheSession(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let files = FakeFiles()
    let kernel = try KernelEnd(files)
    _ = try kernel.ask(.initialize(flags: seed % 2 == 0 ? ~(1 << 29) : 0xffff_ffff))
    // As in the pool: what an earlier request left lies behind a shorter one.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Session.bufferSize, alignment: 4096)
    defer { buffer.deallocate() }
    buffer.initializeMemory(as: UInt8.self, repeating: 0)
    var answers: [UInt64: Int] = [:]
    var expected: Set<UInt64> = []
    for unique in UInt64(10)..<5010 {
      let message = Self.message(unique, &random)
      buffer.copyBytes(from: message)
      kernel.session.process(UnsafeMutableRawBufferPointer(rebasing: buffer[..<message.count]))
      for reply in try kernel.replies() { answers[reply.unique, default: 0] += 1 }
      if let header = message.withUnsafeBytes({ Wire.Header($0) }),
        Opcode(rawValue: header.opcode)?.isAnswered ?? true
      {
        expected.insert(unique)
      }
    }
    #expect(answers.values.allSatisfy { $0 == 1 })
    #expect(expected.allSatisfy { answers[$0] == 1 })
    #expect(expected.count > 3000 && files.calls.count > 1000)
    // It still works.
    #expect(try kernel.ask(Message(.lookup, unique: 9999, strings("a"))).code == 0)
  }

  /// A good request that something has happened to.
  private static func message(_ unique: UInt64, _ random: inout SeededRandom) -> [UInt8] {
    guard let sample = Sample.all.randomElement(using: &random) else { return [] }
    var bytes = sample.message(unique).bytes
    switch Int.random(in: 0..<6, using: &random) {
    case 0: bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
    case 1:
      bytes.removeLast(bytes.count - 40)
      for _ in 0..<Int.random(in: 0..<300, using: &random) {
        bytes.append(.random(in: 0...255, using: &random))
      }
    case 2: bytes.replaceSubrange(4..<8, with: words(.random(in: 0...60, using: &random)))
    case 3:
      for _ in 0..<8 where bytes.count > 44 {
        let at = Int.random(in: 10..<(bytes.count / 4), using: &random) * 4
        let value: [UInt32] = [
          0, 1, 0x7fff_ffff, 0xffff_ffff, 0x8000_0000, .random(in: 0...UInt32.max, using: &random),
        ]
        bytes.replaceSubrange(at..<(at + 4), with: words(value.randomElement(using: &random) ?? 0))
      }
    case 4:
      let body = Sample.all.randomElement(using: &random)?.body ?? []
      bytes = bytes.prefix(40) + body
    default: break
    }
    // A second start and the end of the session are the kernel's business; and answers are distinguished by
    // this number.
    if bytes.count >= 8, [26, 38].contains(bytes[4]), bytes[5] == 0 { bytes[4] = 1 }
    if bytes.count >= 16 { bytes.replaceSubrange(8..<16, with: long(unique)) }
    return bytes
  }
}
