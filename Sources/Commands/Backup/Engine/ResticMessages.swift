// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

// What restic prints as JSON; it has more fields than these.

/// A line of `restic backup --json`.
struct ResticMessage: Decodable {
  enum Kind: String { case status, summary, error }

  /// Before 0.17 it is one of Go's errors: a number at best.
  struct Complaint: Decodable {
    let message: String?
    let number: Int32?

    /// A directory has more names than the view of a backup lists.
    var isOfTooManyNames: Bool { number == EOVERFLOW || message?.includes("value too large") == true }

    var isOfNoFile: Bool { number == ENOENT || message?.includes("no such file or directory") == true }

    private enum CodingKeys: String, CodingKey {
      case message
      case number = "Err"
    }
  }

  var kind: Kind? { Kind(rawValue: type) }
  private let type: String

  /// Whether something can't be counted, which only the progress depends on.
  var isOfScan: Bool { during == "scan" }

  // How far it is.
  let done: Double?
  let files: Int64?
  let filesDone: Int64?
  let bytes: Int64?
  let bytesDone: Int64?
  let secondsLeft: Int64?
  let currentFiles: [String]?
  // What could not be read.
  let item: String?
  let during: String?
  let error: Complaint?
  // What came of it.
  let filesNew: Int64?
  let filesChanged: Int64?
  let filesUnmodified: Int64?
  let added: Int64?
  let filesProcessed: Int64?
  let bytesProcessed: Int64?
  let seconds: Double?
  let snapshot: String?

  private enum CodingKeys: String, CodingKey {
    case type = "message_type"
    case done = "percent_done"
    case files = "total_files"
    case filesDone = "files_done"
    case bytes = "total_bytes"
    case bytesDone = "bytes_done"
    case secondsLeft = "seconds_remaining"
    case currentFiles = "current_files"
    case item, during, error
    case filesNew = "files_new"
    case filesChanged = "files_changed"
    case filesUnmodified = "files_unmodified"
    case added = "data_added"
    case filesProcessed = "total_files_processed"
    case bytesProcessed = "total_bytes_processed"
    case seconds = "total_duration"
    case snapshot = "snapshot_id"
  }
}

/// A backup in a repository.
struct ResticSnapshot: Decodable {
  let id: String
  let time: String
  let hostname: String
  let username: String?
  let paths: [String]
  let tags: [String]?

  /// As people name it.
  var shortID: String { String(id.prefix(8)) }

  /// The time to the second, in UTC or as restic has noted it.
  var moment: String { String(time.prefix(19)) }
}

/// What `restic forget --json` says of a group of backups.
struct ResticForgotten: Decodable {
  struct Snapshot: Decodable { let id: String }

  let keep: [Snapshot]?
  let remove: [Snapshot]?
}

/// A line of `restic ls --json`.
struct ResticNode: Decodable {
  let path: String?
  let type: String?
  let size: Int64?
  private let mtime: String?
  private let ctime: String?
  private let uid: UInt32?
  private let mode: UInt32?

  /// The same for all names of a file; other files seldom have it.
  ///
  /// Versions of restic that fill holes do not print its number.
  var object: Int {
    var hasher = Hasher()
    for time in [mtime, ctime] { hasher.combine(time) }
    for number in [uid, mode] { hasher.combine(number) }
    hasher.combine(size)
    return hasher.finalize()
  }
}
