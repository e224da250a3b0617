// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Policy

/// A directory of identities: one file each, `NAME.pem`, with the key, its certificate and the chain to the
/// root.
///
/// `authority.pem` is the root that all identities made here descend from, with its key. Whoever trusts it
/// trusts all of them, and their successors. Each file comes into being whole, with mode 0600.
package struct IdentityDirectory {
  private let directory: FD

  private static let suffix = ".pem"
  private static let authorityName = "authority"
  private static let maximumFileSize = 1 << 20
  private static let year: Int64 = 365 * 86400
  /// A root must outlive what it has issued, and replacing it means to be trusted again by everyone.
  private static let authorityYears: Int64 = 20
  private static let identityYears: Int64 = 5
  /// The clock of whoever verifies may be behind.
  private static let clockTolerance: Int64 = 3600

  /// Works in a directory that its owner keeps open for reading; it should be 0700.
  package init(_ directory: FD) { self.directory = directory }

  /// Makes an identity for a team, and the root for all of them if it is the first.
  ///
  /// Without a team it is of the root's own, whose name nobody else has. `time` is now, in seconds since
  /// 1970.
  package func make(_ name: String, team: String?, at time: Int64) throws(IdentityFailure) -> Identity {
    guard Identity.isAllowed(name: name), name != Self.authorityName else { throw .badName(name) }
    if let team, !Identity.isAllowed(team: team) { throw .badTeam(team) }
    guard try !isThere(name) else { throw .exists(name) }
    let authority = try authority(at: time)
    let team = team ?? authority.certificate.ownTeam
    let key = try translating { () throws(CryptoFailure) in try PrivateKey.generated() }
    let plan = CertificatePlan.signer(
      name, team: team, from: time - Self.clockTolerance,
      until: min(time + Self.identityYears * Self.year, authority.certificate.validUntil))
    let leaf: Certificate
    do throws(CryptoFailure) {
      leaf = try plan.issued(for: key, by: authority.certificate, with: authority.key)
    } catch {
      throw .crypto(error.description)
    }
    let identity = try Identity(name: name, KeyAndChain(key, [leaf, authority.certificate]))
    try add(identity)
    return identity
  }

  /// Keeps an identity that was made elsewhere.
  package func add(_ identity: borrowing Identity) throws(IdentityFailure) {
    guard identity.name != Self.authorityName else { throw .badName(identity.name) }
    let text: [UInt8]
    do throws(CryptoFailure) { text = try identity.pem() } catch { throw .crypto(error.description) }
    guard try create(identity.name, text) else { throw .exists(identity.name) }
  }

  /// The identity of a name, ready to sign.
  package func identity(named name: String) throws(IdentityFailure) -> Identity {
    guard Identity.isAllowed(name: name), name != Self.authorityName else { throw .badName(name) }
    let text = try contents(of: name)
    return try Identity.reading(pem: text, name: name)
  }

  /// What there is, sorted by name; a file that can't be used is told with its reason.
  package func list() throws(IdentityFailure) -> [(
    name: String, chain: Result<[Certificate], IdentityFailure>
  )] {
    let directory = directory
    let entries = try explaining("list the identities") { () throws(Errno) in try directory.entries() }
    var found: [(name: String, chain: Result<[Certificate], IdentityFailure>)] = []
    for entry in entries {
      guard let file = String(validating: entry.name, as: UTF8.self), file.hasSuffix(Self.suffix) else {
        continue
      }
      let name = String(file.dropLast(Self.suffix.count))
      guard Identity.isAllowed(name: name), name != Self.authorityName else { continue }
      do throws(IdentityFailure) {
        let identity = try identity(named: name)
        found.append((name, .success(identity.chain)))
      } catch {
        found.append((name, .failure(error)))
      }
    }
    return found.inOrder { $0.name < $1.name }
  }

  /// Forgets an identity; what it has signed stays signed.
  package func remove(_ name: String) throws(IdentityFailure) {
    guard Identity.isAllowed(name: name), name != Self.authorityName else { throw .badName(name) }
    guard try isThere(name) else { throw .notThere(name) }
    let directory = directory
    try explaining("remove the identity '\(name)'") { () throws(Errno) in
      try directory.remove(name + Self.suffix, directory: false)
      try directory.synchronize(dataOnly: false)
    }
  }

  /// The root of the identities made here, with its key; made if there is none, or none that is still good.
  private func authority(at time: Int64) throws(IdentityFailure) -> Authority {
    if try !isThere(Self.authorityName) {
      let key = try translating { () throws(CryptoFailure) in try PrivateKey.generated() }
      let text: [UInt8]
      do throws(CryptoFailure) {
        // A name of its own, so that people can tell one root from another.
        let number = try Digest.whole(key.pem()).prefix(4).asHexadecimal
        let plan = CertificatePlan.authority(
          "Insula Development \(number)", from: time - Self.clockTolerance,
          until: time + Self.authorityYears * Self.year)
        text = try key.pem() + plan.issued(for: key, by: nil, with: key).pem()
      } catch {
        throw .crypto(error.description)
      }
      // Where someone else was faster, his is as good.
      _ = try create(Self.authorityName, text)
    }
    let found = try parse(try contents(of: Self.authorityName), Self.authorityName)
    guard let certificate = found.chain.first, certificate.isAuthority, certificate.isForCode,
      certificate.isValid(at: time)
    else {
      throw .damaged(
        Self.authorityName,
        "it is not a root that is valid now; if you move authority.pem away, a new one is created")
    }
    return Authority(certificate: certificate, found)
  }

  private struct Authority: ~Copyable {
    let certificate: Certificate
    let key: PrivateKey

    init(certificate: Certificate, _ parts: consuming KeyAndChain) {
      self.certificate = certificate
      key = parts.key
    }
  }
}

extension Certificate {
  /// A name for a team that only who has this root's key comes by: ten letters and digits, as Apple's have.
  fileprivate var ownTeam: String {
    let characters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    return String(fingerprint.prefix(10).map { characters[Int($0 % 32)] })
  }
}

// Files.
extension IdentityDirectory {
  private func isThere(_ name: String) throws(IdentityFailure) -> Bool {
    let directory = directory
    do throws(Errno) {
      _ = try directory.status(of: name + Self.suffix)
      return true
    } catch {
      guard error == .ENOENT else { throw .failed(doing: "look for '\(name)'", errno: error) }
      return false
    }
  }

  /// A file's text, if it is its owner's alone.
  private func contents(of name: String) throws(IdentityFailure) -> [UInt8] {
    let directory = directory
    do throws(Errno) {
      let file = try (name + Self.suffix).withName { (file) throws(Errno) in
        // O_NONBLOCK: a pipe that someone put in the file's place must not stop us.
        try directory.open(file, O_RDONLY | O_NONBLOCK)
      }
      let status = try file.fd.status()
      if !status.isRegular { throw .EINVAL }
      if status.permissions & 0o077 == 0 { return try file.fd.readToEnd(limit: Self.maximumFileSize) }
    } catch {
      switch error {
      case .ENOENT: throw .notThere(name)
      case .EINVAL, .ELOOP: throw .irregular(name)
      default: throw .failed(doing: "read the identity '\(name)'", errno: error)
      }
    }
    throw .openToOthers(name)
  }

  private func parse(_ text: [UInt8], _ name: String) throws(IdentityFailure) -> KeyAndChain {
    do throws(CryptoFailure) {
      return try KeyAndChain.reading(pem: text)
    } catch {
      throw .damaged(name, error.description)
    }
  }

  /// Makes a file that was not there, whole or not at all; false if one is there.
  private func create(_ name: String, _ text: [UInt8]) throws(IdentityFailure) -> Bool {
    let directory = directory
    do throws(Errno) {
      // A name beside that nobody else has, of whatever process, so that two that make the same identity each
      // write into a file of their own, and EEXIST speaks of the identity.
      try ".\(name).\(UInt64.random(in: 0 ... .max)).new".withName { (beside) throws(Errno) in
        let file = try directory.open(beside, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
        do throws(Errno) {
          try file.fd.writeAll(text)
          try file.fd.synchronize(dataOnly: false)
          // A second name is refused where one is, on every filesystem; not all of them rename so.
          try (name + Self.suffix).withName { (name) throws(Errno) in
            try file.fd.link(into: directory, as: name)
          }
        } catch {
          try? directory.remove(beside, directory: false)
          throw error
        }
        try directory.remove(beside, directory: false)
      }
      try directory.synchronize(dataOnly: false)
      return true
    } catch {
      if error == .EEXIST { return false }
      throw .failed(doing: "write the identity '\(name)'", errno: error)
    }
  }
}
