// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Accounts as the machine's own files have them.
@Suite struct LocalAccountsTests {
  @Test func areReadAndReadAgain() throws {
    let temporary = try TemporaryDirectory()
    let text = """
      # comment:x:5:
      anna:x:1001:1001:Anna:/home/anna:/bin/sh
      +@netgroup:x:7::::
      otto:x:1002:1002
      again:x:1001:1
      anna:x:1003:1
      broken:x
      worse:x:-3:1
      large:x:4294967296:1
      last:x:4294967294:
      """
    let accounts = LocalAccounts(path: try temporary.write(text, to: "accounts"))
    for _ in 0..<2 {
      #expect(accounts.id(of: "anna") == 1001 && accounts.name(of: 1001) == "anna")
      #expect(accounts.id(of: "otto") == 1002 && accounts.name(of: 1002) == "otto")
      #expect(accounts.id(of: "again") == 1001 && accounts.name(of: 1003) == "anna")
      #expect(accounts.id(of: "last") == 4_294_967_294)
      for name in ["# comment", "+@netgroup", "broken", "worse", "large", "", "nobody-of-this-name"] {
        #expect(accounts.id(of: name) == nil, "\(name)")
      }
    }
    try temporary.write("otto:x:1009:", to: "accounts")
    #expect(accounts.id(of: "otto") == 1009 && accounts.id(of: "anna") == nil)
    try temporary.write("otto:x:1010:", to: "accounts")
    #expect(accounts.id(of: "otto") == 1010 && accounts.name(of: 1009) == nil)
    #expect(unlink(temporary.appending("accounts")) == 0)
    #expect(accounts.id(of: "otto") == nil)
  }

  @Test func areThoseOfTheMachine() {
    #expect(LocalAccounts.users.id(of: "root") == 0 && LocalAccounts.users.name(of: 0) == "root")
    #expect(LocalAccounts.groups.id(of: "root") == 0 && LocalAccounts.groups.name(of: 0) == "root")
  }
}
