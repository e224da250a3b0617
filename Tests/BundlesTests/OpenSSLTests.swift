// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Our signatures and those of the openssl command are the same thing.
@Suite final class OpenSSLTests {
  private let directory: TemporaryDirectory
  private let opened: OwnedFD
  private let now = Int64(time(nil))

  init() throws {
    directory = try TemporaryDirectory()
    opened = try directory.open()
  }

  private func write(_ bytes: [UInt8], to name: String) throws {
    try opened.fd.replaceContents(of: name, with: bytes, mode: 0o600)
  }

  private func read(_ name: String) throws -> [UInt8] { try opened.fd.contents(of: name, limit: 1 << 20) }

  @discardableResult
  private func openssl(_ words: String...) throws -> ProgramResult {
    try Program.run(["openssl"] + words, in: directory.path)
  }

  /// The line that Documentation/SIGNING.md gives.
  private func verify() throws -> ProgramResult {
    try openssl(
      "cms", "-verify", "-binary", "-inform", "DER", "-in", "CodeSignature", "-content", "CodeDirectory",
      "-CAfile",
      "root.pem", "-purpose", "any", "-out", "/dev/null")
  }

  @Test func opensslAcceptsWhatWeSign() throws {
    try directory.makeDirectory("keys", mode: 0o700)
    let keys = try TemporaryDirectory.open(directory.appending("keys"))
    let identity = try IdentityDirectory(keys.fd).make("Jo", team: "TEAM1", at: now)
    let content = CodeDirectory(CodeDirectoryTests.parts, team: identity.team).bytes
    try write(content, to: "CodeDirectory")
    try write(identity.signature(of: content), to: "CodeSignature")
    try write(identity.chain[1].pem(), to: "root.pem")
    let accepted = try verify()
    #expect(accepted.status == 0, "\(accepted.errors)")

    try write(content.dropLast() + [0], to: "CodeDirectory")
    #expect(try verify().ending == Ending(4))
    try write(content, to: "CodeDirectory")
    try write(TestAuthority().certificate.pem(), to: "root.pem")
    #expect(try verify().ending == Ending(4))
  }

  /// Options of `openssl cms -sign` on our key: what comes out of them, and what is found.
  static let forms: [(options: [String], word: String?)] = [
    (["-outform", "DER"], nil),
    (["-outform", "DER", "-nosmimecap"], nil),
    (["-outform", "DER", "-md", "sha256", "-certfile", "root.pem"], nil),
    (["-outform", "DER", "-nocerts"], "no certificates"),
    (["-outform", "DER", "-noattr"], "no signed attributes"),
    (["-outform", "DER", "-keyid"], "unknown version"),
    (["-outform", "DER", "-nodetach"], "not a detached signature"),
    (["-outform", "DER", "-md", "sha512"], "a digest other than SHA-256"),
    (["-outform", "DER", "-signer", "rsa.pem", "-inkey", "rsa.key"], "not have exactly one signer"),
    (["-outform", "DER", "-certfile", "rsa.pem"], "not in the signer's chain"),
    (["-outform", "DER", "-econtent_type", "pkcs7-digestData"], "unknown version"),
    (["-outform", "DER", "-receipt_request_to", "a@b"], nil),
    (["-outform", "PEM"], "not DER"),
    (["-outform", "SMIME"], "not DER"),
    (["-outform", "DER", "-stream"], "not DER"),
  ]

  @Test(arguments: forms.indices)
  func onlyOneShapeOfSignatureIsTaken(index: Int) throws {
    let (options, word) = Self.forms[index]
    let root = try TestAuthority { $0.validUntil = testTime + 3650 * day }
    let signer = try root.signer { $0.validUntil = testTime + 3650 * day }
    try write(signer.key.pem(), to: "leaf.key")
    try write(signer.chain[0].pem(), to: "leaf.pem")
    try write(root.certificate.pem(), to: "root.pem")
    if options.contains("rsa.pem") {
      try openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-keyout", "rsa.key", "-out", "rsa.pem", "-subj",
        "/CN=A")
    }
    let content = Array("content".utf8)
    try write(content, to: "content")
    let result = try Program.run(
      ["openssl", "cms", "-sign", "-binary", "-in", "content", "-signer", "leaf.pem", "-inkey", "leaf.key"]
        + options + ["-out", "signature"], in: directory.path)
    try #require(result.status == 0, "\(result.errors)")
    let signature = try read("signature")
    let found = finding { _ = try root.trust.signer(of: content, by: signature, at: testTime) }
    if let word {
      #expect(found?.kind == .malformedSignature)
      #expect(found?.detail.contains(word) == true, "\(found?.message ?? "nothing")")
    } else {
      #expect(found == nil, "\(found?.message ?? "")")
    }
  }

  /// A signer whose key is another than ECDSA on P-256.
  @Test(arguments: ["rsa:2048", "ec:P-384"])
  func otherKeysAreRefused(kind: String) throws {
    let options = kind == "rsa:2048" ? ["rsa:2048"] : ["ec", "-pkeyopt", "ec_paramgen_curve:P-384"]
    let result = try Program.run(
      ["openssl", "req", "-x509", "-newkey"] + options + [
        "-noenc", "-keyout", "root.key", "-out", "root.pem", "-subj", "/CN=A/OU=T", "-addext",
        "extendedKeyUsage=codeSigning",
      ], in: directory.path)
    try #require(result.status == 0, "\(result.errors)")
    let content = Array("content".utf8)
    try write(content, to: "content")
    let signed = try openssl(
      "cms", "-sign", "-binary", "-in", "content", "-signer", "root.pem", "-inkey", "root.key", "-md",
      "sha256",
      "-outform", "DER", "-out", "signature")
    try #require(signed.status == 0, "\(signed.errors)")
    let trust = Trust(roots: try Certificate.all(inPEM: read("root.pem")))
    let found = finding { _ = try trust.signer(of: content, by: try read("signature"), at: now + 60) }
    #expect(found?.kind == (kind == "rsa:2048" ? .malformedSignature : .wrongPurpose))
  }

  @Test func handMadeSignatureIsAccepted() throws {
    try HandMadeBundle.make(in: directory)
    let base = try TemporaryDirectory.open(directory.appending("Hand.app/Contents/_CodeSignature"))
    let content = try base.fd.contents(of: "CodeDirectory", limit: 1 << 20)
    let signature = try base.fd.contents(of: "CodeSignature", limit: 1 << 20)
    let roots = TrustDirectory(opened.fd)
    let text = try read("root.pem")
    for name in ["root.pem", "leaf.pem"] {
      try name.withName { (name) throws(Errno) in try opened.fd.remove(name, directory: false) }
    }
    try roots.add(text, at: now + 60)
    let signer = try roots.trust().signer(of: content, by: signature, at: now + 60)
    #expect(signer.team == "HAND000001")
    #expect(signer.chain.map(\.name) == ["Hand", "Hand Root"])
    let sealed = try CodeDirectory(content)
    #expect(sealed.team == "HAND000001")
    let bundle = try CodeBundle(
      in: TemporaryDirectory.open(directory.appending("Hand.app")), name: "Hand.app")
    #expect(try sealed.differences(from: SealedParts(of: bundle)) == [])
    // What we read is what we would write.
    #expect(sealed.bytes == content)
  }
}
