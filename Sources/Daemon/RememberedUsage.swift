// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import JSON
internal import LinuxIO
package import Store

/// What places of apps were found to take, as a daemon leaves it for the next one: millions of files would
/// have to be walked through again before anybody could be told.
///
/// It is told with the time when it was found, and all of it is looked at again.
package struct RememberedUsage: Codable, Sendable {
  package struct Place: Codable, Sendable {
    package let key: String
    package let measured: MeasuredUsage
    /// For how long it was walked through, in nanoseconds.
    package let cost: UInt64
  }

  package var places: [Place] = []

  package init(_ places: [Place] = []) { self.places = places }

  /// In the store's state.
  private static let name = "storage.json"
  private static let sizeLimit = 16 << 20

  /// Reads what was left; nothing where that can't be read or understood.
  package init(in store: Store) {
    guard let bytes = try? store.state.contents(of: Self.name, limit: Self.sizeLimit),
      let read = try? JSONText.decode(Self.self, from: bytes)
    else { return }
    self = read
  }

  /// Leaves it for the next daemon; that it can't is no matter.
  package func leave(in store: Store) {
    guard let bytes = try? JSONText.encode(self), bytes.count <= Self.sizeLimit else { return }
    try? store.state.replaceContents(of: Self.name, with: bytes, mode: 0o600)
  }
}
