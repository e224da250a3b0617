// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Store

/// What apps say of types and documents, and what their user has chosen: as much as one reply holds.
package struct DocumentsPage: Codable, Equatable, Sendable {
  /// The app that a user has chosen for a type.
  package struct Choice: Codable, Equatable, Sendable {
    package let type: String
    package let identifier: String
  }

  package var apps: [AppDocuments]
  /// In the first page; by type.
  package var choices: [Choice]?
  /// Where the next page begins; nil after the last one.
  package var next: Int?

  init(_ all: [AppDocuments], after start: Int) {
    apps = []
    var room = ControlLine.pageBytes
    for app in all.dropFirst(max(0, start)) {
      if room <= 0 {
        next = max(0, start) + apps.count
        return
      }
      room -= ControlLine.encode(app).count
      apps.append(app)
    }
  }

  package init(_ registry: Registry?, for user: UInt32, after start: Int) throws(StoreError) {
    guard let registry else {
      self.init([], after: 0)
      choices = []
      return
    }
    self.init(try registry.documents(for: user), after: start)
    guard start <= 0 else { return }
    choices = try registry.openers(of: user).map(Choice.init).inOrder { $0.type < $1.type }
  }

  /// Collects what comes in pages.
  package static func all(_ page: (_ after: Int) throws -> DocumentsPage) rethrows -> DocumentsPage {
    var all = try page(0)
    while let next = all.next {
      let part = try page(next)
      all.apps += part.apps
      all.next = part.next.flatMap { $0 > next ? $0 : nil }
    }
    return all
  }
}

extension DocumentsPage.Choice {
  fileprivate init(_ choice: (key: String, value: String)) {
    self.init(type: choice.key, identifier: choice.value)
  }
}
