// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct SearchPathTests {
  private func paths(_ name: String, _ domains: Set<Domain>) -> [String]? {
    SearchDirectory.named(name)?.places(in: domains, home: "Users/anna").map(\.path)
  }

  private static let all = Set(Domain.allCases)

  @Test(arguments: [
    ("applications", ["Users/anna/Applications", "Applications", "Network/Applications"]),
    (
      "library",
      ["Users/anna/Library", "Library", "Network/Library", "System/Library"]
    ),
    ("users", ["Users", "Network/Users"]),
    (
      "documentation",
      [
        "Users/anna/Library/Documentation", "Library/Documentation", "Network/Library/Documentation",
        "System/Library/Documentation",
      ]
    ),
    ("documents", ["Users/anna/Documents"]), ("core-services", ["System/Library/CoreServices"]),
    ("caches", ["Users/anna/Library/Caches", "Library/Caches", "Network/Library/Caches"]),
    (
      "printer-descriptions",
      ["Users/anna/Library/Printers/PPDs", "Library/Printers/PPDs", "Network/Library/Printers/PPDs"]
    ),
    ("trash", ["Users/anna/.Trash"]),
  ])
  func domainsAreInOrderAndNothingIsToldTwice(name: String, expected: [String]) {
    #expect(paths(name, Self.all) == expected)
  }

  @Test func collectionsHaveTheirPartsInEachDomain() {
    #expect(
      paths("all-applications", [.local]) == [
        "Applications", "Applications/Utilities", "Developer/Applications", "Applications/Demos",
      ])
    #expect(paths("all-libraries", [.local, .system]) == ["Library", "Developer", "System/Library"])
  }

  @Test func systemAloneIsToldWhereItIs() {
    #expect(paths("applications", [.system]) == ["Applications"])
    #expect(paths("printer-descriptions", [.system]) == ["System/Library/Printers/PPDs"])
    #expect(paths("movies", [.local, .network, .system]) == [])
  }

  @Test func whoHasNoHomeHasNoPlacesOfTheirOwn() {
    #expect(SearchDirectory.named("caches")?.places(in: [.user], home: nil) == [])
    #expect(SearchDirectory.named("nonsense") == nil)
  }

  @Test func placesOfAppsHaveWords() throws {
    for word in AppPlace.words where !word.contains(":") { #expect(AppPlace(word)?.word == word) }
    for word in ["icloud", "group:group.x", "icloud:iCloud.com.x"] { #expect(AppPlace(word)?.word == word) }
    for word in ["", "Documents", "group:", "group:../x", "icloud:", "icloud:a/b", "group:a b", "downloads"] {
      #expect(AppPlace(word) == nil, "\(word)")
    }
    let places = AppPlace.words.compactMap { AppPlace($0)?.pathInContainer }
    let directories = Set(ContainerLayout.directories(of: .data) + [ContainerLayout.inboxPath])
    #expect(Set(places) == directories && places.count == directories.count)
  }
}
