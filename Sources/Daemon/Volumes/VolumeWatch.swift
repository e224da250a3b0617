// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import Volume

/// Notices when the programs end that serve volumes.
final class VolumeWatch: Sendable {
  private struct State {
    var watched: [AttachedVolume] = []
    var isRunning = false
  }
  private let state = Mutex(State())
  private let changed: Wakeup
  private let ended: @Sendable (AttachedVolume, _ reason: String) -> Void

  /// `ended` is called when one has ended that nobody has told to.
  init(_ ended: @escaping @Sendable (AttachedVolume, _ reason: String) -> Void) throws(Errno) {
    changed = try Wakeup()
    self.ended = ended
  }

  func add(_ volume: AttachedVolume) {
    // What the kernel serves needs no process.
    guard volume.engine.life != nil, volume.engine.queue != nil else { return }
    let isRunning = state.withLock { state in
      state.watched.append(volume)
      defer { state.isRunning = true }
      return state.isRunning
    }
    if isRunning { return changed.ring() }
    guard let thread = try? JoinableThread(name: "volume-watch", { self.run() }) else {
      return state.withLock { $0.isRunning = false }
    }
    thread.detach()
  }

  /// It is about to be told to end.
  func remove(_ volume: AttachedVolume) {
    state.withLock { $0.watched.removeAll { $0 === volume } }
    changed.ring()
  }

  private func drain() {
    var count: UInt64 = 0
    _ = read(changed.fd.raw, &count, 8)
  }

  private func run() {
    while true {
      let watched = state.withLock { $0.watched }
      var set = [pollfd(fd: changed.fd.raw, events: Int16(POLLIN), revents: 0)]
      set += watched.map { pollfd(fd: $0.engine.life?.number ?? -1, events: Int16(POLLIN), revents: 0) }
      guard poll(&set, nfds_t(set.count), -1) > 0 else { continue }
      if set[0].revents != 0 { drain() }
      for (volume, entry) in zip(watched, set.dropFirst()) where entry.revents != 0 {
        let isOurs = state.withLock { state in
          let isThere = state.watched.contains { $0 === volume }
          state.watched.removeAll { $0 === volume }
          return isThere
        }
        if isOurs { ended(volume, volume.engine.life.map { MountHelper.lastWords(of: $0) } ?? "") }
      }
    }
  }
}
