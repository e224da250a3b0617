// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// What a tree should look like, whoever looks.
final class Item {
  enum Kind { case file, directory, symlink }
  let kind: Kind
  var mode: mode_t
  var data: [UInt8] = []
  var target = ""
  var attributes: [String: String] = [:]
  var children: [String: Item] = [:]
  /// How many names it has.
  var names = 1

  init(_ kind: Kind, mode: mode_t) {
    self.kind = kind
    self.mode = mode
  }

  /// How many names there are in it and below.
  var size: Int { children.values.reduce(children.count) { $0 + $1.size } }

  /// All that is below it.
  func contains(_ other: Item) -> Bool {
    self === other || children.values.contains { $0.kind == .directory && $0.contains(other) }
  }
}

/// Something that is open in one of the views.
struct Handle {
  let file: Int32
  let view: Int
  let item: Item
  let canWrite: Bool
  /// What it has by flock(2).
  var flock = LOCK_UN
  /// What it has of the first eight bytes, by fcntl(2).
  var ranges = [Int32](repeating: F_UNLCK, count: 8)
}

/// What was expected and what was found.
struct Stale: Error {
  let words: String
  init(_ words: String) { self.words = words }
}

/// Does at random what can be done to a tree through one of several views, and looks at it through the
/// others: each time all must be as the model has it.
struct Coherence {
  /// The same directory through each view, and where it really lies.
  let roots: [String]
  let truth: String
  let root = Item(.directory, mode: 0o777)
  var random: SplitMix
  var handles: [Handle] = []
  var counts: [String: Int] = [:]
  var looks = 0
  /// Whether what is stored through a map in one view is seen at once in the others.
  let canMap: Bool
  /// What is being done, and what was done before, for the message.
  var now = "" { didSet { recent = recent.suffix(11) + [now] } }
  private var recent: [String] = []

  init(roots: [String], truth: String, seed: UInt64, canMap: Bool) {
    self.roots = roots
    self.canMap = canMap
    self.truth = truth
    random = SplitMix(state: seed)
  }

  /// Does so many steps; gives what it has done.
  mutating func run(steps: Int) throws(Stale) -> String {
    for step in 0..<steps {
      do throws(Stale) {
        try self.step()
        if step % 500 == 499 {
          try compareAll()
          // A tree that only grows makes each comparison longer than the one before, and nothing in it small
          // and busy.
          if root.size > 400 { try thin(to: 200) }
        }
      } catch {
        throw Stale("step \(step): \(error.words); \(recent.joined(separator: "; "))")
      }
    }
    try compareAll()
    for handle in handles { close(handle.file) }
    let done = counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    return "\(steps) steps, \(looks) looks: \(done)"
  }

  mutating func pick(_ count: Int) -> Int { Int(random.next() % UInt64(max(count, 1))) }

  mutating func oneIn(_ count: Int) -> Bool { pick(count) == 0 }

  /// A directory, and its path below the root.
  mutating func someDirectory() -> (item: Item, path: String) {
    var item = root
    var path = ""
    while oneIn(2) {
      let below = item.children.filter { $0.value.kind == .directory }.keys.sorted()
      guard !below.isEmpty else { break }
      let name = below[pick(below.count)]
      guard let next = item.children[name] else { break }
      item = next
      path += "/" + name
    }
    return (item, path)
  }

  /// A name, taken or free.
  mutating func someName() -> String { "n\(pick(6))" }

  /// A place, and what is there; usually one that is taken, or one that is free.
  mutating func somePlace(
    taken: Bool? = nil
  ) -> (directory: Item, path: String, name: String, item: Item?) {
    let (directory, path) = someDirectory()
    var name = someName()
    if let taken, !oneIn(5) {
      for _ in 0..<8 where (directory.children[name] != nil) != taken { name = someName() }
    }
    return (directory, path + "/" + name, name, directory.children[name])
  }

  mutating func count(_ what: String) { counts[what, default: 0] += 1 }
}

/// Numbers that are the same in every run.
struct SplitMix {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }
}
