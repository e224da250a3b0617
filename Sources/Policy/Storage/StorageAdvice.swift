// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What somebody could do about the room that an app takes.
package struct StorageAdvice: Codable, Equatable, Sendable {
  package enum Kind: String, Codable, Sendable, CaseIterable {
    /// Recordings and films in Documents, which every backup would contain.
    case largeMedia
    /// Files where an app is not to have any.
    case misplaced
    /// Files in Application Support that are not in a directory with the app's identifier.
    case unnamedSupport
    /// An app that nobody has used for long.
    case unused
  }

  package let kind: Kind
  /// Files; none where it is about the whole app.
  package private(set) var count: Int64 = 0
  package private(set) var bytes: Int64 = 0
  /// Where some of them are, below the container; bytes that are no text are replaced.
  package private(set) var examples: [String] = []

  package static let mostExamples = 3
  /// Longer paths are cut, at their beginning.
  package static let longestExample = 200

  package init(_ kind: Kind, bytes: Int64 = 0) {
    self.kind = kind
    self.bytes = bytes
  }

  /// `path` is asked for only where it is told.
  package mutating func add(_ size: Int64, at path: () -> [[UInt8]]) {
    count = count == .max ? .max : count + 1
    let sum = bytes.addingReportingOverflow(size)
    bytes = sum.overflow ? .max : sum.partialValue
    guard examples.count < Self.mostExamples else { return }
    let text = path().map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
    examples.append(
      text.unicodeScalars.count <= Self.longestExample
        ? text : "…" + String(text.unicodeScalars.suffix(Self.longestExample)))
  }

  // MARK: When it is given

  /// Smaller files are not worth the trouble.
  package static let largeBytes: Int64 = 32 << 20
  /// For so long an app must not have run, in seconds.
  package static let unusedSeconds: Int64 = 90 * 24 * 60 * 60

  /// Whether a file has a name as recordings, films and raw pictures have.
  package static func isMedia(_ name: [UInt8]) -> Bool {
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")), name.count - dot <= 6 else { return false }
    return media.contains(String(decoding: name[(dot + 1)...], as: UTF8.self).lowercased())
  }

  private static let media: Set<String> = [
    "mp4", "m4v", "mov", "avi", "mkv", "webm", "mpg", "mpeg", "wmv", "flv", "3gp", "ogv", "ts", "mp3", "m4a",
    "m4b", "aac", "flac", "wav", "aif", "aiff", "ogg", "oga", "opus", "wma", "caf", "alac", "dng", "tif",
    "tiff", "cr2", "nef", "arw", "heic",
  ]

  /// Whether an app was not used for long.
  ///
  /// What is not known is no reason: one without a time has not run since times are noted, unless nothing of
  /// it was ever made.
  package static func isUnused(
    lastRun: Int64?, installed: Int64, hasContainer: Bool, now: Int64
  ) -> Bool {
    let since = now.subtractingReportingOverflow(unusedSeconds)
    guard !since.overflow else { return false }
    if let lastRun { return lastRun < since.partialValue && installed < since.partialValue }
    return !hasContainer && installed < since.partialValue
  }
}
