// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Policy
internal import Testing

/// The rules, one by one, as a table: a path, and why it is not backed up.
@Suite struct BackupSetTests {
  static let table: [(String, BackupSet.Reason?)] = [
    ("System", .system), ("System/Library/x", .system), ("Network/Servers", .network), ("Volumes", .volumes),
    ("Volumes/Stick/a", .volumes), (".Trash/501/a", .trash), ("Library", nil), ("Library/Fonts/a", nil),
    ("Library/Caches", .caches), ("Library/Caches/a/b", .caches), ("Library/cachesx", nil),
    ("Users", nil), ("Users/Shared/a", nil), ("Users/Shared/.cache/a", nil), ("Users/Shared/.Trash", nil),
    ("Users/Shared/Library/Caches/a", nil), ("Users/ann", nil), ("Users/ann/Documents/Letter", nil),
    ("Users/ann/.Trash/x", .trash), ("Users/ann/.cache", .caches), ("Users/ann/.cachex", nil),
    ("Users/ann/Documents/.cache", nil), ("Users/ann/tmp", nil), ("Users/ann/Library/Caches/a", .caches),
    ("Users/ann/Library/Preferences/a", nil), ("Users/ann/Documents/Library/Caches/a", nil),
    ("Users/ann/Library/Containers/a.b", nil), ("Users/ann/Library/Containers/a.b/Data", nil),
    ("Users/ann/Library/Containers/a.b/Data/tmp", .temporary),
    ("Users/ann/Library/Containers/a.b/Data/tmp/x/y", .temporary),
    ("Users/ann/Library/Containers/a.b/Data/Documents/tmp", nil),
    ("Users/ann/Library/Containers/a.b/Data/Documents/Inbox/x", nil),
    ("Users/ann/Library/Containers/a.b/Data/Library/Caches", .caches),
    ("Users/ann/Library/Containers/a.b/Data/Library/Application Support/x", nil),
    ("Users/ann/Library/Containers/a.b/Data/Library/caches", nil),
    ("Users/ann/Library/Containers/a.b/Data/.cache/x", .caches),
    ("Users/ann/Library/Containers/a.b/Data/.vimrc", nil),
    ("Users/ann/Library/Group Containers/g/Library/Caches/x", .caches),
    ("Users/ann/Library/Group Containers/g/tmp", nil),
    ("Users/ann/Library/Mobile Documents/c/Documents/x", nil),
  ]

  private func names(_ path: String) -> [[UInt8]] {
    path.utf8.split(separator: UInt8(ascii: "/")).map(Array.init)
  }

  @Test(arguments: table) func placeSaysWhatIsBackedUp(path: String, reason: BackupSet.Reason?) {
    #expect(BackupSet.reason(at: names(path)) == reason)
    let position = BackupExtent.wholeTree.scope.position(at: names(path))
    #expect((position == .nowhere) == (reason != nil))
    if reason == nil { #expect(BackupExtent.wholeTree.scope.reach(of: position) == .read) }
  }

  /// The same rules hold in a part of the tree, and nothing else is there.
  @Test(arguments: table) func partsHaveTheSameRules(path: String, reason: BackupSet.Reason?) {
    let path = names(path)
    let home = BackupExtent.home("ann").scope
    let isInHome = path.count >= 2 && path.starts(with: names("Users/ann"))
    let position = home.position(at: path)
    #expect((position == .nowhere) == (reason != nil || !isInHome && path != names("Users")))
    let containers = ["Users/ann/Library/Containers/a.b", "Users/ann/Library/Group Containers/g"]
    let some = BackupExtent.containers(containers).scope
    let leads = containers.contains { names($0).starts(with: path) }
    let isIn = containers.contains { path.starts(with: names($0)) }
    #expect((some.position(at: path) == .nowhere) == (reason != nil || !isIn && !leads))
  }

  @Test func everyReasonButMarksAndBundlesIsSomePlaces() {
    let reasons = Set(BackupSet.rules.map(\.reason))
    #expect(reasons == Set(BackupSet.Reason.allCases).subtracting([.bundle, .excluded]))
  }

  @Test(arguments: Zone.allCases) func onlyBundlesAndTheSystemAreLeftOutByZone(zone: Zone) {
    #expect((BackupSet.reason(in: zone) != nil) == zone.isReadOnlyRegion)
  }

  @Test(arguments: [
    (BackupMark.apple, "", true), (.apple, "com.apple.backupd", true), (.apple, "anything", true),
    (.freedesktop, "false", true), (.freedesktop, "true", false), (.freedesktop, "", false),
    (.freedesktop, "False", false), (.freedesktop, "false\n", false),
  ])
  func marksCountByTheirValues(mark: BackupMark, value: String, excludes: Bool) {
    #expect(mark.excludes(Array(value.utf8)) == excludes)
    #expect(mark.excludes(mark.value))
  }
}
