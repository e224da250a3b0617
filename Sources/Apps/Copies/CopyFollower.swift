// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// Takes in what is in a file while its copy is written, so that the copy need not be read again.
///
/// It gets the memory that the copy is written from, from start to end; the source may say something else by
/// then. One thread at a time calls it.
package protocol CopyFollower: AnyObject, Sendable {
  func append(_ bytes: UnsafeRawBufferPointer)

  /// All of it has come, and has been written; nothing of the copy is changed any more, and this is how it
  /// lies there.
  func finish(_ copy: FileStatus)
}
