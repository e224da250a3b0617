// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Store

/// Names of volumes.
enum VolumeName {
  /// The name that is asked for, or its own with a number if that is taken.
  ///
  /// Names that differ by case are one. Two users' volumes have no name in common: the kernel has one name
  /// for all, and who looks would take it from where the other's processes are.
  static func choose(
    _ wanted: String?, for record: VolumeRecord, among known: [VolumeRecord], most: Int, isRoots: Bool
  ) throws(VolumeFailure) -> [UInt8] {
    func isTaken(_ name: [UInt8]) -> Bool { known.contains { areOneName($0.name, name) } }
    if let wanted {
      let name = Array(wanted.utf8)
      guard isName(name) else { throw .name }
      if let other = known.first(where: { areOneName($0.name, name) }) {
        // Root does not see it in the tree.
        guard isRoots, other.owner != nil, other.owner != 0 else { throw .nameIsTaken }
        throw .nameOfUsers(other.titleAndOwner)
      }
      return name
    }
    let own = own(of: record)
    guard isName(own) else { throw .name }
    for number in 0...most {
      let name = number == 0 ? own : own + Array(" \(number)".utf8)
      if isName(name), !isTaken(name) { return name }
    }
    throw .nameIsTaken
  }

  private static func own(of record: VolumeRecord) -> [UInt8] {
    let text = String(decoding: record.path, as: UTF8.self)
    let last = record.path.split(separator: UInt8(ascii: "/")).last.map { Array($0) } ?? []
    switch record.kind {
    case .directory: return last
    case .server: return Array((ServerAddress(text)?.name ?? "Untitled").utf8)
    case .disk:
      guard text.begins(with: "/") else { return Array("Untitled".utf8) }
      // The image of a disk.
      let period = last.lastIndex(of: UInt8(ascii: ".")) ?? last.endIndex
      return period > 0 ? Array(last[..<period]) : last
    }
  }

  private static func isName(_ name: [UInt8]) -> Bool {
    (1...255).contains(name.count) && name.first != UInt8(ascii: ".")
      && !name.contains { $0 == UInt8(ascii: "/") || $0 < 0x20 || $0 == 0x7f }
      // It could not be told to a command otherwise.
      && String(validating: name, as: UTF8.self) != nil
  }
}
