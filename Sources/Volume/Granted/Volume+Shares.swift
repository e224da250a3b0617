// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
package import Store

// What is granted on the share of a server is granted by its path, since a server is not asked. But another
// share may get the name, which nobody has granted anything of: so each grant there has the URL of its share.

extension Volume {
  /// A grant with what tells its share from another one at that path, if it is on one.
  package func bound(_ record: GrantRecord) -> GrantRecord {
    let shares = attached.all.map(\.record).filter { share in
      share.place.isOfServer && (share.owner == nil || share.owner == record.user) && isBelow(record, share)
    }
    guard let share = shares.first else { return record }
    var bound = record
    bound.identity = ObjectIdentity(ofShareAt: share.path)
    return bound
  }

  /// What was granted in the place of a share, and not of this share.
  package func grants(inPlaceOf share: VolumeRecord) -> [GrantRecord] {
    let own = ObjectIdentity(ofShareAt: share.path)
    return granted.filter { record in
      record.identity != own && (share.owner == nil || share.owner == record.user) && isBelow(record, share)
    }
  }

  /// Has these grants, of which nothing says what share they were of, be of this one.
  package func bind(_ numbers: [Int64], to share: VolumeRecord) {
    grants.moving.withLock(of: grants.users(of: numbers)) {
      for number in numbers {
        guard var entry = grants.entry(number) else { continue }
        entry.record.identity = ObjectIdentity(ofShareAt: share.path)
        grants.put(entry)
      }
    }
  }

  private func isBelow(_ record: GrantRecord, _ share: VolumeRecord) -> Bool {
    treeNames.isPlace(share.treePath, atOrAbove: record.path)
  }
}
