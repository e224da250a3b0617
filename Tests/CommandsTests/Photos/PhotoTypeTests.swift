// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Testing

/// What counts as a photo, by how it begins.
@Suite struct PhotoTypeTests {
  private static func padded(_ bytes: [UInt8]) -> [UInt8] {
    bytes + [UInt8](repeating: 0, count: max(0, PhotoType.beginning - bytes.count))
  }

  private static func box(_ name: String, _ brand: String = "") -> [UInt8] {
    padded([0, 0, 0, 24] + Array((name + brand).utf8))
  }

  private static let known: [(bytes: [UInt8], first: String)] = [
    ([0xff, 0xd8, 0xff, 0xe0], "jpg"), ([0x89] + Array("PNG\r\n\u{1a}\n".utf8), "png"),
    (Array("GIF89a".utf8), "gif"), (Array("RIFF\u{1}\u{2}\u{3}\u{4}WEBPVP8 ".utf8), "webp"),
    (Array("II*\0".utf8), "tif"), (Array("MM\0*".utf8), "tif"),
    (Array("BM\u{1}\u{2}\u{3}\u{4}\0\0\0\0".utf8), "bmp"), ([0, 0, 0, 12] + Array("JXL \r\n".utf8), "jxl"),
    (box("ftyp", "heic"), "heic"), (box("ftyp", "avif"), "avif"), (box("ftyp", "crx "), "cr3"),
    (box("ftyp", "qt  "), "mov"), (box("ftyp", "mp42"), "mp4"), (box("moov"), "mov"),
  ]

  @Test func beginningTells() {
    for (bytes, first) in Self.known {
      #expect(PhotoType(beginning: Self.padded(bytes))?.extensions.first == first, "\(bytes)")
    }
  }

  @Test func nothingElseIsAPhoto() {
    let others: [[UInt8]] = [
      [], [0xff], [0xff, 0xd8], Array("#!/bin/sh\nexit 0\n".utf8), [0x7f] + Array("ELF\u{2}\u{1}\u{1}".utf8),
      Array("[Desktop Entry]\n".utf8), Array("<svg onload=...>".utf8), Array("%PDF-1.7\n".utf8),
      Array("PK\u{3}\u{4}".utf8), Array("RIFF\0\0\0\0WAVE".utf8), Array("BMX-XBMX-X".utf8),
      Self.box("ftyp", "M4A "), Self.box("free", "heic"), Array("\0\0\0\u{18}ftyphei".utf8),
    ]
    for bytes in others { #expect(PhotoType(beginning: bytes) == nil, "\(bytes)") }
    // However little of one there is.
    for (bytes, _) in Self.known {
      for length in 0..<bytes.count { _ = PhotoType(beginning: Array(bytes.prefix(length))) }
    }
  }

  /// A name can't make something else of it.
  @Test func extensionFitsTheContent() throws {
    let jpeg = try #require(PhotoType(beginning: Self.padded([0xff, 0xd8, 0xff])))
    for (name, expected) in [
      ("a.jpg", "jpg"), ("a.JPEG", "jpeg"), ("a", "jpg"), ("a.png", "jpg"), ("a.desktop", "jpg"),
      (".", "jpg"), ("a.jpg/b", "jpg"), ("", "jpg"), ("a.jpg.sh", "jpg"),
    ] {
      #expect(jpeg.fileExtension(for: name) == expected, "\(name)")
    }
    let raw = try #require(PhotoType(beginning: Self.padded(Array("II*\0".utf8))))
    #expect(raw.fileExtension(for: "IMG_1.DNG") == "dng")
  }
}
