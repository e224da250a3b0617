// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

@Suite final class TrustDirectoryTests {
  private let directory: TemporaryDirectory
  private let opened: OwnedFD
  private var trusted: TrustDirectory { TrustDirectory(opened.fd) }

  init() throws {
    directory = try TemporaryDirectory()
    opened = try directory.open()
  }

  @Test func rootIsTrustedUntilItIsRemoved() throws {
    let root = try TestAuthority()
    #expect(try trusted.list().isEmpty)
    let added = try trusted.add(root.certificate.pem(), at: testTime)
    #expect(added == root.certificate)
    #expect(try trusted.list() == [root.certificate])
    #expect(try trusted.trust().roots == [root.certificate])
    #expect(try directory.names() == ["\(root.certificate.fingerprintText).pem"])
    #expect(throws: IdentityFailure.alreadyTrusted("Test Root")) {
      try trusted.add(root.certificate.pem(), at: testTime)
    }
    try trusted.remove("Test Root")
    #expect(try trusted.list().isEmpty)
    #expect(throws: IdentityFailure.notTrusted("Test Root")) { try trusted.remove("Test Root") }
  }

  @Test func namesakesAreToldApartByFingerprint() throws {
    let one = try TestAuthority()
    let two = try TestAuthority()
    try trusted.add(one.certificate.pem(), at: testTime)
    try trusted.add(two.certificate.pem(), at: testTime)
    #expect(throws: IdentityFailure.ambiguous("Test Root")) { try trusted.remove("Test Root") }
    // As openssl prints it, in capitals and with colons.
    let start = one.certificate.fingerprint.prefix(6).map { [$0].asHexadecimal.uppercased() }
    #expect(try trusted.remove(start.joined(separator: ":")) == one.certificate)
    #expect(try trusted.list() == [two.certificate])
    // A few digits could be anyone's.
    #expect(throws: IdentityFailure.self) {
      try trusted.remove(String(two.certificate.fingerprintText.prefix(7)))
    }
  }

  @Test func onlyFilesAreRead() throws {
    mkfifo(directory.appending("pipe.pem"), 0o600)
    #expect(throws: IdentityFailure.irregular("pipe.pem")) { _ = try trusted.list() }
    unlink(directory.appending("pipe.pem"))
    symlink(try directory.write("no root", to: "elsewhere"), directory.appending("link.pem"))
    #expect(throws: IdentityFailure.irregular("link.pem")) { _ = try trusted.list() }
  }

  enum Refused: CaseIterable {
    case signer, otherPurpose, expired, future, signedByOther, weak, noCertificateSigning
  }

  @Test(arguments: Refused.allCases)
  func whatIsNoRootIsRefused(refused: Refused) throws {
    let root = try TestAuthority {
      switch refused {
      case .otherPurpose: $0.extendedKeyUsage = "serverAuth"
      case .expired: $0.validUntil = testTime - 1
      case .future: $0.validFrom = testTime + 1
      case .noCertificateSigning: $0.keyUsage = "critical,digitalSignature"
      case .signedByOther: $0.basicConstraints = "critical,CA:TRUE"
      default: break
      }
    }
    var pem = try root.certificate.pem()
    if refused == .signer { pem = try root.signer().chain[0].pem() }
    if refused == .signedByOther { pem = try root.intermediate().certificate.pem() }
    if refused == .weak {
      let result = try Program.run([
        "openssl", "req", "-x509", "-newkey", "rsa:1024", "-noenc", "-keyout", "/dev/null", "-subj",
        "/CN=Weak",
        "-not_before", "20260101000000Z", "-not_after", "20280101000000Z",
      ])
      // Older programs know no such options, and make one that is valid from now.
      let now =
        result.status == 0
        ? result
        : try Program.run([
          "openssl", "req", "-x509", "-newkey", "rsa:1024", "-noenc", "-keyout", "/dev/null", "-subj",
          "/CN=Weak",
          "-days", "3650",
        ])
      #expect(now.status == 0, "\(now.errors)")
      pem = Array(now.output.utf8)
    }
    let word =
      switch refused {
      case .signer, .noCertificateSigning: "not a CA certificate"
      case .otherPurpose: "does not issue certificates for code signing"
      case .expired: "expired on 2027-01-15"
      case .future: "not valid before 2027-01-15"
      case .signedByOther, .weak: "not self-signed, or its key or signature is weak"
      }
    let failure = #expect(throws: IdentityFailure.self) { try trusted.add(pem, at: testTime) }
    #expect(failure?.description.contains(word) == true, "\(String(describing: failure))")
    #expect(try directory.names().isEmpty)
  }

  @Test func privateKeysAreRefused() throws {
    let root = try TestAuthority()
    let pem = try root.certificate.pem() + root.key.pem()
    #expect(throws: IdentityFailure.hasPrivateKey) { try trusted.add(pem, at: testTime) }
    #expect(try directory.names().isEmpty)
  }

  @Test func exactlyOneCertificateIsTaken() throws {
    let pem = try TestAuthority().certificate.pem()
    #expect(throws: IdentityFailure.notOneCertificate) { try trusted.add(pem + pem, at: testTime) }
    #expect(throws: IdentityFailure.notOneCertificate) { try trusted.add([], at: testTime) }
    #expect(throws: IdentityFailure.notOneCertificate) { try trusted.add(Array("text".utf8), at: testTime) }
    #expect(throws: IdentityFailure.self) { try trusted.add(Array(pem.dropLast(40)), at: testTime) }
  }

  /// Fewer roots than someone believes to trust are no better than more.
  @Test func damagedOrStrangeFilesAreErrors() throws {
    let root = try TestAuthority()
    try trusted.add(root.certificate.pem(), at: testTime)
    try directory.write("no matter", to: "README")
    #expect(try trusted.list().count == 1)
    try directory.write(String(decoding: try root.certificate.pem(), as: UTF8.self), to: "other.pem")
    #expect(throws: IdentityFailure.self) { try trusted.trust() }
    try directory.write("", to: "other.pem")
    #expect(throws: IdentityFailure.self) { try trusted.trust() }
  }
}
