// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

extension Volume {
  /// The zone of a name in a directory of that number and zone.
  ///
  /// Whether it is that of an installed app is not in the names, so this is the one way to ask.
  func zone(of name: Name, in directory: ObjectNumber, _ zone: Zone) -> Zone {
    if let app = zone.app, readOnlyRegions.find(name, in: directory) != nil { return app }
    return zone.zone(of: name)
  }
}

extension View {
  /// The zone of a name in a directory.
  func zone(of name: Name, in directory: borrowing NodeTable.Reference) -> Zone {
    volume.zone(of: name, in: directory.number, directory.zone)
  }

  func zone(of name: Name, in directory: DirectoryChange.Directory) -> Zone {
    volume.zone(of: name, in: directory.number, directory.zone)
  }
}
