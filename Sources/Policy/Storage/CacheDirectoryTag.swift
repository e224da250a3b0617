// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The file by which programs outside of a view know that a directory holds what can be made again, and leave
/// it out of backups: see bford.info/cachedir.
///
/// It stands in the directories that may be purged, and is no content of theirs.
package enum CacheDirectoryTag {
  package static let name = "CACHEDIR.TAG"
  package static let contents = """
    Signature: 8a477f597d28d172789f06886806bc55
    # What is in this directory can be made again, so backups leave it out.
    # https://bford.info/cachedir/

    """

  /// Whether something in such a directory is called so.
  package static func isName(_ name: some Sequence<UInt8>) -> Bool { name.elementsEqual(Self.name.utf8) }
}
