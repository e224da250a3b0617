// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A name as text, as bytes, or as the kernel wants it; the latter is what it is lent as.
package protocol NameText {
  func withName<Result: ~Copyable>(_ body: (Name) throws(Errno) -> Result) throws(Errno) -> Result
}

extension String: NameText {}
extension [UInt8]: NameText {}

extension Name: NameText {
  package func withName<Result: ~Copyable>(
    _ body: (Name) throws(Errno) -> Result
  ) throws(Errno) -> Result { try body(self) }
}

// The calls that most often take such a name, and nothing else of it.

extension FD {
  package func openDirectory(_ name: some NameText) throws(Errno) -> OwnedFD {
    try name.withName { (name) throws(Errno) in try openDirectory(name) }
  }

  package func openDirectoryToExamine(_ name: some NameText) throws(Errno) -> OwnedFD {
    try name.withName { (name) throws(Errno) in try openDirectoryToExamine(name) }
  }

  package func openToExamine(_ name: some NameText, sparingTime: Bool = false) throws(Errno) -> OwnedFD {
    try name.withName { (name) throws(Errno) in try openToExamine(name, sparingTime: sparingTime) }
  }

  package func open(_ name: some NameText, _ flags: Int32, mode: FileMode = 0) throws(Errno) -> OwnedFD {
    try name.withName { (name) throws(Errno) in try open(name, flags, mode: mode) }
  }

  package func openWithoutLinks(_ path: some NameText, _ flags: Int32) throws(Errno) -> OwnedFD {
    try path.withName { (path) throws(Errno) in try openWithoutLinks(path, flags) }
  }

  package func openFollowing(_ path: some NameText, _ flags: Int32) throws(Errno) -> OwnedFD {
    try path.withName { (path) throws(Errno) in try openFollowing(path, flags) }
  }

  package func child(_ name: some NameText) throws(Errno) -> OwnedFD {
    try name.withName { (name) throws(Errno) in try child(name) }
  }

  package func status(of name: some NameText) throws(Errno) -> FileStatus {
    try name.withName { (name) throws(Errno) in try status(of: name) }
  }

  package func makeDirectory(_ name: some NameText, mode: FileMode) throws(Errno) {
    try name.withName { (name) throws(Errno) in try makeDirectory(name, mode: mode) }
  }

  package func makeSymlink(_ name: some NameText, to target: some NameText) throws(Errno) {
    try name.withName { (name) throws(Errno) in
      try target.withName { (target) throws(Errno) in try makeSymlink(name, to: target.bytes) }
    }
  }

  package func linkTarget(of name: some NameText) throws(Errno) -> [UInt8] {
    try name.withName { (name) throws(Errno) in try linkTarget(of: name) }
  }

  package func remove(_ name: some NameText, directory: Bool) throws(Errno) {
    try name.withName { (name) throws(Errno) in try remove(name, directory: directory) }
  }

  package func removeTree(_ name: some NameText) throws(Errno) {
    try name.withName { (name) throws(Errno) in try removeTree(name) }
  }

  package func rename(
    _ name: some NameText, to parent: FD, _ newName: some NameText, flags: UInt32
  ) throws(Errno) {
    try name.withName { (name) throws(Errno) in
      try newName.withName { (newName) throws(Errno) in
        try rename(name, to: parent, newName, flags: flags)
      }
    }
  }
}
