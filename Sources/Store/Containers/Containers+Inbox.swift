// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Policy

extension Containers {
  /// Opens the Inbox in an app's Documents, which the first delivery makes.
  package func openInbox(in documents: FD, path: String) throws(StoreError) -> OwnedFD {
    let owner = Owner(try explaining("examine", path) { () throws(Errno) in try documents.status() })
    try requireDirectory(ContainerLayout.inboxName, in: documents, owner, path)
    return try explaining("open", path) { () throws(Errno) in
      try documents.openDirectory(ContainerLayout.inboxName)
    }
  }
}
