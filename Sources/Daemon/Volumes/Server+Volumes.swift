// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

extension Server {
  /// Who uses each of some volumes, in words; whoever asks that is not meant.
  ///
  /// All processes are looked at once.
  func users(of volumes: [AttachedVolume], besides pid: Int32) -> [[String]] {
    let processes = volumes.isEmpty ? [] : device.withLock { $0 }.map { MountUser.all(of: $0) } ?? []
    return volumes.map { users(of: $0, among: processes, besides: pid) }
  }

  func users(of attached: AttachedVolume, besides pid: Int32) -> [String] {
    users(of: [attached], besides: pid).flatMap { $0 }
  }

  private func users(
    of attached: AttachedVolume, among processes: [MountUser], besides pid: Int32
  ) -> [String] {
    let found = processes.filter { process in
      process.pid != pid && process.paths.contains { lies($0, on: attached) }
    }
    let home = attached.home.map { _ in String(decoding: attached.record.name, as: UTF8.self) }
    let apps = views.all().filter { app in
      app.view.opens(on: attached) > 0 || home?.hasSameBytes(as: app.launch.home) == true
    }
    let own = found.map(\.description) + apps.map { "\($0.launch.app.identifier), pid \($0.pid)" }
    let isAskersAlone = processes.contains { process in
      process.pid == pid && process.paths.contains { lies($0, on: attached) }
    }
    // What is open through the whole tree by somebody that can't be seen.
    return own.isEmpty && !isAskersAlone && view.opens(on: attached) > 0
      ? ["a program has files of it open"] : own
  }

  /// Whether a path, as the kernel tells it of what a process uses, leads to a volume, in whatever spelling.
  private func lies(_ path: String, on attached: AttachedVolume) -> Bool {
    let above = Array("\(mountPoint)/\(attached.record.place.path)/".utf8)
    guard path.utf8.starts(with: above) else { return false }
    var name = path.utf8.dropFirst(above.count).prefix { $0 != UInt8(ascii: "/") }
    // As the kernel calls what somebody else's lookup has made it forget.
    let forgotten = " (deleted)"
    if name.count + above.count == path.utf8.count, path.hasSuffix(forgotten) {
      name = name.dropLast(forgotten.utf8.count)
    }
    return attached.record.name.elementsEqual(name)
      || volume.settings.ignoresCase && areOneName(attached.record.name, Array(name))
  }
}
