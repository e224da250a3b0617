// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

extension Server {
  /// Who uses volumes; whoever asks that is not meant.
  func volumeUsers(besides pid: Int32) -> VolumeUsers {
    VolumeUsers {
      self.users(of: $0, besides: pid)
    } opens: { attached in
      self.view.opens(on: attached) + self.views.all().reduce(0) { $0 + $1.view.opens(on: attached) }
    }
  }

  /// Who uses each of some volumes, in words; whoever asks that is not meant.
  ///
  /// All processes are looked at once.
  func users(of volumes: [AttachedVolume], besides pid: Int32) -> [[String]] {
    let processes = volumes.isEmpty ? nil : device.withLock { $0 }.map { MountUsers.all(of: $0) }
    return volumes.map { users(of: $0, among: processes, besides: pid) }
  }

  private func users(
    of attached: AttachedVolume, among all: MountUsers?, besides pid: Int32
  ) -> [String] {
    let processes = all?.users ?? []
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
    guard own.isEmpty, !isAskersAlone, view.opens(on: attached) > 0 else { return own }
    // What is open through the whole tree by somebody that can't be seen. A file that is mapped is open, so
    // who hides alone uses nothing.
    return ["a program has files of it open"] + (all?.hidden ?? [])
  }

  /// Whether a path, as the kernel tells it of what a process uses, leads to a volume, in whatever spelling.
  private func lies(_ path: String, on attached: AttachedVolume) -> Bool {
    let above = Array("\(mountPoint)/\(attached.record.place.path)/".utf8)
    guard path.utf8.starts(with: above) else { return false }
    var name = path.utf8.dropFirst(above.count).prefix { $0 != UInt8(ascii: "/") }
    // As the kernel calls what somebody else's lookup has made it forget.
    let forgotten = " (deleted)"
    if name.count + above.count == path.utf8.count, path.ends(with: forgotten) {
      name = name.dropLast(forgotten.utf8.count)
    }
    return attached.record.name.elementsEqual(name)
      || volume.settings.ignoresCase && areOneName(attached.record.name, Array(name))
  }
}
