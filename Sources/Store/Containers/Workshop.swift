// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import LinuxIO

/// Does something that gives a name in a directory, or takes one away, and tells whoever looks at that
/// directory.
package typealias VisibleChange =
  @Sendable (_ directory: FD, _ change: () throws(Errno) -> Void) throws(Errno) -> Void

/// The change of a directory that nobody looks at.
package let changeUnseen: VisibleChange = { (_, change) throws(Errno) in try change() }

/// A directory that nobody but us can change, where things are made before they are put, whole, where others
/// see them.
///
/// So it makes no difference what the owner of that place does meanwhile: no name of theirs is opened,
/// nothing of theirs gets another owner.
package struct Workshop: Sendable {
  /// How the names of copies begin that users make among their containers.
  package static let importPrefix = ".import-"
  package static let deliveryPrefix = ".deliver-"
  static let ownPrefixes = [importPrefix, deliveryPrefix]

  package let directory: FD
  /// What the names of our things begin with; the number of the process follows.
  package let prefix: String
  let visibly: VisibleChange

  package init(directory: FD, prefix: String, visibly: @escaping VisibleChange = changeUnseen) {
    self.directory = directory
    self.prefix = prefix
    self.visibly = visibly
  }

  /// A name that nothing has.
  package func newName() -> String { "\(prefix)\(ProcessID.own)-\(UUIDText.random())" }

  /// Makes something and gives it its name in `parent`; with no flags it replaces what has that name.
  package func put(
    _ name: String, in parent: FD, flags: UInt32 = UInt32(CLX_RENAME_NOREPLACE),
    _ make: (FD, Name) throws(Errno) -> Void
  ) throws(Errno) {
    let temporary = newName()
    do throws(Errno) {
      try temporary.withName { (temporary) throws(Errno) in try make(directory, temporary) }
      try visibly(parent) { () throws(Errno) in
        try directory.rename(temporary, to: parent, name, flags: flags)
      }
      try parent.synchronize(dataOnly: false)
    } catch {
      try? directory.removeTree(temporary)
      throw error
    }
  }

  /// Makes something that changes places with what others see, in one step; that is called `taken` then.
  package func exchange(
    _ name: String, in parent: FD, taking taken: String, _ make: (FD, Name) throws(Errno) -> Void
  ) throws(Errno) {
    try taken.withName { (taken) throws(Errno) in try make(directory, taken) }
    try visibly(parent) { () throws(Errno) in
      try directory.rename(taken, to: parent, name, flags: UInt32(CLX_RENAME_EXCHANGE))
    }
    try parent.synchronize(dataOnly: false)
  }

  /// Takes something from where others see it, in one step.
  package func take(_ name: some NameText, from parent: FD, as taken: some NameText) throws(Errno) {
    try visibly(parent) { () throws(Errno) in
      try parent.rename(name, to: directory, taken, flags: UInt32(CLX_RENAME_NOREPLACE))
    }
    try parent.synchronize(dataOnly: false)
  }

  /// Gives something that was taken a name where others see it.
  package func give(_ taken: some NameText, to parent: FD, as name: some NameText) throws(Errno) {
    try visibly(parent) { () throws(Errno) in
      try directory.rename(taken, to: parent, name, flags: UInt32(CLX_RENAME_NOREPLACE))
    }
    try parent.synchronize(dataOnly: false)
  }

  /// Removes one name, of something that is no directory.
  package func remove(_ name: some NameText, from parent: FD) throws(Errno) {
    try visibly(parent) { () throws(Errno) in try parent.remove(name, directory: false) }
  }

  /// Removes what processes left behind that are no more; a process that serves others does not wait for it.
  package func clear(_ removal: @escaping Leftovers.Removal) throws(Errno) {
    let listing = try directory.reopened(O_RDONLY | O_DIRECTORY)
    try Leftovers.ofProcess.remove(try left(in: listing.fd), from: listing, removal)
  }

  /// The names of what processes left behind that are no more.
  package func left() throws(Errno) -> [[UInt8]] {
    let listing = try directory.reopened(O_RDONLY | O_DIRECTORY)
    return try left(in: listing.fd)
  }

  private func left(in listing: FD) throws(Errno) -> [[UInt8]] {
    try listing.entries().map(\.name).filter { name in
      guard name.starts(with: Array(prefix.utf8)) else { return false }
      let rest = String(decoding: name.dropFirst(prefix.utf8.count), as: UTF8.self)
      return Int32(rest.prefix { $0 != "-" }).map(ProcessID.isGone) == true
    }
  }
}
