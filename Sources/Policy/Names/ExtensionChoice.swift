// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What the owner of a file has said of its extension.
///
/// That it is hidden is a bit of ``FinderInfo``. That bit can't say that an extension is shown where a store
/// hides them, so there is an attribute for that.
package enum ExtensionChoice {
  package static let attribute = "user.org.insula.extension"
  package static let sizeLimit = 16
  package static let shown = Array("shown".utf8)

  package static func isShown(_ value: [UInt8]) -> Bool { value == shown }
}
