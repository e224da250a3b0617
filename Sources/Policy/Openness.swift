// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Questions about an object whose answer is the same for all callers, so that it may be cached for all.

/// Whether everyone may walk through a directory, so that what lies in it may be cached for all.
package func isSearchableByAll(_ object: Object) -> Bool {
  object.mode & 0o111 == 0o111 && !object.mayDeny(.search)
}

/// Whether some caller may be refused to see the attributes of an object, so that they may not be cached for
/// all.
///
/// Without an ACL nobody is refused: no mode bit forbids it.
package func mayRefuseAttributes(_ object: Object) -> Bool {
  object.mayDeny([.readAttributes, .readSecurity])
}

extension Object {
  fileprivate func mayDeny(_ rights: Rights) -> Bool {
    switch acl {
    case .none: false
    case .damaged: true
    case .acl(let acl): acl.mayDeny(rights)
    }
  }
}
