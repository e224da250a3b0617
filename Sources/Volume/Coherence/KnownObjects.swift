// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// Which views know an object, and through which of them it is open for writing.
///
/// There may be a thousand views, and most of them know nothing of what one of them changes: so nobody looks
/// through all of their tables. The first view of a volume, which is the whole tree's and may know a million
/// objects, is not in here but asked itself.
///
/// A table of nodes says what it comes to know and what it forgets while it is locked, so the lock order is:
/// a table of nodes, then one of these. What is asked here is answered without any other lock.
final class KnownObjects: Sendable {
  /// Nearly all objects are known to one view alone.
  fileprivate enum Knowers {
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
    /// Was open through that view in a way that lets a memory map outlive its descriptor.
    var mayBeMapped = false
  }
  fileprivate struct State {
    var knowers: [ObjectNumber: Knowers] = [:]
    var writers: [ObjectNumber: [Writer]] = [:]
  }
  private final class Shard: Sendable {
    let state = Mutex(State())
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
      switch state.knowers[object] {
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

  fileprivate func add(_ object: ObjectNumber, knownBy view: UInt32) {
    withState(of: object) { state in
      if let known = state.knowers[object] {
        state.knowers[object] = .several(known.views + [view])
      } else {
        state.knowers[object] = .one(view)
      }
    }
  }

  fileprivate func remove(_ object: ObjectNumber, knownBy view: UInt32) {
    withState(of: object) { state in
      guard var views = state.knowers[object]?.views, let place = views.firstIndex(of: view) else { return }
      views.remove(at: place)
      state.knowers[object] = views.count > 1 ? .several(views) : views.first.map { .one($0) }
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
      shard.state.withLock { (sum.0 + $0.knowers.count, sum.1 + $0.writers.count) }
    }
  }
}

extension KnownObjects.State {
  /// Changes what is noted of one view's writing; a note that says nothing goes.
  fileprivate mutating func change(
    _ object: ObjectNumber, _ view: UInt32, _ body: (inout KnownObjects.Writer) -> Void
  ) {
    var writers = self.writers[object] ?? []
    var writer = KnownObjects.Writer(view: view)
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

/// What one view says to ``KnownObjects``.
struct KnownObjectsOfView: Sendable {
  let all: KnownObjects
  let view: UInt32

  func add(_ object: ObjectNumber) { all.add(object, knownBy: view) }
  func remove(_ object: ObjectNumber) { all.remove(object, knownBy: view) }
  func opened(_ object: ObjectNumber) { all.opened(object, by: view) }
  func closed(_ object: ObjectNumber, mayBeMapped: Bool) {
    all.closed(object, by: view, mayBeMapped: mayBeMapped)
  }
  func unmapped(_ object: ObjectNumber) { all.unmapped(object, by: view) }
}
