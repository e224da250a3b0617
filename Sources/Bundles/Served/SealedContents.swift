// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// Where an object stands in what a seal says.
package enum SealedPosition: Equatable, Sendable {
  /// The seal speaks of it, under this number.
  case sealed(UInt32)
  /// A directory of which the seal knows nothing, at this path; what is in it is judged by its own.
  case unsealed(path: String)
  /// The seal leaves it to others, and what is in it too: it is served as it is.
  case free

  /// The directory that is sealed.
  package static let root = SealedPosition.sealed(0)
}

/// What a seal says of all that lies below one directory, for whoever serves that.
///
/// Nothing here opens anything: objects are found by who asks, which is what makes sure that what was checked
/// is also what is served.
package protocol SealedContents: AnyObject, Sendable {
  /// Whether what is sealed is an app that is to run in a sandbox.
  var isSandboxed: Bool { get }

  /// Where an object stands that was found under a name in a directory; throws what is wrong with its being
  /// there.
  ///
  /// `type` is the type in its mode.
  func position(
    of name: UnsafeBufferPointer<UInt8>, type: FileMode, in directory: SealedPosition
  ) throws(Finding) -> SealedPosition

  /// What is wrong with there being nothing of that name; nil if that is as it should be.
  func absence(of name: UnsafeBufferPointer<UInt8>, in directory: SealedPosition) -> Finding?

  /// What the seal says of a bundle that has a seal of its own; nil for everything else.
  func nested(at position: SealedPosition) -> NestedSeal?

  /// What is wrong with a directory or a link as such, beside what is in it or where it leads.
  ///
  /// `object` names it.
  func finding(about object: FD, _ status: FileStatus, at position: SealedPosition) -> Finding?

  /// Whether the bytes of a file, or the target of a link, are something that the seal speaks of.
  func isSealed(_ position: SealedPosition) -> Bool

  /// Reads a file to its end; what is wrong with its bytes.
  func finding(in file: FD, at position: SealedPosition) -> Finding?

  /// What is wrong with the target of a link.
  func finding(target: UnsafeRawBufferPointer, at position: SealedPosition) -> Finding?

  /// The path from the sealed directory, for messages.
  func path(of position: SealedPosition) -> String
}

extension SealedContents {
  package var isSandboxed: Bool { false }
}
