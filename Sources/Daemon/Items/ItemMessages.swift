// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import JSON
package import Policy

// What is said about what is private without being files: by apps through their sockets, and by the command
// that has started the app and reads for it.

/// What an app wants to be told, a page of it.
package struct ItemsQuery: Codable, Equatable, Sendable {
  package let kind: PrivateItems
  /// Where the page before says that it goes on; nil for the beginning.
  package let after: String?
  /// How many there may be; a page may have fewer.
  package let limit: Int?

  package init(_ kind: PrivateItems, after: String? = nil, limit: Int? = nil) {
    self.kind = kind
    self.after = after
    self.limit = limit
  }

  /// More are in no page.
  package static let mostItems = 1000
  private static let longestCursor = 100

  var isReasonable: Bool {
    (after?.utf8.count ?? 0) <= Self.longestCursor && (1...Self.mostItems).contains(limit ?? 1)
  }
}

/// What is read for an app, and for whom.
package struct ReadingTask: Codable, Equatable, Sendable {
  package let query: ItemsQuery
  /// The name of the user's home.
  package let home: String
  /// Whether all of the Music folder is the media library.
  package let allMusic: Bool?

  package init(_ query: ItemsQuery, home: String, allMusic: Bool = false) {
    self.query = query
    self.home = home
    self.allMusic = allMusic ? true : nil
  }
}

/// Some of what an app wanted to be told.
package struct ItemPage: Codable, Equatable, Sendable {
  package let items: [JSONValue]
  /// Where it goes on; nil at the end.
  package let next: String?
  /// How many files could not be read, and were left out; nil for none.
  package let unread: Int?

  package init(_ items: [JSONValue], next: String?, unread: Int? = nil) {
    self.items = items
    self.next = next
    self.unread = unread
  }

  /// How long the text of the items may be, commas included: it arrives in one piece.
  package static let mostBytes = 48_000
}
