// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// A directory of trusted roots: one file each, `FINGERPRINT.pem`.
package struct TrustDirectory {
  private let directory: FD

  private static let suffix = ".pem"
  private static let maximumFileSize = 64 << 10

  /// Works in a directory that its owner keeps open for reading.
  package init(_ directory: FD) { self.directory = directory }

  /// The roots, sorted by name.
  ///
  /// A file that can't be read is no reason to trust fewer roots in silence: it is an error.
  package func list() throws(IdentityFailure) -> [Certificate] {
    let directory = directory
    let entries = try explaining("list the trusted roots") { () throws(Errno) in try directory.entries() }
    var found: [Certificate] = []
    for entry in entries {
      guard let file = String(validating: entry.name, as: UTF8.self), file.hasSuffix(Self.suffix),
        !file.hasPrefix(".")
      else { continue }
      let text: [UInt8]
      do throws(Errno) { text = try directory.contents(of: file, limit: Self.maximumFileSize) } catch {
        guard [.EINVAL, .ELOOP].contains(error) else {
          throw .failed(doing: "read the trusted root \(file)", errno: error)
        }
        throw .irregular(file)
      }
      let certificate = try Self.only(in: text)
      guard file == certificate.fingerprintText + Self.suffix else {
        throw .damaged(
          file, "it contains the certificate \(certificate.fingerprintText); rename or remove it")
      }
      found.append(certificate)
    }
    return found.inOrder { ($0.name, $0.fingerprintText) < ($1.name, $1.fingerprintText) }
  }

  /// The judge of signatures who trusts these roots.
  package func trust() throws(IdentityFailure) -> Trust { Trust(roots: try list()) }

  /// Trusts a root from now on.
  ///
  /// `time` is now, in seconds since 1970.
  @discardableResult
  package func add(_ pem: [UInt8], at time: Int64) throws(IdentityFailure) -> Certificate {
    let certificate = try Self.only(in: pem)
    try Self.checkRoot(certificate, at: time)
    let file = certificate.fingerprintText + Self.suffix
    let directory = directory
    let isThere = try explaining("look for \(file)") { () throws(Errno) in
      do throws(Errno) {
        _ = try directory.status(of: file)
        return true
      } catch {
        guard error == .ENOENT else { throw error }
        return false
      }
    }
    guard !isThere else { throw .alreadyTrusted(certificate.name) }
    // Not the text that was given: what else is in it is no business of ours.
    let text = try translating { () throws(CryptoFailure) in try certificate.pem() }
    try explaining("write \(file)") { () throws(Errno) in
      try directory.replaceContents(of: file, with: text, mode: 0o644)
    }
    return certificate
  }

  /// Trusts a root no more; it is named by its fingerprint, eight or more of its first digits, or its name.
  @discardableResult
  package func remove(_ key: String) throws(IdentityFailure) -> Certificate {
    let digits = key.lowercased().filter { $0 != ":" }
    let isFingerprint = digits.utf8.count >= 8 && digits.allSatisfy(\.isHexDigit)
    let matches = try list().filter {
      $0.name == key || isFingerprint && $0.fingerprintText.hasPrefix(digits)
    }
    guard let match = matches.first else { throw .notTrusted(key) }
    guard matches.count == 1 else { throw .ambiguous(key) }
    let directory = directory
    try explaining("remove the trusted root '\(match.name)'") { () throws(Errno) in
      try directory.remove(match.fingerprintText + Self.suffix, directory: false)
      try directory.synchronize(dataOnly: false)
    }
    return match
  }

  /// The root that a text is the certificate of.
  package func root(_ pem: [UInt8]) throws(IdentityFailure) -> Certificate { try Self.only(in: pem) }

  /// The one certificate of a text.
  private static func only(in pem: [UInt8]) throws(IdentityFailure) -> Certificate {
    guard !String(decoding: pem, as: UTF8.self).includes("PRIVATE KEY-----") else { throw .hasPrivateKey }
    let certificates: [Certificate]
    do throws(CryptoFailure) { certificates = try Certificate.all(inPEM: pem) } catch {
      throw .crypto(error.description)
    }
    guard certificates.count == 1, let certificate = certificates.first else { throw .notOneCertificate }
    return certificate
  }

  private static func checkRoot(_ certificate: Certificate, at time: Int64) throws(IdentityFailure) {
    func refuse(_ reason: String) -> IdentityFailure { .notARoot(certificate.name, reason) }
    guard certificate.isAuthority else {
      throw refuse("it is not a CA certificate; use the last certificate of the chain, the root")
    }
    guard certificate.isForCode else {
      throw refuse("it is a CA that does not issue certificates for code signing")
    }
    guard time <= certificate.validUntil else {
      throw refuse("it expired on \(calendarDay(certificate.validUntil))")
    }
    guard time >= certificate.validFrom else {
      throw refuse("it is not valid before \(calendarDay(certificate.validFrom))")
    }
    // Nobody looks at a root's own signature later.
    let isSound = try translating { () throws(CryptoFailure) in try certificate.isSoundRoot() }
    guard isSound else { throw refuse("it is not self-signed, or its key or signature is weak") }
  }
}
