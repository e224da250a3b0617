// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The whole list.
///
/// What one check leaves behind never reaches another, so the order is only for the reader.
package enum Catalogue {
  /// All checks, family by family.
  package static let all: [Check] = {
    var checks = Checks()
    let families: [(inout Checks) -> Void] = [
      openBasics, openFlags, creation, temporaryFiles, directories, links, symlinks, specialFiles, renames,
      renameFlags, directoryRenames, stats, modes, owners, setIds, sticky, groups, times, truncation,
      readingAndWriting, mappings, allocation, seeking, copying, orphans, listings, caches,
      cachesOfSeveralUsers, extendedAttributes, extendedAttributesOfUsers, controls, permissions, accessCalls,
      execution, oddNames, deepTrees, wholeFileLocks, recordLocks, waitingForLocks, openFileLocks, races,
      notifications, shellCopies, shellArchives, shellTools, shellPrograms,
    ]
    for family in families { family(&checks) }
    return checks.all
  }()
}
