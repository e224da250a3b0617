// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Policy

extension AccountNames {
  /// The users and groups of this machine, looked up again each time, so that changes to them count at once.
  package static let ofThisMachine = AccountNames(
    userName: { Account.numbered($0)?.name },
    groupName: { AccountGroup.numbered($0)?.name },
    uid: { Account.named($0)?.uid },
    gid: { AccountGroup.named($0)?.gid },
    isOwnDomain: { isOwn(domain: $0) })

  /// Those that the machine keeps itself: nobody is asked who may let us wait.
  ///
  /// For whoever serves the requests of all. Accounts of a directory service go by number there.
  package static let ofThisMachineAlone = AccountNames(
    userName: { LocalAccounts.users.name(of: $0) },
    groupName: { LocalAccounts.groups.name(of: $0) },
    uid: { LocalAccounts.users.id(of: $0) },
    gid: { LocalAccounts.groups.id(of: $0) },
    isOwnDomain: { isOwn(domain: $0) })

  /// Whether accounts of `domain` are those of this machine.
  ///
  /// The rule of NFS's idmapd where nothing is configured: the domain of the machine's name, or
  /// `localdomain`.
  private static func isOwn(domain: String) -> Bool {
    let domain = domain.lowercased()
    if domain == "localdomain" || domain == "localhost" { return true }
    guard let host = hostName()?.lowercased(), let dot = host.firstIndex(of: ".") else { return false }
    return !domain.isEmpty && host[host.index(after: dot)...] == domain
  }
}
