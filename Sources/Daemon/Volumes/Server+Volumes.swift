// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Store
internal import Synchronization
internal import Volume

extension Server {
  /// Who uses a volume, in words; whoever asks that is not meant.
  func users(of attached: AttachedVolume, besides pid: Int32) -> [String] {
    let place = "\(mountPoint)/Volumes/\(String(decoding: attached.record.name, as: UTF8.self))"
    let processes = device.withLock { $0 }.map { MountUser.all(of: $0) } ?? []
    let found = processes.filter { process in
      process.pid != pid
        && process.paths.contains { $0 == place || $0.utf8.starts(with: (place + "/").utf8) }
    }
    let apps = views.all().filter { $0.view.opens(on: attached) > 0 }
    let own = found.map(\.description) + apps.map { "\($0.launch.app.identifier), pid \($0.pid)" }
    let isAskersAlone = processes.contains { $0.pid == pid }
    // What is open through the whole tree by somebody that can't be seen.
    return own.isEmpty && !isAskersAlone && view.opens(on: attached) > 0
      ? ["a program has files of it open"] : own
  }
}
