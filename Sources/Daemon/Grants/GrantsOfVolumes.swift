// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

/// Tells which grants lead to a volume that their user does not have: below `/Volumes`, and below what the
/// administrator of a network has for its machines.
///
/// Homes come back as what they were, and what servers share is there for whoever looks.
struct GrantsOfVolumes {
  /// Whose the volumes of each name are; nil is everyone.
  private var owners: [VolumeRecord.Place: [[UInt8]: [UInt32?]]] = [:]

  init(_ volumes: [VolumeRecord]) {
    for volume in volumes {
      owners[volume.place, default: [:]][volume.name, default: []].append(volume.owner)
    }
  }

  func isOfNone(_ grant: GrantRecord) -> Bool {
    guard grant.path.count > 1 else { return false }
    let (top, name) = (grant.path[0], grant.path[1])
    let place: VolumeRecord.Place
    if [top] == VolumeRecord.Place.volumes.names {
      place = .volumes
    } else if [top] == VolumeRecord.Place.network.names,
      VolumeService.networkNames.contains(where: { areOneName(Array($0.utf8), name) })
    {
      place = .network
    } else {
      return false
    }
    let owners = owners[place] ?? [:]
    func isTheirs(_ owners: [UInt32?]) -> Bool { owners.contains { $0 == nil || $0 == grant.user } }
    if let owners = owners[name], isTheirs(owners) { return false }
    return !owners.contains { areOneName($0.key, name) && isTheirs($0.value) }
  }
}
