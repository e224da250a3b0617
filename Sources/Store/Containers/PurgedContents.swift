// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// Contents that were taken out of everyone's sight to be removed, by what they are called meanwhile: whoever
/// is stopped on the way there, they are found by that name again.
struct PurgedContents: Hashable, Sendable {
  /// The container's UUID.
  let container: String
  let place: PurgePlace

  private static let prefix = "purged-"

  var name: String { "\(Self.prefix)\(place.rawValue)-\(container)" }

  init(_ place: PurgePlace, of record: ContainerRecord) {
    container = record.uuid
    self.place = place
  }

  /// What has that name; nil where it is something else.
  init?(name: [UInt8]) {
    let text = String(decoding: name, as: UTF8.self)
    guard Self.isName(name),
      let place = PurgePlace.allCases.first(where: { text.hasPrefix("\(Self.prefix)\($0.rawValue)-") })
    else { return nil }
    self.place = place
    container = String(text.dropFirst(Self.prefix.count + place.rawValue.count + 1))
  }

  static func isName(_ name: [UInt8]) -> Bool { name.starts(with: prefix.utf8) }

  /// Does something while nobody else in this process has to do with the same contents; EBUSY if somebody
  /// has and there is no `pause` to wait with.
  func inTurn<Result>(_ pause: Pause?, _ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    while !Self.inUse.withLock({ $0.insert(self).inserted }) {
      guard let pause else { throw .EBUSY }
      try pause()
      _ = Self.inUse.wait(milliseconds: 100) { !$0.contains(self) }
    }
    defer { Self.inUse.change { _ = $0.remove(self) } }
    return try body()
  }

  private static let inUse = Condition<Set<PurgedContents>>([])
}
