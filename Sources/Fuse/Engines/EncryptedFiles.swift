// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The names in a directory in which gocryptfs has encrypted files.
package enum EncryptedFiles {
  /// Has the keys, encrypted with what is derived from the password.
  package static let configuration = "gocryptfs.conf"
  /// By which the names of a directory are encrypted; each directory has one.
  package static let vector = "gocryptfs.diriv"
  /// The image of a disk on which the files are if their volume has a size.
  package static let disk = "gocryptfs.ext4"
  /// Where they are on that disk.
  package static let onDisk = "files"
}
