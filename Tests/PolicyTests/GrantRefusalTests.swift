// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct GrantableTests {
  private static let containers = "Users/ada/Library/Containers"

  private static let table: [(String, GrantRefusal?)] = [
    ("", .tooMuch), ("System", .system), ("System/Library/x", .system), ("Applications", .tooMuch),
    ("Applications/Utilities", .tooMuch), ("Applications/notes.txt", nil), ("Library", .tooMuch),
    ("Library/Fonts", .tooMuch), ("Library/Fonts/x.ttf", nil), ("Network", .tooMuch), ("Volumes", .tooMuch),
    ("Volumes/disk", nil), ("Users", .tooMuch), ("Users/Shared", nil),
    (".Trash", .tooMuch), (".Trash/501/files/x", nil), (containers + "/org.y/Data/.vimrc", .otherApp),
    ("Users/Shared/x", nil),
    ("Users/ada", .tooMuch), ("Users/ada/Library", .tooMuch), ("Users/ada/Applications", .tooMuch),
    ("Users/ada/Documents", nil), ("Users/ada/Documents/a/b", nil), ("Users/ada/Library/Preferences", nil),
    (containers, .tooMuch), (containers + "/org.x", .own), (containers + "/org.x/Data/Documents/a", .own),
    (containers + "/ORG.X/Data", .own), (containers + "/org.y", .otherApp),
    (containers + "/org.y/Data", .otherApp), (containers + "/org.y/Data/Library/Caches", .otherApp),
    (containers + "/org.y/Data/Documents", nil), (containers + "/org.y/Data/Documents/Inbox/a", nil),
    ("Users/ada/Library/Group Containers", .tooMuch), ("Users/ada/Library/Group Containers/g/x", .group),
    ("Users/ada/Library/Mobile Documents", .tooMuch), ("Users/ada/Library/Mobile Documents/a~b", .tooMuch),
    ("Users/ada/Library/Mobile Documents/a~b/Documents", nil), ("a/../b", .noPath), ("./a", .noPath),
    ("Users/ada/a\0b", .noPath), ("Users/ada/" + String(repeating: "x", count: 256), .noPath),
    ("Users/ada/" + String(repeating: "x/", count: 2000), .noPath),
  ]

  @Test(arguments: table.indices) func onlySomePlacesCanBe(index: Int) throws {
    let app = try #require(AppIdentifier("org.x"))
    let (path, expected) = Self.table[index]
    #expect(refusalToGrant(GrantPath.names(Array(path.utf8)), to: app) == expected, "\(path)")
  }
}
