// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Testing

@Suite struct MachineAccountsTests {
  private let names = AccountNames.ofThisMachine

  @Test func areThoseOfTheMachine() {
    #expect(names.userName(0) == "root")
    #expect(names.uid("root") == 0)
    #expect(names.groupName(0) == "root")
    #expect(names.gid("root") == 0)
    #expect(names.uid("nobody-of-this-name") == nil)
    #expect(names.gid("nobody-of-this-name") == nil)
    #expect(names.userName(4_000_000_123) == nil)
    #expect(names.groupName(4_000_000_123) == nil)
  }

  @Test func onlyTheOwnDomainIsTheirs() throws {
    #expect(names.isOwnDomain("localdomain"))
    #expect(names.isOwnDomain("LocalDomain"))
    #expect(!names.isOwnDomain(""))
    #expect(!names.isOwnDomain("elsewhere.example"))
    let host = try #require(hostName())
    #expect(!names.isOwnDomain("." + host))
    if let dot = host.firstIndex(of: ".") {
      #expect(names.isOwnDomain(String(host[host.index(after: dot)...])))
    }
  }
}
