// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
@testable internal import Store
internal import Testing

/// By what commands know volumes: no computer's name passes for a home.
@Suite struct VolumeTitleTests {
  private func record(
    _ id: Int64, _ place: VolumeRecord.Place, _ name: String, of owner: UInt32? = nil
  ) -> VolumeRecord {
    VolumeRecord(
      id: id, in: place, name: Array(name.utf8), kind: .server, path: Array("sftp://host/x".utf8),
      identity: ObjectIdentity(inode: 0, handle: [], created: 0), owner: owner, isReadOnly: false, added: 0)
  }

  @Test(
    arguments: [
      (.volumes, "disk"), (.users, "Users/disk"), (.network, "Network/disk"), (.server("nas"), "nas/disk"),
      (.server("Users"), "Network/Servers/Users/disk"), (.server("users"), "Network/Servers/users/disk"),
      (.server("NETWORK"), "Network/Servers/NETWORK/disk"),
      (.server("Volumes"), "Network/Servers/Volumes/disk"), (.server("Users2"), "Users2/disk"),
    ] as [(VolumeRecord.Place, String)])
  func titles(place: VolumeRecord.Place, title: String) {
    #expect(record(1, place, "disk").title == title)
  }

  /// Root sees everybody's.
  @Test func textsMeanOneVolume() {
    let records = [
      record(1, .server("Users"), "eva", of: 501), record(2, .users, "eva"), record(3, .volumes, "eva"),
      record(4, .server("nas"), "music", of: 501), record(5, .server("nas"), "music", of: 502),
      record(6, .server("nas"), "books", of: 501), record(7, .server("nas"), "books"),
      record(8, .server("Caf\u{e9}"), "x"), record(9, .server("Cafe\u{301}"), "x"),
      record(10, .volumes, "Eva"),
    ]
    func meant(_ text: String, for user: UInt32 = 0, ignoringCase: Bool = false) -> [Int64] {
      let known = records.filter { $0.owner == nil || $0.owner == user || user == 0 }
      return VolumeRecord.meant(by: text, among: known, for: user, ignoringCase: ignoringCase).map(\.id)
    }
    #expect(meant("Users/eva") == [2] && meant("Users/eva", for: 501) == [2])
    #expect(meant("Network/Servers/Users/eva") == [1] && meant("Network/Servers/Users/eva", for: 502) == [])
    #expect(meant("eva") == [3] && meant("Volumes/eva") == [3] && meant("Eva") == [10])
    #expect(meant("nas/music") == [4, 5] && meant("nas/music", for: 502) == [5])
    #expect(meant("nas/books") == [7] && meant("nas/books", for: 501) == [6])
    #expect(meant("Caf\u{e9}/x") == [8] && meant("Cafe\u{301}/x") == [9])
    #expect(meant("EVA") == [] && meant("EVA", ignoringCase: true) == [3, 10])
    #expect(meant("eva", ignoringCase: true) == [3] && meant("USERS/EVA", ignoringCase: true) == [2])
    #expect(meant("") == [] && meant("/") == [])
  }
}
