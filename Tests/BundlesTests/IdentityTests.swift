// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite final class IdentityTests {
  private let directory: TemporaryDirectory
  private let opened: OwnedFD
  private var identities: IdentityDirectory { IdentityDirectory(opened.fd) }

  init() throws {
    directory = try TemporaryDirectory(mode: 0o700)
    opened = try directory.open()
  }

  @Test func identitySignsAndItsRootIsTrusted() throws {
    let made = try identities.make("Jo Doe", team: "TEAM-1", at: testTime)
    #expect(made.team == "TEAM-1")
    let kept = try identities.identity(named: "Jo Doe")
    #expect(kept.chain == made.chain)
    let content = Array("text".utf8)
    let trust = Trust(roots: [kept.chain[1]])
    let signer = try trust.signer(of: content, by: kept.signature(of: content), at: testTime)
    #expect(signer.name == "Jo Doe")
    #expect(signer.team == "TEAM-1")
  }

  @Test func identitiesOfADirectoryShareOneRoot() throws {
    let one = try identities.make("one", team: "T", at: testTime)
    let two = try identities.make("two", team: "U", at: testTime)
    #expect(one.chain[1] == two.chain[1])
    #expect(one.chain[0] != two.chain[0])
    #expect(one.chain[1].name.hasPrefix("Insula Development "))
    let list = try identities.list()
    #expect(list.map(\.name) == ["one", "two"])
    #expect(try list.map { try $0.chain.get().first?.team } == ["T", "U"])
  }

  @Test func certificatesHaveTheirTimesAndPurposes() throws {
    let made = try identities.make("a", team: "T", at: testTime)
    let (leaf, root) = (made.chain[0], made.chain[1])
    let years = { (certificate: Certificate) in (certificate.validUntil - testTime) / (365 * 86400) }
    #expect(years(leaf) == 5)
    #expect(years(root) == 20)
    #expect(leaf.validFrom == testTime - 3600)
    #expect(!leaf.isAuthority && leaf.isForCode && leaf.hasP256Key)
    #expect(root.isAuthority && root.isForCode && root.isSelfIssued)
    #expect(try root.isSoundRoot())
  }

  /// Nothing that it issues outlives the root.
  @Test func identityEndsWithItsRoot() throws {
    _ = try identities.make("early", team: "T", at: testTime)
    let late = try identities.make("late", team: "T", at: testTime + 18 * 365 * 86400)
    #expect(late.chain[0].validUntil == late.chain[1].validUntil)
    let after = testTime + 21 * 365 * 86400
    #expect(throws: IdentityFailure.self) { _ = try identities.make("after", team: "T", at: after) }
  }

  @Test func filesAreTheirOwnersAlone() throws {
    _ = try identities.make("a", team: "T", at: testTime)
    #expect(try directory.names() == ["a.pem", "authority.pem"])
    for name in ["a.pem", "authority.pem"] {
      let status = try name.withName { (name) throws(Errno) in try opened.fd.status(of: name) }
      #expect(status.st_mode & 0o7777 == 0o600)
    }
  }

  @Test func keyThatOthersCanReadIsNotUsed() throws {
    _ = try identities.make("a", team: "T", at: testTime)
    chmod(directory.appending("a.pem"), 0o640)
    #expect(throws: IdentityFailure.openToOthers("a")) { _ = try identities.identity(named: "a") }
    #expect(throws: IdentityFailure.openToOthers("a")) { try identities.list().first?.chain.get() }
    chmod(directory.appending("authority.pem"), 0o604)
    #expect(throws: IdentityFailure.openToOthers("authority")) {
      _ = try identities.make("b", team: "T", at: testTime)
    }
  }

  @Test(arguments: ["", ".a", "a/b", "a\nb", "authority", String(repeating: "a", count: 65)])
  func namesThatAreNoneAreRefused(name: String) {
    #expect(throws: IdentityFailure.badName(name)) { _ = try identities.make(name, team: "T", at: testTime) }
    #expect(throws: IdentityFailure.badName(name)) { _ = try identities.identity(named: name) }
  }

  @Test(arguments: ["", "a b", "é", "a\"b", "a/b", String(repeating: "T", count: 65)])
  func teamsThatAreNoneAreRefused(team: String) {
    #expect(throws: IdentityFailure.badTeam(team)) { _ = try identities.make("a", team: team, at: testTime) }
  }

  @Test func identityIsNeverReplaced() throws {
    let made = try identities.make("Ünal", team: "T", at: testTime)
    #expect(throws: IdentityFailure.exists("Ünal")) {
      _ = try identities.make("Ünal", team: "T", at: testTime)
    }
    let kept = try identities.identity(named: "Ünal")
    #expect(kept.chain == made.chain)
    #expect(throws: IdentityFailure.exists("Ünal")) { try identities.add(kept) }
  }

  @Test func removedIdentityIsGone() throws {
    _ = try identities.make("a", team: "T", at: testTime)
    try identities.remove("a")
    #expect(throws: IdentityFailure.notThere("a")) { _ = try identities.identity(named: "a") }
    #expect(throws: IdentityFailure.notThere("a")) { try identities.remove("a") }
    #expect(try directory.names() == ["authority.pem"])
  }

  /// Each text with a word of why it is no identity.
  @Test(arguments: ["empty", "noKey", "otherKey", "rootFirst", "encrypted", "garbage", "pipe"])
  func filesThatAreNoneAreToldWithTheirReason(kind: String) throws {
    _ = try identities.make("a", team: "T", at: testTime)
    let other = try TestAuthority()
    let text = directory.text(of: "a.pem") ?? ""
    let parts = text.components(endingIn: "-----\n")
    // Key, leaf, root: each begins and ends with a line of its own.
    let (key, leaf, root) = (parts[0] + parts[1], parts[2] + parts[3], parts[4] + parts[5])
    let (content, word): (String, String) =
      switch kind {
      case "empty": ("", "private key")
      case "noKey": (leaf + root, "private key")
      case "otherKey":
        (String(decoding: try other.key.pem(), as: UTF8.self) + leaf, "does not match the first certificate")
      case "rootFirst": (key + root + leaf, "has no team")
      // Nobody may be asked for a passphrase on the terminal.
      case "encrypted": (try encrypted("a.pem") + leaf, "private key")
      case "garbage": (key + leaf.replacing("MII", with: "MIJ"), "certificate")
      default: ("", "")
      }
    unlink(directory.appending("a.pem"))
    if kind == "pipe" {
      mkfifo(directory.appending("a.pem"), 0o600)
    } else {
      try directory.write(content, to: "a.pem")
      chmod(directory.appending("a.pem"), 0o600)
    }
    let failure = #expect(throws: IdentityFailure.self) { _ = try identities.identity(named: "a") }
    if kind == "pipe" {
      #expect(failure == .irregular("a"))
    } else if case .damaged("a", let reason) = failure {
      #expect(reason.contains(word), "\(reason)")
    } else {
      Issue.record("\(String(describing: failure))")
    }
  }

  private func encrypted(_ name: String) throws -> String {
    let result = try Program.run([
      "openssl", "pkey", "-in", directory.appending(name), "-aes256", "-passout", "pass:word",
    ])
    try #require(result.output.contains("ENCRYPTED"), "\(result.errors)")
    return result.output
  }

  /// What was exported here can be imported elsewhere, and opened by openssl.
  @Test func exportedIdentityIsTheSameElsewhere() throws {
    let made = try identities.make("a", team: "T", at: testTime)
    let bytes = try made.exported(passphrase: "häuser")
    let back = try Identity.imported(bytes, passphrase: "häuser", name: "b")
    #expect(back.chain == made.chain)
    try identities.add(back)
    let kept = try identities.identity(named: "b")
    #expect(kept.chain == made.chain)
    #expect(throws: IdentityFailure.self) {
      _ = try Identity.imported(bytes, passphrase: "hauser", name: "b")
    }
    #expect(throws: IdentityFailure.self) { _ = try Identity.imported([0x30, 0], passphrase: "", name: "b") }
    #expect(throws: CryptoFailure.self) { _ = try made.exported(passphrase: "") }
    try opened.fd.replaceContents(of: "a.p12", with: bytes, mode: 0o600)
    let result = try Program.run([
      "openssl", "pkcs12", "-in", directory.appending("a.p12"), "-passin", "pass:häuser", "-noenc",
    ])
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains(String(decoding: try made.leaf.pem(), as: UTF8.self)))
    #expect(!String(decoding: try made.certificatesPEM(), as: UTF8.self).contains("PRIVATE"))
  }

  /// Many at once make one root, and each identity once.
  @Test func makersAtOnceDoNotDisturbEachOther() async throws {
    let path = directory.path
    let makers = (0..<16).map { number in
      Task.detached {
        let opened = try TemporaryDirectory.open(path)
        _ = try IdentityDirectory(opened.fd).make("maker \(number)", team: "T", at: testTime)
      }
    }
    for maker in makers { try await maker.value }
    let roots = try Set(identities.list().map { try $0.chain.get()[1] })
    #expect(roots.count == 1)
    #expect(try directory.names().count == 17)
  }
}

extension String {
  /// The parts that end in `mark`, each with it.
  fileprivate func components(endingIn mark: String) -> [String] {
    var parts: [String] = []
    var rest = Substring(self)
    while let range = rest.firstRange(of: mark) {
      parts.append(String(rest[..<range.upperBound]))
      rest = rest[range.upperBound...]
    }
    return parts
  }
}
