// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Whether a machine can tell that a number is nobody's.
@Suite struct AccountServicesTests {
  @Test(
    arguments: [
      ("", [], true), ("passwd: files systemd", ["files", "systemd"], true),
      ("group: files ldap\npasswd:\tcompat # ldap\n", ["compat"], true),
      ("passwd: files [SUCCESS=return NOTFOUND=continue] sss", ["files", "sss"], false),
      ("# passwd: files\npasswd : compat\npasswd_compat: nis", ["compat", "nis"], false),
    ] as [(String, [String], Bool)])
  func areReadFromTheConfiguration(text: String, names: [String], areLocal: Bool) {
    let services = AccountServices(text)
    #expect(services.names == names && services.areLocal == areLocal)
  }

  /// An answer of others says nothing where a directory server may be away.
  @Test func nobodyIsToldFromWhoIsNotKnown() throws {
    let nobodys: UInt32 = 4_000_000_123
    #expect(try Account.numbered(ifCertain: nobodys, services: AccountServices("passwd: files")) == nil)
    #expect(throws: Errno.EAGAIN) {
      try Account.numbered(ifCertain: nobodys, services: AccountServices("passwd: files sss systemd"))
    }
    for services in ["passwd: files", "passwd: files sss"] {
      #expect(try Account.numbered(ifCertain: 0, services: AccountServices(services))?.name == "root")
    }
  }
}
