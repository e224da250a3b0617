// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization
internal import Volume

extension VolumeService {
  private static let leastPauseMilliseconds = 50
  private static let mostPauseMilliseconds = 2000

  /// Lets go of what has left the tree: at once, or when its last user does.
  ///
  /// Its disk is locked until then, and whoever adds it again waits for that.
  func letGo() {
    guard volume.letGo(usersOf: users(of:)) else { return }
    guard isLettingGo.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
      return
    }
    let thread = try? JoinableThread(name: "volumes") { [weak self] in
      var pause = Self.leastPauseMilliseconds
      while let self, volume.letGo(usersOf: users(of:)) {
        // Nothing tells of it when somebody closes what the kernel reads and writes by itself.
        pauseThread(milliseconds: pause)
        pause = min(2 * pause, Self.mostPauseMilliseconds)
      }
      self?.isLettingGo.store(false, ordering: .relaxed)
    }
    if let thread { thread.detach() } else { isLettingGo.store(false, ordering: .relaxed) }
  }
}
