// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What earlier versions have written with Foundation's coders, and what is written in their place.
@Suite struct EarlierFilesTests {
  private static func list(_ body: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">
    \(body)
    </plist>

    """
  }

  private static let description = list(
    """
    <dict>
    \t<key>AdminGroup</key>
    \t<dict>
    \t\t<key>ID</key>
    \t\t<integer>4294967295</integer>
    \t\t<key>Name</key>
    \t\t<string>a&lt;b&amp;c</string>
    \t</dict>
    \t<key>Created</key>
    \t<date>2026-11-24T10:44:09Z</date>
    \t<key>Format</key>
    \t<integer>1</integer>
    \t<key>Mode</key>
    \t<string>system</string>
    \t<key>Options</key>
    \t<dict>
    \t\t<key>WritableCode</key>
    \t\t<string>allowed</string>
    \t</dict>
    \t<key>UUID</key>
    \t<string>2AE131DB-3858-4E62-A721-3B00C18A6B57</string>
    </dict>
    """)

  @Test func descriptionsOfStores() throws {
    let bytes = Array(Self.description.utf8)
    let read = try StoreDescription.decoded(bytes, path: "/s")
    #expect(
      read
        == StoreDescription(
          mode: .system, adminGroup: .init(name: "a<b&c", gid: .max),
          uuid: "2AE131DB-3858-4E62-A721-3B00C18A6B57", created: 1_795_517_049, allowsWritableCode: true))
    #expect(read.encoded() == bytes)
    try isAsFoundationWritesIt(read.encoded())
    try isAsFoundationWritesIt(TestStore.description.encoded())
    let lowercase = Self.description.replacingOccurrences(of: "2AE131DB", with: "2ae131db")
    #expect(try StoreDescription.decoded(Array(lowercase.utf8), path: "/s") == read)
    let binary = try PropertyListSerialization.data(
      fromPropertyList: PropertyListSerialization.propertyList(from: Data(bytes), format: nil),
      format: .binary, options: 0)
    #expect(try StoreDescription.decoded(Array(binary), path: "/s") == read)
  }

  @Test(arguments: [
    ("<integer>1</integer>", "<string>1</string>"), ("<integer>1</integer>", "<real>1</real>"),
    ("2AE131DB-", "2AE131DB"), ("<string>system</string>", "<string>System</string>"),
    ("4294967295", "4294967296"), ("4294967295", "-1"), ("<string>allowed</string>", "<true/>"),
    ("<date>2026-11-24T10:44:09Z</date>", "<string>2026-11-24T10:44:09Z</string>"), ("Options", "Other"),
  ])
  func damagedDescriptionsAreRefused(part: String, other: String) {
    let text = Self.description.replacingOccurrences(of: part, with: other)
    #expect(text != Self.description)
    #expect(throws: StoreError.self) { try StoreDescription.decoded(Array(text.utf8), path: "/s") }
  }

  @Test func metadataOfContainers() throws {
    let identifier = try #require(AppIdentifier("com.example.editor"))
    for kind in ContainerKind.allCases {
      let record = ContainerRecord(
        uuid: "2AE131DB-3858-4E62-A721-3B00C18A6B57", kind: kind, identifier: identifier, user: .max,
        path: "Users/x")
      guard let metadata = ContainerMetadata(record, gid: 5) else { continue }
      try isAsFoundationWritesIt(metadata.encoded)
      #expect(ContainerMetadata(metadata.encoded) == metadata)
      let other = String(decoding: metadata.encoded, as: UTF8.self)
        .replacingOccurrences(of: "posixUID", with: "posixuid")
      #expect(ContainerMetadata(Array(other.utf8)) == nil)
    }
    #expect(ContainerMetadata([]) == nil && ContainerMetadata(Array("{}".utf8)) == nil)
  }

  /// Sorted keys, tabs, and the rest of the form.
  private func isAsFoundationWritesIt(_ bytes: [UInt8]) throws {
    let list = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
    let written = try PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0)
    #expect(String(decoding: bytes, as: UTF8.self) == String(decoding: written, as: UTF8.self))
  }

  @Test func intentsInTheRegistry() throws {
    let made = try TestStore()
    let store = try made.open()
    let registry = try Registry(state: store.state, path: made.path + "/state")
    let text = #"""
      {"keepsData":true,"app":{"groups":["group.org.g"],"seal":[0,127,255],
      "path":"Users\/a\/Applications\/É.app","version":"1\n","shortVersion":"\u0001",
      "name":"\"E\\\"","executable":"e","identifier":"com.example.editor",
      "installed":-9223372036854775808,"clouds":[],"team":"","user":4294967295},"work":"install"}
      """#.replacingOccurrences(of: "\n", with: "")
    let quoted = text.replacingOccurrences(of: "'", with: "''")
    let added = try Program.run(
      ["sqlite3", made.path + "/state/insula.db", "INSERT INTO intents (intent) VALUES ('\(quoted)')"])
    #expect(added.status == 0)
    let intent = try #require(try registry.intents().first?.intent)
    let group = try #require(AppIdentifier("group.org.g"))
    #expect(intent.work == .install && intent.keepsData && intent.before == nil)
    #expect(intent.app.path == "Users/a/Applications/É.app" && intent.app.seal == [0, 127, 255])
    #expect(intent.app.version == "1\n" && intent.app.shortVersion == "\u{1}" && intent.app.name == #""E\""#)
    #expect(intent.app.installed == .min && intent.app.user == .max && intent.app.root == nil)
    #expect(intent.app.groups == [group] && intent.app.clouds.isEmpty)
    // Versions with Foundation read what is written now.
    let noted = try registry.begin(.install(.example()))
    let row = try Program.run(
      ["sqlite3", made.path + "/state/insula.db", "SELECT intent FROM intents WHERE id = \(noted.number)"])
    #expect(try JSONDecoder().decode(TreeIntent.self, from: Data(row.output.utf8)) == noted.intent)
  }
}
