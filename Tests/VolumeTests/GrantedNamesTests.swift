// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

@testable internal import Volume

/// Grants follow renames as a list of paths would, of which each is changed by itself.
@Suite struct GrantedNamesTests {
  private typealias Path = [[UInt8]]

  /// A tree of directories in memory; each has a number that it keeps when it is renamed.
  private struct Disk {
    /// By the paths of directories.
    var numbers: [Path: UInt64] = [[]: 1]
    var next: UInt64 = 2

    mutating func make(_ path: Path) {
      for depth in 1...path.count where numbers[Array(path.prefix(depth))] == nil {
        numbers[Array(path.prefix(depth))] = next
        next += 1
      }
    }

    func steps(_ path: Path) -> [ResolvedPath.Step] {
      path.indices.prefix { numbers[Array(path.prefix($0))] != nil }.map { depth in
        step(Array(path.prefix(depth + 1))) ?? ResolvedPath.Step([], in: ObjectNumber(inode: 0, device: 1))
      }
    }

    func step(_ path: Path) -> ResolvedPath.Step? {
      guard let name = path.last, let number = numbers[path.dropLast()] else { return nil }
      return ResolvedPath.Step(name, in: ObjectNumber(inode: number, device: 1))
    }

    mutating func move(_ old: Path, _ new: Path, exchanging: Bool) {
      var moved: [Path: UInt64] = [:]
      for (path, number) in numbers {
        if path.starts(with: old) {
          moved[new + path.dropFirst(old.count)] = number
        } else if !path.starts(with: new) {
          moved[path] = number
        } else if exchanging {
          moved[old + path.dropFirst(new.count)] = number
        }
      }
      numbers = moved
    }
  }

  private struct Pair {
    let grants: Grants
    let budget: Budget
    var disk = Disk()
    /// The same as a list.
    var paths: [Int64: Path] = [:]

    init() {
      budget = Budget(Budget.Limits(descriptors: 64))
      grants = Grants(budget)
    }

    mutating func grant(_ id: Int64, _ path: Path, app: String = "writer", user: UInt32 = 1000) throws {
      disk.make(path)
      let identifier = try #require(AppIdentifier("org.example.\(app)"))
      let record = GrantRecord(
        id: id, identifier: identifier, user: user, team: Team("T", root: nil), path: path, isWritable: false,
        isDirectory: true, identity: ObjectIdentity(inode: 9, handle: [8, 0, 1], created: 0), granted: 0)
      grants.put(Grants.Entry(record: record, steps: disk.steps(path)))
      paths[id] = path
    }

    mutating func rename(_ old: Path, _ new: Path, exchanging: Bool = false) throws -> Grants.Relocated {
      let (source, target) = (try #require(disk.step(old)), try #require(disk.step(new)))
      disk.move(old, new, exchanging: exchanging)
      var relocations = [relocation(source, to: new)]
      if exchanging { relocations.append(relocation(target, to: old)) }
      for (id, path) in paths {
        if path.starts(with: old) {
          paths[id] = new + path.dropFirst(old.count)
        } else if exchanging, path.starts(with: new) {
          paths[id] = old + path.dropFirst(new.count)
        }
      }
      return grants.relocate(relocations)
    }

    private func relocation(_ source: ResolvedPath.Step, to path: Path) -> Grants.Relocation {
      Grants.Relocation(
        source: source, path: path, steps: disk.steps(path), isWithinOneDirectory: false, mover: nil)
    }

    /// How many names there are on the way to what a user has granted.
    func names(of user: UInt32) -> Int {
      let own = paths.filter { grants.entry($0.key)?.record.user == user }.values
      return Set(own.flatMap { path in path.indices.map { Array(path.prefix($0 + 1)) } }).count
    }

    func check() {
      for (id, path) in paths {
        let entry = grants.entry(id)
        #expect(entry?.record.path == path)
        #expect(entry?.steps == disk.steps(path))
        for step in disk.steps(path) {
          #expect(grants.ids(through: step).contains(id))
          #expect(grants.touches(step) && grants.mayTouch(step.directory))
        }
      }
      for user: UInt32 in [1000, 1001] {
        #expect(budget.count(.grantedNames, of: Payer(user: user)) == names(of: user))
      }
    }

    func checkNothingIsLeft() {
      for id in paths.keys { grants.remove(id) }
      #expect(grants.isEmpty && budget.total(.grantedNames) == 0)
      for (path, number) in disk.numbers {
        let directory = ObjectNumber(inode: number, device: 1)
        #expect(grants.touches(directory).isEmpty)
        if let step = disk.step(path) { #expect(!grants.touches(step)) }
      }
    }
  }

  private static func path(_ text: String) -> Path { GrantPath.names(Array(text.utf8)) }

  /// Any renames and exchanges, of what was granted and of what leads there.
  @Test(arguments: 0..<40)
  func manyRenamesAreFollowed(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var pair = Pair()
    func anyPath() -> Path {
      (0..<Int.random(in: 1...5, using: &random)).map { _ in [UInt8.random(in: 97...100, using: &random)] }
    }
    // Each is another app's, so that two may be at one path.
    for id in 1...30 { try pair.grant(Int64(id), anyPath(), app: "app\(id)", user: 1000 + UInt32(id & 1)) }
    pair.check()
    for _ in 0..<60 {
      let (old, new) = (anyPath(), anyPath())
      let isExchange = Bool.random(using: &random)
      guard pair.disk.numbers[old] != nil, pair.disk.numbers[new.dropLast()] != nil,
        !old.starts(with: new), !new.starts(with: old)
      else { continue }
      let isThere = pair.disk.numbers[new] != nil
      // A directory takes the place of an empty one alone.
      let isFull = pair.disk.numbers.keys.contains { $0.starts(with: new) && $0 != new }
      guard isExchange ? isThere : !isFull else { continue }
      let concerned = Set(pair.paths.filter { $0.value.starts(with: old) }.keys)
      let relocated = try pair.rename(old, new, exchanging: isExchange)
      #expect(relocated.ids.isSuperset(of: concerned))
      pair.check()
    }
    pair.checkNothingIsLeft()
  }

  /// Moved to where its app was granted what was there: then one stands for both.
  @Test func grantsOfOneAppAtOnePathAreUnited() throws {
    var pair = Pair()
    try pair.grant(1, Self.path("a/b/c"))
    try pair.grant(2, Self.path("d/b/c"))
    try pair.grant(3, Self.path("d/b/c"), app: "other")
    pair.disk.numbers[Self.path("d/b/c")] = nil
    pair.disk.numbers[Self.path("d/b")] = nil
    let relocated = try pair.rename(Self.path("a"), Self.path("d"))
    #expect(relocated.ids == [1, 2])
    #expect(pair.grants.entry(1) == nil && pair.grants.all.map(\.id) == [2, 3])
    pair.paths[1] = nil
    pair.check()
    pair.checkNothingIsLeft()
  }

  /// What would have too long a path stays where it was; the others go.
  @Test func tooLongPathsAreLeft() throws {
    var pair = Pair()
    let long = (0..<15).map { _ in [UInt8](repeating: 97, count: 250) }
    try pair.grant(1, Self.path("a/short"))
    try pair.grant(2, Self.path("a") + long)
    let target = [[UInt8](repeating: 98, count: 250)]
    let relocated = try pair.rename(Self.path("a"), target)
    #expect(relocated.left.map(\.record.id) == [2] && relocated.ids == [1, 2])
    #expect(pair.grants.record(1)?.path == target + Self.path("short"))
    #expect(pair.grants.record(2)?.path == Self.path("a") + long)
    pair.checkNothingIsLeft()
  }

  /// The deepest paths meet.
  @Test func deepTreesMeet() throws {
    var pair = Pair()
    let deep = (1..<GrantPath.deepest).map { _ in [UInt8(97)] }
    try pair.grant(1, [[98]] + deep)
    try pair.grant(2, [[99]] + deep, app: "other")
    let source = try #require(pair.disk.step([[98]]))
    let relocation = Grants.Relocation(
      source: source, path: [[99]], steps: pair.disk.steps([[99]]), isWithinOneDirectory: true, mover: nil)
    let (grants, budget) = (pair.grants, pair.budget)
    _ = grants.relocate([relocation])
    #expect(grants.record(1)?.path == [[99]] + deep && grants.record(2)?.path == [[99]] + deep)
    grants.remove(1)
    grants.remove(2)
    #expect(grants.isEmpty && budget.total(.grantedNames) == 0)
  }
}
