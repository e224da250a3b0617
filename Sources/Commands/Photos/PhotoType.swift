// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a photo or video is, by how it begins: what an app says of it proves nothing.
struct PhotoType: Equatable, Sendable {
  /// The extensions that names of such files have, the usual one first.
  let extensions: [String]

  /// How much of a file shows what it is.
  static let beginning = 16

  /// The type of what begins so; nil for what is neither a photo nor a video.
  init?(beginning bytes: [UInt8]) {
    guard let known = Self.extensions(bytes) else { return nil }
    extensions = known
  }

  /// What the name of such a file ends in: as that of `name` where it fits, and else as usual.
  func fileExtension(for name: String) -> String {
    let dot = name.lastIndex(of: ".")
    let own = dot.map { name[name.index(after: $0)...].lowercased() }
    return extensions.first { $0 == own } ?? extensions.first ?? ""
  }

  private static func extensions(_ bytes: [UInt8]) -> [String]? {
    func has(_ text: String, at offset: Int = 0) -> Bool {
      bytes.count >= offset + text.utf8.count && bytes.dropFirst(offset).starts(with: text.utf8)
    }
    if bytes.starts(with: [0xff, 0xd8, 0xff]) { return ["jpg", "jpeg"] }
    if bytes.starts(with: [0x89]), has("PNG\r\n\u{1a}\n", at: 1) { return ["png"] }
    if has("GIF87a") || has("GIF89a") { return ["gif"] }
    if has("RIFF"), has("WEBP", at: 8) { return ["webp"] }
    // What cameras call raw has the form of TIFF.
    if has("II*\0") || has("MM\0*") {
      return ["tif", "tiff", "dng", "cr2", "nef", "arw", "pef", "srw"]
    }
    // Two of its numbers are reserved, and zero.
    if has("BM"), has("\0\0\0\0", at: 6) { return ["bmp"] }
    if bytes.starts(with: [0, 0, 0, 12]), has("JXL \r\n", at: 4) { return ["jxl"] }
    guard bytes.count >= beginning else { return nil }
    // The first box of an ISO base media file says which kind of one it is.
    if has("ftyp", at: 4) { return extensions(brand: String(decoding: bytes[8..<12], as: UTF8.self)) }
    // QuickTime did without it.
    return ["moov", "mdat", "wide"].contains { has($0, at: 4) } ? ["mov"] : nil
  }

  private static func extensions(brand: String) -> [String]? {
    switch brand {
    case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1": ["heic", "heif", "heics", "avif"]
    case "avif", "avis": ["avif", "heif"]
    case "crx ": ["cr3"]
    case "qt  ": ["mov"]
    case "isom", "iso2", "iso4", "iso5", "iso6", "mp41", "mp42", "avc1", "M4V ", "M4VH", "M4VP", "MSNV",
      "3gp4", "3gp5", "3gp6", "3g2a":
      ["mp4", "m4v", "mov", "3gp", "3g2"]
    // Sound, for example.
    default: nil
    }
  }
}
