// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// Which views know an object, and through which of them it is open for writing.
///
/// There may be a thousand views, most of which do not know what one of them changes, so their node tables
/// are not searched one by one. The first view of a volume, that of the whole tree, may know a million
/// objects. It is not in this index: its own table is asked.
///
/// A node table reports its additions and removals while it is locked, so the lock order is: node table, then
/// index. Queries take no other lock.
final class InterestIndex: Sendable {
  /// Nearly all objects are known to a single view.
  fileprivate enum InterestedViews {
    case one(UInt32)
    /// A view is in here once for each node that it has of an object of that number.
    case several([UInt32])

    var views: [UInt32] {
      switch self {
      case .one(let view): [view]
      case .several(let views): views
      }
    }
  }
  fileprivate struct Writer {
    let view: UInt32
    var opens = 0
    /// Was open through that view so that a memory map may outlive its descriptor.
    var mayBeMapped = false
  }
  fileprivate struct State {
    var interested: [ObjectNumber: InterestedViews] = [:]
    var writers: [ObjectNumber: [Writer]] = [:]
  }
  private final class Shard: Sendable {
    let state = OrderedMutex(.interestIndex, State())
  }
  private let shards = (0..<64).map { _ in Shard() }

  private func withState<Result: Sendable>(
    of object: ObjectNumber, _ body: (inout sending State) -> sending Result
  ) -> Result {
    let number = (object.inode &* 0x9e37_79b9_7f4a_7c15) >> 40
    return shards[Int(number % UInt64(shards.count))].state.withLock(body)
  }

  /// The views that know an object, but for this one.
  func views(of object: ObjectNumber, besides excepted: UInt32) -> [UInt32] {
    withState(of: object) { state in
      switch state.interested[object] {
      case nil, .one(excepted): []
      case .one(let view): [view]
      case .several(let views): Array(Set(views).subtracting([excepted]))
      }
    }
  }

  /// Whether an object is open for writing, or may be mapped so, through another view than this one.
  func use(of object: ObjectNumber, besides view: UInt32) -> WritingUse {
    withState(of: object) { state in
      var use = WritingUse.none
      for writer in state.writers[object] ?? [] where writer.view != view {
        if writer.opens > 0 { return .open }
        if writer.mayBeMapped { use = .perhapsMapped }
      }
      return use
    }
  }

  fileprivate func add(_ object: ObjectNumber, of view: UInt32) {
    withState(of: object) { state in
      if let known = state.interested[object] {
        state.interested[object] = .several(known.views + [view])
      } else {
        state.interested[object] = .one(view)
      }
    }
  }

  fileprivate func remove(_ object: ObjectNumber, of view: UInt32) {
    withState(of: object) { state in
      guard var views = state.interested[object]?.views, let place = views.firstIndex(of: view) else {
        return
      }
      views.remove(at: place)
      state.interested[object] = views.count > 1 ? .several(views) : views.first.map { .one($0) }
      if !views.contains(view) { state.change(object, view) { $0 = Writer(view: view) } }
    }
  }

  fileprivate func opened(_ object: ObjectNumber, by view: UInt32) {
    withState(of: object) { state in state.change(object, view) { $0.opens += 1 } }
  }

  fileprivate func closed(_ object: ObjectNumber, by view: UInt32, mayBeMapped: Bool) {
    withState(of: object) { state in
      state.change(object, view) { writer in
        writer.opens -= writer.opens > 0 ? 1 : 0
        if mayBeMapped { writer.mayBeMapped = true }
      }
    }
  }

  fileprivate func unmapped(_ object: ObjectNumber, by view: UInt32) {
    withState(of: object) { state in state.change(object, view) { $0.mayBeMapped = false } }
  }

  /// How many objects are known, and how many are written to; for tests.
  var counts: (known: Int, written: Int) {
    shards.reduce((0, 0)) { sum, shard in
      shard.state.withLock { (sum.0 + $0.interested.count, sum.1 + $0.writers.count) }
    }
  }
}

extension InterestIndex.State {
  /// Changes what is noted of one view's writing; a note that says nothing goes.
  fileprivate mutating func change(
    _ object: ObjectNumber, _ view: UInt32, _ body: (inout InterestIndex.Writer) -> Void
  ) {
    var writers = self.writers[object] ?? []
    var writer = InterestIndex.Writer(view: view)
    if let place = writers.firstIndex(where: { $0.view == view }) { writer = writers.remove(at: place) }
    body(&writer)
    if writer.opens > 0 || writer.mayBeMapped { writers.append(writer) }
    self.writers[object] = writers.isEmpty ? nil : writers
  }
}

/// In which way others may be changing what is in a file.
enum WritingUse: Sendable {
  case none
  /// It was open for writing, and a memory map may have outlived that.
  case perhapsMapped
  case open
}

/// What one view says to ``InterestIndex``.
struct ViewInterest: Sendable {
  let all: InterestIndex
  let view: UInt32

  func add(_ object: ObjectNumber) { all.add(object, of: view) }
  func remove(_ object: ObjectNumber) { all.remove(object, of: view) }
  func opened(_ object: ObjectNumber) { all.opened(object, by: view) }
  func closed(_ object: ObjectNumber, mayBeMapped: Bool) {
    all.closed(object, by: view, mayBeMapped: mayBeMapped)
  }
  func unmapped(_ object: ObjectNumber) { all.unmapped(object, by: view) }
}
