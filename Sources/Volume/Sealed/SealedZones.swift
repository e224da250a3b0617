// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

extension Volume {
  /// The zone of a name in a directory of that number and zone.
  ///
  /// Whether it is that of an installed app is not in the names, so this is the one way to ask.
  func zone(of name: Name, in directory: ObjectNumber, _ zone: Zone) -> Zone {
    if let app = zone.app,
      readOnlyRegions.find(name, in: directory) != nil
        || readOnlyRegions.unknownApp(in: directory, zone) != nil
    {
      return app
    }
    return plainZone(of: name.buffer, in: zone)
  }

  /// The same where that makes no difference.
  func plainZone(of name: some Collection<UInt8>, in zone: Zone) -> Zone {
    guard zone.namesMatter else { return zone.zone(of: EmptyCollection()) }
    // What came past the daemon in another spelling than the rules have is what they mean all the same.
    guard spellings != nil, let folded = foldedName(Array(name)),
      let standard = zone.standardName(ofFolded: folded)
    else { return zone.zone(of: name) }
    return zone.zone(of: standard)
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
