// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
@testable internal import Store
internal import TestSupport
internal import Testing

/// The roots of a network count for the network that the machine has joined, and for no other.
struct NetworkTrustTests {
  private static let root = "left.pem"

  /// A command that was stopped while it joined, or left, has left the roots without the address.
  @Test func rootsWithoutANetworkCountForNone() throws {
    let made = try TestStore()
    let store = try made.open()
    #expect(try store.openTrust(of: .network) == nil)
    let left = try store.makeTrust(of: .network)
    try left.fd.replaceContents(of: Self.root, with: "pem".utf8, mode: 0o600)
    #expect(try store.openTrust(of: .network) == nil)
    #expect(try store.joinedNetwork() == nil)

    let place = try store.beginNetworkTrust()
    #expect(try place.fd.entries().isEmpty)
    try place.fd.replaceContents(of: "new.pem", with: "pem".utf8, mode: 0o600)
    try store.join(network: "nfs://server/export")
    guard let joined = try store.openTrust(of: .network) else {
      Issue.record("the network's list is not there")
      return
    }
    #expect(joined.fd.has("new.pem") && !joined.fd.has(Self.root))
    try store.leaveNetwork()
    #expect(try store.openTrust(of: .network) == nil)
  }
}
