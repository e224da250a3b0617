// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// Why a tree can't be copied.
package struct TreeCopyFailure: Error, Equatable, Sendable {
  package enum Reason: Equatable, Sendable {
    /// A fifo, a socket, a device.
    case specialFile(String)
    /// A name that can't be kept, or that can't be told to be safe.
    case badName(String)
    case otherFilesystem
    case tooDeep(Int)
    case tooMany(Int)
    /// It got shorter, or became something else, while it was read.
    case changed
    case cancelled
    case failed(doing: String, Errno)

    /// For what is neither a file nor a directory nor a link.
    static func special(_ status: FileStatus) -> Reason {
      switch status.type {
      case S_IFIFO: .specialFile("fifo")
      case S_IFSOCK: .specialFile("socket")
      default: .specialFile("device")
      }
    }
  }

  /// Where, below the top of the tree; empty for the top itself.
  package let path: String
  package let reason: Reason

  package init(path: String, reason: Reason) {
    self.path = path
    self.reason = reason
  }
}

extension TreeCopyFailure: CustomStringConvertible {
  package var description: String {
    let place = path.isEmpty ? "the top directory" : path
    return switch reason {
    case .specialFile(let kind): "\(place) is a \(kind); only files, directories and links can be copied"
    case .badName(let why): "\(place) has a name that can't be copied: \(why)"
    case .otherFilesystem: "a filesystem is mounted at \(place); unmount it first"
    case .tooDeep(let depth): "\(place) is nested more than \(depth) directories deep"
    case .tooMany(let count): "it contains more than \(count) files"
    case .changed: "\(place) was changed while it was copied; try again"
    case .cancelled: "the copy was cancelled"
    case .failed(let doing, let errno): "can't \(doing) \(place): \(errno.message)"
    }
  }
}
