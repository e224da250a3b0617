// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

// What is said between a daemon and its helper, in messages of fixed fields and a path.

extension MountHelper {
  enum Request: Equatable {
    case removeTree(lazily: Bool)
    case mount(user: UInt32, group: UInt32, path: String)
    case remove(DeviceNumber, user: UInt32, group: UInt32)
    case engine(EngineOrder)
    /// Which computers of the network announce what.
    case browse
    /// Starts a program once, to hear whether it can go on with the mount.
    case rehearse

    /// No path is longer.
    static let mostBytes = 64 + EngineOrder.mostBytes

    var bytes: [UInt8] {
      switch self {
      case .removeTree(let lazily): [lazily ? 1 : 0]
      case .mount(let user, let group, let path): [2] + Self.bytes([user, group]) + Array(path.utf8)
      case .remove(let device, let user, let group):
        [3] + Self.bytes([user, group, device.major, device.minor])
      case .engine(let order): [4] + order.bytes
      case .browse: [5]
      case .rehearse: [6]
      }
    }

    /// For whom it is; nil for the whole tree.
    var user: UInt32? {
      switch self {
      case .removeTree: nil
      case .browse, .rehearse: ProcessID.user
      case .engine(let order): order.user
      case .mount(let user, _, _), .remove(_, let user, _): user
      }
    }

    /// Nil for what is no request.
    init?(_ bytes: [UInt8]) {
      let words = Self.words(bytes.dropFirst())
      switch bytes.first {
      case 0 where bytes.count == 1: self = .removeTree(lazily: false)
      case 1 where bytes.count == 1: self = .removeTree(lazily: true)
      case 2 where words.count >= 2:
        let path = String(decoding: bytes.dropFirst(9), as: UTF8.self)
        self = .mount(user: words[0], group: words[1], path: path)
      case 3 where words.count >= 4:
        self = .remove(
          DeviceNumber(major: words[2], minor: words[3]), user: words[0], group: words[1])
      case 4:
        guard let order = EngineOrder(bytes.dropFirst()) else { return nil }
        self = .engine(order)
      case 5 where bytes.count == 1: self = .browse
      case 6 where bytes.count == 1: self = .rehearse
      default: return nil
      }
    }

    fileprivate static func bytes(_ words: [UInt32]) -> [UInt8] {
      words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
    }

    /// As many as there are, of the first four.
    fileprivate static func words(_ bytes: ArraySlice<UInt8>) -> [UInt32] {
      let bytes = Array(bytes.prefix(16))
      return (0..<bytes.count / 4).map { index in
        (0..<4).reduce(0) { $0 | UInt32(bytes[4 * index + $1]) << (8 * $1) }
      }
    }
  }

  /// An errno or 0, and the device of what was mounted.
  enum Answer {
    static let size = 9

    static func bytes(_ error: Errno?, _ device: DeviceNumber? = nil) -> [UInt8] {
      [error.map { UInt8(truncatingIfNeeded: $0.code) } ?? 0]
        + (device.map { Request.bytes([$0.major, $0.minor]) } ?? [])
    }

    static func device(_ bytes: [UInt8]) -> DeviceNumber? {
      let words = Request.words(bytes.dropFirst())
      return words.count == 2 ? DeviceNumber(major: words[0], minor: words[1]) : nil
    }
  }
}
