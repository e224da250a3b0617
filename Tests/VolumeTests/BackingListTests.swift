// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Testing
@testable internal import Volume

/// What a list of the backing filesystem's own gives to others is not evaluated, wherever it is.
@Suite struct BackingListTests {
  @Test(arguments: [
    (mode: UInt32(0o644), kept: UInt32(0o600)), (0o640, 0o600), (0o604, 0o600), (0o660, 0o600),
    (0o606, 0o600),
    (0o777, 0o700), (0o711, 0o700), (0o4755, 0o4700), (0o600, 0o600), (0o077, 0), (0, 0),
  ])
  func onlyTheOwnersPartOfTheModeCounts(mode: UInt32, kept: UInt32) {
    var found = Glibc.stat()
    found.st_mode = S_IFREG | mode
    let status = FileStatus(found)
    var security = Security.none
    for hasList in [false, true] {
      security.hasBackingACL = hasList
      for zone in Zone.allCases {
        let object = Object(status, zone: zone, reach: .read, security: security)
        #expect(object.mode == (hasList ? kept : mode), "\(zone), list: \(hasList)")
      }
    }
  }
}
