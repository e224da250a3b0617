// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import PropertyLists
internal import TestSupport
internal import Testing

/// Binary property lists that no writer makes.
@Suite struct BinaryPropertyListTests {
  /// A list of objects, with one byte for each reference, and for each offset unless it is `wide`.
  private func list(
    _ objects: [[UInt8]], top: UInt8 = 0, count: UInt64? = nil, table: UInt64? = nil, sizes: [UInt8]? = nil,
    wide: Bool = false
  ) -> [UInt8] {
    var bytes = Array("bplist00".utf8)
    var offsets: [UInt8] = []
    for object in objects {
      let width = wide ? 4 : 1
      offsets += (0..<width).map { UInt8(truncatingIfNeeded: bytes.count >> (8 * (width - 1 - $0))) }
      bytes += object
    }
    let place = UInt64(bytes.count)
    bytes += offsets + [0, 0, 0, 0, 0, 0] + (sizes ?? [wide ? 4 : 1, 1])
    for number in [count ?? UInt64(objects.count), UInt64(top), table ?? place] {
      bytes += (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
    }
    return bytes
  }

  @Test(
    arguments: [
      ([[0x08]], .boolean(false)), ([[0x10, 0xff]], .integer(255)), ([[0x11, 0x80, 0x00]], .integer(0x8000)),
      ([[0x13, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]], .integer(-2)),
      ([[0x14] + [UInt8](repeating: 0, count: 8) + [UInt8](repeating: 0xff, count: 8)], .unsigned(.max)),
      ([[0x14] + [UInt8](repeating: 0xff, count: 16)], .integer(-1)), ([[0x22, 0x3f, 0x80, 0, 0]], .real(1)),
      ([[0x33, 0x40, 0x24, 0, 0, 0, 0, 0, 0]], .date(10)), ([[0x62, 0x00, 0xe4, 0x00, 0x62]], .string("äb")),
      ([[0x81, 0x01, 0x00]], .uid(256)),
      ([[0xa2, 1, 1], [0x09]], .array([.boolean(true), .boolean(true)])),
    ] as [([[UInt8]], PropertyList)])
  func formsThatOthersWriteAreRead(objects: [[UInt8]], expected: PropertyList) throws {
    #expect(try PropertyList(reading: list(objects)) == expected)
  }

  @Test(
    arguments: [
      [[0x00]], [[0x0f]], [[0x15] + [UInt8](repeating: 0, count: 32)],
      [[0x14, 1] + [UInt8](repeating: 0, count: 15)], [[0x13, 0]],
      [[0x21, 0, 0]], [[0x22, 0]], [[0x32, 0, 0, 0, 0]], [[0x53, 0x61]], [[0x51, 0xff]],
      [[0x61, 0xd8, 0x00]], [[0x62, 0x00]], [[0x45]],
      [[0x5f, 0x13, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]],
      [[0x5f, 0x13, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]], [[0x5f, 0x20]],
      [[0x5f, 0x14] + [UInt8](repeating: 0, count: 16)], [[0x5f]], [[0x88] + [UInt8](repeating: 0, count: 9)],
      [[0x87] + [UInt8](repeating: 0xff, count: 8)], [[0x80]],
      [[0xa1, 0]], [[0xa1, 1], [0xa1, 0]], [[0xa1, 9]], [[0xa3, 1]], [[0xc0]], [[0xd1, 1, 1], [0x09]],
      [[0xd2, 1, 1, 2, 2], [0x51, 0x61], [0x09]],
      [[0xd1, 1, 0], [0x51, 0x61]], [[0xf0]],
    ] as [[[UInt8]]])
  func badObjectsAreRefused(objects: [[UInt8]]) {
    #expect(throws: PropertyListError.self) { try PropertyList(reading: list(objects)) }
  }

  @Test func badTrailersAreRefused() {
    let good: [[UInt8]] = [[0x09]]
    for bad in [
      list(good, top: 1), list(good, count: 0), list(good, count: 2), list(good, count: .max),
      list(good, table: 0),
      list(good, table: 8), list(good, table: 500), list(good, table: .max), list(good, table: 1 << 63),
      list(good, sizes: [0, 1]), list(good, sizes: [1, 0]), list(good, sizes: [9, 1]),
      list(good, sizes: [1, 255]),
      Array("bplist00".utf8), Array(list(good).dropLast()), Array("bplist10".utf8) + list(good).dropFirst(8),
    ] {
      #expect(throws: PropertyListError.self) { try PropertyList(reading: bad) }
    }
  }

  /// Each array holds the next one twice, so a small list stands for 2 to the power of 40 values.
  @Test func sharedReferencesDoNotBlowUp() {
    var objects = (1...40).map { [0xa2, UInt8($0), UInt8($0)] }
    objects.append([0x09])
    #expect(throws: PropertyListError.self) { try PropertyList(reading: list(objects)) }
  }

  /// Each reference to a dictionary has its keys compared once more.
  @Test func sharedKeysTakeNoTime() throws {
    func text(_ last: UInt8) -> [UInt8] {
      [0x5f, 0x12, 0, 1, 0, 0] + [UInt8](repeating: 0x61, count: (1 << 16) - 1) + [last]
    }
    let many: [UInt8] = [0xaf, 0x12, 0, 1, 0, 0] + [UInt8](repeating: 1, count: 1 << 16)
    let begun = ContinuousClock.now
    #expect(throws: PropertyListError.self) {
      try PropertyList(
        reading: list([many, [0xd2, 2, 3, 4, 4], text(0x62), text(0x61), [0x09]], wide: true))
    }
    #expect(ContinuousClock.now - begun < .seconds(10))
  }

  @Test func sharedTextsTakeNoMemoryOfTheirOwn() throws {
    let text = [0x5f, 0x11, 0x01, 0x00] + [UInt8](repeating: 0x61, count: 256)
    var bytes = Array("bplist00".utf8)
    let references = 1 << 20
    bytes += [0xaf, 0x12, 0, 0x10, 0, 0] + [UInt8](repeating: 1, count: references)
    let textOffset = UInt64(bytes.count)
    bytes += text
    let table = UInt64(bytes.count)
    for number in [8, textOffset] {
      bytes += (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }
    bytes += [0, 0, 0, 0, 0, 0, 4, 1]
    for number in [2, 0, table] as [UInt64] {
      bytes += (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
    }
    let values = try #require(try PropertyList(reading: bytes).array)
    #expect(values.count == references)
    // One buffer: the texts lie at one address.
    let places = [values.first, values.last].map { value -> UnsafeRawPointer? in
      guard case .string(let text)? = value else { return nil }
      return text.utf8.withContiguousStorageIfAvailable { UnsafeRawPointer($0.baseAddress) } ?? nil
    }
    #expect(places[0] != nil && places[0] == places[1])
  }

  /// Whatever is shared, what it takes to write it out is known before.
  @Test func whatIsWrittenOutIsCounted() throws {
    let long = PropertyList.data([UInt8](repeating: 1, count: 1000))
    let many = PropertyList.array(Array(repeating: long, count: 100))
    #expect(!many.exceeds(110_000) && many.exceeds(100_000))
    #expect(many.exceeds(110_000, indent: 200))
    let deep = (0..<100).reduce(long) { inner, _ in .array([inner]) }
    #expect(!deep.exceeds(2000) && deep.exceeds(2000, indent: 4))
    let value = PropertyList.data([UInt8](repeating: 0, count: 1 << 20))
    let bomb = PropertyList.array(Array(repeating: value, count: 1_000_000))
    #expect(throws: PropertyListError.self) { try bomb.binary() }
  }
}
