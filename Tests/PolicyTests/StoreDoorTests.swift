// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct StoreDoorTests {
  @Test(
    arguments: [
      (0o700, 1, false, nil), (0o755, 1, false, .open), (0o711, 1, false, .open), (0o701, 1, true, .open),
      (0o777, 1, false, .writable), (0o1777, 1, false, .writable), (0o720, 1, false, .writable),
      (0o720, 1, true, .open), (0o702, 1, true, .writable), (0o700, 2, false, .foreign(2)),
      (0o700, 0, false, .foreign(0)),
    ] as [(UInt32, UInt32, Bool, StoreDoorProblem?)])
  func storeIsForItsOwnerAlone(mode: UInt32, uid: UInt32, isPrivate: Bool, problem: StoreDoorProblem?) {
    #expect(StoreDoor(mode: mode, uid: uid, hasPrivateGroup: isPrivate).problemOfStore(for: 1) == problem)
  }

  @Test(
    arguments: [
      (0o755, 0, false, nil), (0o755, 1, false, nil), (0o1777, 0, false, nil), (0o777, 0, false, .writable),
      (0o775, 0, false, .writable), (0o775, 1, true, nil), (0o757, 1, true, .writable),
      (0o700, 2, false, .foreign(2)), (0o1777, 2, false, .foreign(2)),
    ] as [(UInt32, UInt32, Bool, StoreDoorProblem?)])
  func nobodyRenamesWhatLeadsThere(mode: UInt32, uid: UInt32, isPrivate: Bool, problem: StoreDoorProblem?) {
    #expect(StoreDoor(mode: mode, uid: uid, hasPrivateGroup: isPrivate).problemAbove(for: 1) == problem)
  }

  @Test func onlyWhatCanBeExchangedIsNotMounted() {
    #expect(!StoreDoorProblem.open.letsOthersExchange)
    #expect(StoreDoorProblem.writable.letsOthersExchange && StoreDoorProblem.foreign(2).letsOthersExchange)
  }
}
