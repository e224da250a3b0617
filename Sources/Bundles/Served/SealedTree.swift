// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// What a seal says of each path, as a tree without an object for each of its nodes: an app of twenty
/// thousand files takes about two megabytes.
struct SealedTree: Sendable {
  enum Kind: UInt8, Sendable {
    case directory
    /// The payload is the number of an algorithm and a digest.
    case file
    /// The payload is a size in eight bytes, and the digest of the digests of all pages.
    case executable
    /// The payload is the target.
    case symlink
    /// The payload is a cdhash and a requirement.
    case nested
  }

  private struct Item {
    /// The directory's place in ``directories``.
    var parent: UInt32
    var name: UInt32
    var payload: UInt32
    var nameLength: UInt16
    var payloadLength: UInt16
    var kind: Kind
    /// Whether it may be missing.
    var isOptional: Bool
  }
  private struct Directory {
    /// Its own item.
    var item: UInt32
    /// Where its children begin in ``items``.
    var children: UInt32
  }

  /// Ordered by directory and name; the first is the root.
  private var items: [Item]
  /// Ordered by number; one more at the end, for where the last one's children end.
  private var directories: [Directory]
  /// Names and payloads.
  private let bytes: [UInt8]

  // MARK: Looking

  /// The number of an object; nil if nothing is known of such a name.
  func find(_ name: UnsafeBufferPointer<UInt8>, in directory: UInt32) -> UInt32? {
    guard let item = item(directory), item.kind == .directory, Int(item.payload) + 1 < directories.count
    else { return nil }
    var low = Int(directories[Int(item.payload)].children)
    var high = Int(directories[Int(item.payload) + 1].children)
    while low < high {
      let middle = (low + high) / 2
      let order = compare(items[middle], name)
      if order == 0 { return UInt32(middle) }
      if order < 0 { low = middle + 1 } else { high = middle }
    }
    return nil
  }

  func kind(of number: UInt32) -> Kind? { item(number)?.kind }

  func isOptional(_ number: UInt32) -> Bool { item(number)?.isOptional ?? true }

  func payload(of number: UInt32) -> ArraySlice<UInt8> {
    guard let item = item(number), item.kind != .directory else { return [] }
    return slice(item.payload, item.payloadLength)
  }

  /// From the root, without a slash at either end.
  func path(of number: UInt32) -> String {
    var names: [String] = []
    var number = number
    while number != 0, let item = item(number) {
      names.append(String(decoding: slice(item.name, item.nameLength), as: UTF8.self))
      guard Int(item.parent) < directories.count else { break }
      number = directories[Int(item.parent)].item
    }
    return names.reversed().joined(separator: "/")
  }

  private func item(_ number: UInt32) -> Item? { number < items.count ? items[Int(number)] : nil }

  private func slice(_ start: UInt32, _ length: UInt16) -> ArraySlice<UInt8> {
    let start = Int(start)
    let end = start + Int(length)
    return end <= bytes.count ? bytes[start..<end] : []
  }

  private func compare(_ item: Item, _ name: UnsafeBufferPointer<UInt8>) -> Int {
    bytes.withUnsafeBytes { Self.compare(item, $0, UnsafeRawBufferPointer(name)) }
  }

  private static func compare(
    _ item: Item, _ bytes: UnsafeRawBufferPointer, _ name: UnsafeRawBufferPointer
  ) -> Int {
    let own = UnsafeRawBufferPointer(rebasing: bytes[Int(item.name)..<Int(item.name) + Int(item.nameLength)])
    return compare(own, name)
  }

  private static func compare(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Int {
    let common = min(one.count, other.count)
    if common > 0, let left = one.baseAddress, let right = other.baseAddress {
      let order = memcmp(left, right, common)
      if order != 0 { return Int(order) }
    }
    return one.count - other.count
  }

  // MARK: Making

  /// Takes paths one by one.
  struct Builder {
    private var items: [Item] = []
    private var bytes: [UInt8] = []
    /// The number of each directory, and the items they are.
    private var directories: [Key: UInt32] = [:]
    private var directoryItems: [Int] = []
    /// Where the path before was.
    private var last: (path: [UInt8], number: UInt32)?

    /// A directory by its name: paths would be as long together as all of them are deep.
    private struct Key: Hashable {
      let parent: UInt32
      let name: [UInt8]
    }

    init() {
      items.append(
        Item(
          parent: .max, name: 0, payload: 0, nameLength: 0, payloadLength: 0, kind: .directory,
          isOptional: false))
      directoryItems.append(0)
    }

    /// Takes one path; the directories above it come with it.
    mutating func add(
      _ path: String, _ kind: Kind, isOptional: Bool, payload: some Collection<UInt8>
    ) throws(Finding) {
      try add(Array(path.utf8), kind, isOptional: isOptional, payload: payload)
    }

    /// Takes a directory, in which there may be nothing.
    mutating func add(directory path: [UInt8]) throws(Finding) {
      _ = try directory(path[...], isOptional: false)
    }

    mutating func add(
      _ path: [UInt8], _ kind: Kind, isOptional: Bool, payload: some Collection<UInt8>
    ) throws(Finding) {
      let slash = path.lastIndex(of: 0x2f)
      let parent = try directory(slash.map { path[..<$0] } ?? [], isOptional: isOptional)
      try append(path[(slash.map { $0 + 1 } ?? 0)...], kind, in: parent, isOptional: isOptional, payload)
    }

    /// The number of a directory, which is made if it is new; it may be missing if all that is in it may.
    private mutating func directory(_ path: ArraySlice<UInt8>, isOptional: Bool) throws(Finding) -> UInt32 {
      var number: UInt32 = 0
      if let last, path.elementsEqual(last.path) {
        number = last.number
        if !isOptional { require(number) }
        return number
      }
      var rest = path
      while !rest.isEmpty {
        let name = rest.prefix { $0 != 0x2f }
        rest = rest.dropFirst(name.count + 1)
        number = try directory(Key(parent: number, name: Array(name)), isOptional: isOptional)
      }
      last = (Array(path), number)
      return number
    }

    private mutating func directory(_ key: Key, isOptional: Bool) throws(Finding) -> UInt32 {
      if let known = directories[key] {
        if !isOptional { require(known) }
        return known
      }
      let number = UInt32(directoryItems.count)
      try append(
        key.name[...], .directory, in: key.parent, isOptional: isOptional, EmptyCollection())
      items[items.count - 1].payload = number
      directories[key] = number
      directoryItems.append(items.count - 1)
      return number
    }

    /// Notes that a directory must be there, and those above it.
    private mutating func require(_ number: UInt32) {
      var number = number
      while number != .max, Int(number) < directoryItems.count {
        let item = directoryItems[Int(number)]
        guard items[item].isOptional else { return }
        items[item].isOptional = false
        number = items[item].parent
      }
    }

    private mutating func append(
      _ name: ArraySlice<UInt8>, _ kind: Kind, in parent: UInt32, isOptional: Bool,
      _ payload: some Collection<UInt8>
    ) throws(Finding) {
      let start = bytes.count
      bytes += name
      let payloadStart = bytes.count
      bytes += payload
      guard let name = UInt32(exactly: start), let payload = UInt32(exactly: payloadStart),
        let nameLength = UInt16(exactly: payloadStart - start),
        let payloadLength = UInt16(exactly: bytes.count - payloadStart), items.count < Int(UInt32.max)
      else { throw ResourceSeal.malformed("it has too many entries") }
      items.append(
        Item(
          parent: parent, name: name, payload: payload, nameLength: nameLength, payloadLength: payloadLength,
          kind: kind, isOptional: isOptional))
    }

    /// The tree; throws if a path occurs twice, as two things.
    consuming func tree() throws(Finding) -> SealedTree { try SealedTree(items, bytes, directoryItems.count) }
  }

  private init(_ unordered: [Item], _ bytes: [UInt8], _ directoryCount: Int) throws(Finding) {
    var order = Array(unordered.indices.dropFirst())
    bytes.withUnsafeBytes { bytes in
      order.sort { one, other in
        let (left, right) = (unordered[one], unordered[other])
        if left.parent != right.parent { return left.parent < right.parent }
        let name = bytes[Int(right.name)..<Int(right.name) + Int(right.nameLength)]
        return Self.compare(left, bytes, UnsafeRawBufferPointer(rebasing: name)) < 0
      }
    }
    items = [unordered[0]] + order.map { unordered[$0] }
    self.bytes = bytes
    let end = UInt32(items.count)
    directories = Array(repeating: Directory(item: 0, children: end), count: directoryCount + 1)
    // From the end on, so that each directory's first child comes last; one without any begins where the next
    // one does.
    for index in items.indices.dropFirst().reversed() {
      directories[Int(items[index].parent)].children = UInt32(index)
      if items[index].kind == .directory { directories[Int(items[index].payload)].item = UInt32(index) }
    }
    for number in directories.indices.dropLast().reversed() where directories[number].children == end {
      directories[number].children = directories[number + 1].children
    }
    for (one, other) in zip(items.dropFirst(), items.dropFirst(2)) where one.parent == other.parent {
      if slice(one.name, one.nameLength) == slice(other.name, other.nameLength) {
        throw ResourceSeal.malformed("a path occurs twice")
      }
    }
  }
}
