// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Policy

extension Containers {
  /// Opens the Inbox in an app's Documents, which the first delivery makes; `place` is its path in the tree.
  package func openInbox(in documents: FD, at place: String) throws(StoreError) -> OwnedFD {
    let path = "\(path)/\(place)"
    let owner = Owner(try explaining("examine", path) { () throws(Errno) in try documents.status() })
    // It is made on the filesystem of the home, which need not be the store's.
    try forHomeThatIsThere(place).requireDirectory(ContainerLayout.inboxName, in: documents, owner, path)
    let inbox = try explaining("open", path) { () throws(Errno) in
      try documents.openDirectory(ContainerLayout.inboxName)
    }
    try requireNoFlags(against: [.addFile, .addSubdirectory], on: inbox.fd, at: path)
    return inbox
  }
}
