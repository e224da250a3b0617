// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// What may have keys of encrypted volumes in its memory, from before it is started until it has ended.
///
/// The next worker knows of the last one of each volume.
final class KeyHolders: Sendable {
  private struct State {
    var lives: [(id: Int64, life: SharedFD)] = []
    var locks: [Int64: Int] = [:]
  }
  private let state = Mutex(State())
  private let kept: KeptLives

  init(_ kept: KeptLives) { self.kept = kept }

  /// How often each volume was to be locked.
  var locks: [Int64: Int] { state.withLock { $0.locks } }

  func lock(_ ids: [Int64]) {
    state.withLock { state in for id in ids { state.locks[id, default: 0] += 1 } }
  }

  /// Notes one that is about to start; false if its volume has been locked since.
  @discardableResult
  func add(_ life: SharedFD, of id: Int64, after locks: Int? = nil) -> Bool {
    state.withLock { state in
      guard state.locks[id] == locks else { return false }
      forgetEnded(&state)
      state.lives.append((id, life))
      kept.keep(life, of: id)
      return true
    }
  }

  /// Whether anything may have the keys of a volume.
  func has(_ id: Int64) -> Bool {
    state.withLock { state in
      forgetEnded(&state)
      return state.lives.contains { $0.id == id }
    }
  }

  /// Has all end that may have the keys of a volume; whether they have within that time.
  @discardableResult
  func end(_ id: Int64, milliseconds: Int32 = 0) -> Bool {
    let lives = state.withLock { $0.lives.filter { $0.id == id } }
    for (_, life) in lives { VolumeEngines.end(life, isHurried: true) }
    return lives.allSatisfy { Self.hasEnded($0.life, milliseconds: milliseconds) }
  }

  private func forgetEnded(_ state: inout State) {
    state.lives.removeAll { (id, life) in
      guard Self.hasEnded(life, milliseconds: 0) else { return false }
      kept.forget(id, ifItIs: life)
      return true
    }
  }

  private static func hasEnded(_ life: SharedFD, milliseconds: Int32) -> Bool {
    (try? life.use { (life) throws(Errno) in try life.waitUntilHungUp(milliseconds: milliseconds) }) == true
  }
}
