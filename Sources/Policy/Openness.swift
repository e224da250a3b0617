// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// What may be cached for all: questions about an object that hold whoever asks.

/// Whether everyone may walk through a directory, so that what lies in it may be cached for all.
package func isSearchableByAll(_ object: Object) -> Bool {
  object.mode & 0o111 == 0o111 && !object.mayDeny(.search)
}

/// Whether some caller may be refused to see the attributes of an object, so that they may not be cached for
/// all.
///
/// Without a list nobody is: no mode bit stands for it.
package func mayRefuseAttributes(_ object: Object) -> Bool {
  object.mayDeny([.readAttributes, .readSecurity])
}

extension Object {
  fileprivate func mayDeny(_ rights: Rights) -> Bool {
    switch acl {
    case .none: false
    case .damaged: true
    case .list(let list): list.mayDeny(rights)
    }
  }
}
