// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CTagLib
internal import LinuxIO
internal import Policy
internal import Glibc

/// What is told of a song.
struct SongTags: Codable, Equatable {
  var title: String?
  var artist: String?
  var album: String?
  var genre: String?
  var year: Int?
  var track: Int?
  /// In seconds.
  var duration: Int?

  /// Why no tags can be read; nil if they can.
  static var unavailable: String? {
    ctaglib_load().map { "can't read songs: \(String(cString: $0))" }
  }

  /// The number under which TagLib opens the file once more, which knows it by its name alone.
  static let descriptor: Int32 = 9

  /// By its extension it finds out what a file is.
  static func path(type: String) -> String { "/song.\(type)" }

  /// Nil for a file that is no music.
  init?(_ file: FD, type: String) {
    guard PrivateItems.songs.fileExtensions.contains(type), dup2(file.raw, Self.descriptor) >= 0 else {
      return nil
    }
    defer { _ = close(Self.descriptor) }
    self.init(at: Self.path(type: type))
  }

  /// TagLib has been loaded.
  init?(at path: String) {
    guard let song = taglib_file_new(path) else { return nil }
    defer { taglib_file_free(song) }
    guard taglib_file_is_valid(song) != 0, let tag = taglib_file_tag(song) else { return nil }
    defer { taglib_tag_free_strings() }
    title = Self.text(taglib_tag_title(tag))
    artist = Self.text(taglib_tag_artist(tag))
    album = Self.text(taglib_tag_album(tag))
    genre = Self.text(taglib_tag_genre(tag))
    year = Self.number(taglib_tag_year(tag))
    track = Self.number(taglib_tag_track(tag))
    duration = taglib_file_audioproperties(song).flatMap {
      Self.number(UInt32(clamping: taglib_audioproperties_length($0)))
    }
  }

  /// Whether nothing is known of it: then it may be no music at all.
  var isEmpty: Bool {
    title == nil && artist == nil && album == nil && genre == nil && year == nil && track == nil
      && duration == nil
  }

  private static let longest = 500

  private static func text(_ string: UnsafeMutablePointer<CChar>?) -> String? {
    guard let string else { return nil }
    let bytes = UnsafeBufferPointer(start: string, count: strnlen(string, longest))
    var text = String.UnicodeScalarView()
    for scalar in String(decoding: bytes.lazy.map { UInt8(bitPattern: $0) }, as: UTF8.self).unicodeScalars {
      // Cut within a letter.
      guard scalar != "\u{fffd}", !scalar.isControl else {
        continue
      }
      text.append(scalar)
    }
    return text.isEmpty ? nil : String(text)
  }

  private static func number(_ value: UInt32) -> Int? { value == 0 || value > 1 << 24 ? nil : Int(value) }
}
