// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Store
internal import Synchronization

/// Which names somebody is changing, and when others were changed.
///
/// A rename may take as long as somebody holds a file in the kernel, and a look along a path as long as a
/// disk does not answer. Nobody waits for either. Who has looked asks here, in the moment in which they note
/// what they have found, whether that was before or after every change of the names on the way.
struct NamesUnderWay {
  /// What a look along a path is worth.
  enum Answer {
    /// It is as it was seen.
    case asSeen
    /// A name was changed meanwhile, so it is looked at again.
    case changed
    /// This name is being changed: what was seen may be from before that, or from after it.
    case changing(ResolvedPath.Step)
  }

  /// How many change a name, by its hash: 64 bits with a seed stand for the name.
  private var changing: [Int: Int] = [:]
  /// The grants that are to be looked at when a name is changed.
  private var late: [Int: Set<Int64>] = [:]
  /// How many changes have ended.
  private(set) var time: UInt64 = 0
  /// When the last one of those names has ended that hash alike; the same of all names in a directory.
  private var names = [UInt64](repeating: 0, count: Self.shards)
  private var directories = [UInt64](repeating: 0, count: Self.shards)

  private static let shards = 4096

  /// Names that somebody changes; it is cheap, since every rename has one.
  struct Names {
    fileprivate let hashes: (Int, Int?)

    init(_ move: NameMove) {
      hashes = (
        hash(UnsafeRawBufferPointer(move.name.buffer), in: move.from.number),
        hash(UnsafeRawBufferPointer(move.newName.buffer), in: move.to.number)
      )
    }

    init(_ step: ResolvedPath.Step, _ other: ResolvedPath.Step? = nil) {
      hashes = (hash(step), other.map(hash))
    }

    fileprivate func forEach(_ body: (Int) -> Void) {
      body(hashes.0)
      if let other = hashes.1 { body(other) }
    }
  }

  private static func hash(_ step: ResolvedPath.Step) -> Int {
    step.name.withUnsafeBytes { hash($0, in: step.directory) }
  }

  private static func hash(_ name: UnsafeRawBufferPointer, in directory: ObjectNumber) -> Int {
    var hasher = Hasher()
    hasher.combine(directory)
    hasher.combine(bytes: name)
    return hasher.finalize()
  }

  private static func shard(_ hash: Int) -> Int { Int(truncatingIfNeeded: hash) & (shards - 1) }

  mutating func begin(_ changed: Names) { changed.forEach { changing[$0, default: 0] += 1 } }

  /// They are changed, and all that this makes of grants is noted; those that are to be looked at are the
  /// answer.
  mutating func end(_ changed: Names) -> Set<Int64> {
    time += 1
    var ids: Set<Int64> = []
    changed.forEach { hash in
      names[Self.shard(hash)] = time
      let left = (changing[hash] ?? 1) - 1
      changing[hash] = left > 0 ? left : nil
      if left <= 0, !late.isEmpty, let late = late.removeValue(forKey: hash) { ids.formUnion(late) }
    }
    return ids
  }

  /// Any names in a directory were changed.
  mutating func noteChange(in directory: ObjectNumber) {
    time += 1
    directories[Self.shard(directory.hashValue)] = time
  }

  /// What a look is worth that began at some time, and found these names on its way; who changes some of them
  /// is not in their own way.
  func answer(
    _ seen: [ResolvedPath.Step], since began: UInt64, besides own: [ResolvedPath.Step] = []
  ) -> Answer {
    for step in seen where isChanging(step) && !own.contains(step) { return .changing(step) }
    let isChanged = seen.contains { step in
      names[Self.shard(Self.hash(step))] > began
        || directories[Self.shard(step.directory.hashValue)] > began
    }
    return isChanged ? .changed : .asSeen
  }

  func isChanging(_ step: ResolvedPath.Step) -> Bool { changing[Self.hash(step)] != nil }

  /// Has a grant looked at when that name is changed.
  mutating func look(at id: Int64, after step: ResolvedPath.Step) {
    late[Self.hash(step), default: []].insert(id)
  }
}

extension Grants {
  /// The time at which a look begins.
  var time: UInt64 { changes.withLock { $0.time } }

  func begin(_ names: NamesUnderWay.Names) { changes.withLock { $0.begin(names) } }

  func end(_ names: NamesUnderWay.Names) -> [Int64] {
    let late = changes.withLock { Array($0.end(names)) }
    changed.change { $0 &+= 1 }
    return late
  }

  /// Waits until nobody changes a name any more, until some time at most.
  func wait(for step: ResolvedPath.Step, until end: UInt64) {
    _ = changed.wait(milliseconds: millisecondsLeft(until: end)) { _ in
      !changes.withLock { $0.isChanging(step) }
    }
  }

  func noteChange(in directory: ObjectNumber) { changes.withLock { $0.noteChange(in: directory) } }

  enum Outcome: Equatable {
    case done, changed
    case changing(ResolvedPath.Step)
  }

  /// Notes a grant, or where it is and what is there, as somebody has seen it who began to look at some time;
  /// if it and the names on the way are as they were.
  ///
  /// Who changes a name from then on finds it. One whose name is being changed is looked at after that. Only
  /// for who has the lock of its user.
  func put(
    _ new: Entry, insteadOf old: Entry?, seen steps: [ResolvedPath.Step], since began: UInt64
  ) -> Outcome {
    state.withLock { state in
      let id = new.record.id
      let known = state.entry(id)
      guard known?.record.path == old?.record.path else { return .changed }
      let announced = announce(steps + new.steps)
      defer { end(announced: announced, state) }
      let answer = changes.withLock { changes in
        let answer = changes.answer(steps + (known?.steps ?? []), since: began)
        if case .changing(let step) = answer, known != nil { changes.look(at: id, after: step) }
        return answer
      }
      switch answer {
      case .changed: return .changed
      case .changing(let step): return .changing(step)
      case .asSeen: break
      }
      var entry = new
      if let known {
        // It may be for other uses by now, or another team's.
        entry.record = known.record
        entry.record.path = new.record.path
        entry.record.identity = new.record.identity
      }
      put(entry, &state)
      return .done
    }
  }
}
