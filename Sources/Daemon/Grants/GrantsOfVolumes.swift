// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

/// Tells which grants lead below `/Volumes` to a volume that their user does not have.
struct GrantsOfVolumes {
  /// Whose the volumes of each name are; nil is everyone.
  private var owners: [[UInt8]: [UInt32?]] = [:]

  init(_ volumes: [VolumeRecord]) {
    for volume in volumes where volume.place == .volumes {
      owners[volume.name, default: []].append(volume.owner)
    }
  }

  func isOfNone(_ grant: GrantRecord) -> Bool {
    let place = VolumeRecord.Place.volumes.names
    guard grant.path.starts(with: place), let name = grant.path.dropFirst(place.count).first else {
      return false
    }
    func isTheirs(_ owners: [UInt32?]) -> Bool {
      owners.contains { $0 == nil || $0 == grant.user || grant.user == 0 }
    }
    if let owners = owners[name], isTheirs(owners) { return false }
    return !owners.contains { areOneName($0.key, name) && isTheirs($0.value) }
  }
}
