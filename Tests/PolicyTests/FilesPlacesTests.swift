// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

struct FilesPlacesTests {
  private static let home = "Users/ada"

  private func documents(_ identifier: String, _ name: String) -> FilesPlaces.Documents {
    FilesPlaces.Documents(identifier: identifier, displayName: name, path: "Users/ada/x/\(identifier)")
  }

  private func names(_ places: [FilesPlace]) -> [String] {
    places.map { String(decoding: $0.name, as: UTF8.self) }
  }

  private func names(
    folders: [String] = [], _ apps: (identifier: String, name: String)...
  ) -> [String] {
    names(
      FilesPlaces(
        home: Self.home, folders: folders, apps: apps.map { documents($0.identifier, $0.name) }, clouds: []
      ).top)
  }

  @Test func foldersAndAppsAreShown() {
    let places = FilesPlaces(
      home: Self.home, folders: ["Movies", "Library", "Applications", ".ssh", "Documents"],
      apps: [documents("org.example.pages", "Pages")],
      clouds: [documents("iCloud.org.example.pages", "Pages")])
    #expect(names(places.top) == ["Documents", "Movies", "iCloud Drive", "Pages"])
    #expect(names(places.cloud) == ["Pages"])
    #expect(places.top[0].path == ["Users", "ada", "Documents"].map { Array($0.utf8) })
    #expect(places.top[2].path == ["Users", "ada", "Library", "Mobile Documents"].map { Array($0.utf8) })
    // Without one there is nothing in it.
    #expect(names(folders: ["Movies"]) == ["Movies"])
  }

  /// Nobody passes for a folder, for iCloud Drive, or for another app.
  @Test func namesAreTheirOwn() {
    #expect(names(folders: ["Documents"], ("a.b", "Documents")) == ["Documents", "Documents (a.b)"])
    #expect(names(folders: ["Documents"], ("a.b", "documents")) == ["Documents", "documents (a.b)"])
    #expect(names(("a.b", "iCloud Drive")) == ["iCloud Drive (a.b)"])
    #expect(names(folders: ["iCloud Drive"]) == [])
    #expect(names(("a.b", "Notes"), ("c.d", "notes")) == ["Notes (a.b)", "notes (c.d)"])
    // Two spellings of one name, and one that only a program could tell from another.
    #expect(names(("a.b", "Cafe\u{301}"), ("c.d", "Caf\u{e9}")).allSatisfy { $0.hasSuffix(")") })
    #expect(names(("a.b", "Notes"), ("c.d", "No\u{200d}tes")).allSatisfy { $0.hasSuffix(")") })
    #expect(names(folders: ["Documents"], ("a.b", "Documents\u{fe0f}")).last?.hasSuffix("(a.b)") == true)
    #expect(names(("a.b", "iCloud\u{34f} Drive")) == ["iCloud\u{34f} Drive (a.b)"])
    #expect(names(folders: ["Straße"], ("a.b", "STRASSE")).last == "STRASSE (a.b)")
    // Whose name is what another one is called by then.
    let all = names(("a.b", "Notes"), ("c.d", "Notes"), ("e.f", "Notes (a.b)"))
    #expect(Set(all).count == 3 && all.contains("Notes (c.d)"))
  }

  /// A name that would deceive is as good as none.
  @Test(arguments: [
    "", ".", "..", "\u{3164}", "\u{2800}",
    ".hidden", " Notes", "Notes ", "No\u{202e}tes", "No\ntes", "No\u{0}tes", "No\u{a0}tes",
    String(repeating: "a", count: 65),
  ])
  func namesThatDeceiveAreNotShown(name: String) { #expect(names(("a.b", name)) == ["a.b"]) }

  @Test func slashesAreShownAsFinderDoes() { #expect(names(("a.b", "In/Out")) == ["In:Out"]) }
}
