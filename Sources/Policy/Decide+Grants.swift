// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// What an app may do with what its user has granted it, beyond ACLs and modes.

/// Tells whether something may be used in a way that is `wanted`, where `reach` is all that the view has of
/// it by now.
package func decideUse(_ wanted: Reach, within reach: Reach) -> Decision {
  reach.isSuperset(of: wanted) ? .allow : .deny(.place)
}

/// Tells whether what is in a file may be changed through an open; what may only append changes nothing that
/// was there.
package func decideOverwriting(mayOnlyAppend: Bool) -> Decision {
  mayOnlyAppend ? .deny(.appendOnly) : .allow
}

/// Tells whether a file may be opened whose memory maps would be one view's alone.
///
/// `isSharedMemory` says that it is one through which databases share memory (`-shm`, of SQLite's write-ahead
/// log): two views that take their own maps for shared ones would destroy the database.
package func decideMapsOfOneView(isSharedMemory: Bool) -> Decision {
  isSharedMemory ? .deny(.place) : .allow
}

/// Tells whether a user may grant what is in this zone.
///
/// An installed app and the system domain have rules of their own. See also ``refusalToGrant(_:to:)``.
package func decideChoice(in zone: Zone) -> Decision {
  zone.isReadOnlyRegion ? .deny(.readOnly) : .allow
}

/// Tells whether something may have a name in a directory that the view does not show there.
///
/// The reason says nothing about what it is.
package func decideHiddenName(exists: Bool) -> Decision { exists ? .deny(.place) : .allow }

/// Tells whether an app may learn that a directory has nothing of a name for it.
package func decidePrivateName(in directory: Reach) -> Decision {
  directory.contains(.asks) ? .deny(.consent) : .allow
}

// MARK: - Kept apart

/// Tells whether something may be moved from one of two directories to the other.
///
/// Each grant is separate from all other grants and from everything that can't be revoked, like a filesystem
/// of its own. Otherwise an app could rename a file out of a grant and keep it. `isOneGrant` says whether
/// both were granted together, and is asked only where both were granted.
package func decideCrossing(
  from source: Reach, to target: Reach, isOneGrant: @autoclosure () -> Bool
) -> Decision {
  guard source.isRevocable == target.isRevocable else { return .deny(.boundary) }
  return !source.isRevocable || isOneGrant() ? .allow : .deny(.boundary)
}

/// Tells whether something of this kind may be made where only files were granted: plain files alone.
package func decideSiblingKind(_ kind: Object.Kind) -> Decision { kind == .file ? .allow : .deny(.place) }

/// Tells whether anything may have a name there that is for these granted files: only by names that editors
/// use for one of them.
///
/// The reason says nothing about what the user has there.
package func decideSiblingName(for owners: Set<Position>) -> Decision {
  owners.isEmpty ? .deny(.place) : .allow
}

/// Tells whether what belongs to `own` granted files may get a name there that is for `owners`: one must be
/// among both.
package func decideSiblingOwners(_ own: Set<Position>, of owners: Set<Position>) -> Decision {
  own.isDisjoint(with: owners) ? .deny(.boundary) : .allow
}
