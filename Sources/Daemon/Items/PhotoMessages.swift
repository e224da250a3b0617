// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// What is said about photos that an app adds: by the app through its socket, and to the command that has
// started it and adds them.

/// A file of an app's that is to be among its user's photos.
package struct AddedPhoto: Codable, Equatable, Sendable {
  /// Below what the app has as its home.
  package let file: String
  /// By which the same call is known when it is made again, since another daemon has taken over.
  package let token: String?

  package init(_ file: String, token: String?) {
    self.file = file
    self.token = token
  }

  private static let longestFile = 4096
  private static let longestToken = 100

  var isReasonable: Bool {
    (1...Self.longestFile).contains(file.utf8.count) && (token?.utf8.count ?? 0) <= Self.longestToken
  }
}

/// What is added for an app, and for whom.
package struct AddingTask: Codable, Equatable, Sendable {
  package let photo: AddedPhoto
  /// What the app has as its home, below the root of the tree.
  package let data: String
  /// The name of the user's home.
  package let home: String

  package init(_ photo: AddedPhoto, data: String, home: String) {
    self.photo = photo
    self.data = data
    self.home = home
  }
}
