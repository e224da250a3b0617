// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The types of files by which an app asks for one.
enum FileType {
  /// The extensions that stand for a type; nil for one that is not known here.
  static func extensions(of type: String) -> [String]? {
    if type.hasPrefix(".") { return [String(type.dropFirst()).lowercased()] }
    return known[type.lowercased()]
  }

  /// Whether all files are meant: there are no types, or one of them is not known here, and then nobody could
  /// say which files are not of it.
  static func areAll(_ types: [String]) -> Bool {
    types.isEmpty || types.contains { all.contains($0.lowercased()) || extensions(of: $0) == nil }
  }

  /// The extensions of all of these.
  static func extensions(of types: [String]) -> [String] {
    var found: [String] = []
    for type in types.flatMap({ extensions(of: $0) ?? [] }) where !found.contains(type) { found.append(type) }
    return found
  }

  /// Whether a file is of one of the types, by its name.
  static func matches(_ name: String, _ types: [String]) -> Bool {
    if areAll(types) { return true }
    let name = name.lowercased()
    return extensions(of: types).contains { name.hasSuffix(".\($0)") && name.utf8.count > $0.utf8.count + 1 }
  }

  private static let all = ["public.item", "public.content", "public.data"]

  private static let images = [
    "png", "jpg", "jpeg", "gif", "tif", "tiff", "heic", "webp", "bmp", "svg", "avif",
  ]
  private static let sounds = ["mp3", "m4a", "aac", "flac", "wav", "aif", "aiff", "ogg", "opus"]
  private static let movies = ["mp4", "m4v", "mov", "mkv", "webm", "avi", "mpg", "mpeg"]
  private static let sources = [
    "c", "h", "cc", "cpp", "m", "swift", "py", "sh", "rb", "js", "rs", "go", "java",
  ]

  private static let known: [String: [String]] = [
    "public.text": ["txt", "text", "md", "html", "htm", "xml", "csv", "rtf", "json"] + sources,
    "public.plain-text": ["txt", "text", "md", "csv"] + sources, "public.utf8-plain-text": ["txt", "text"],
    "public.source-code": sources, "public.script": ["sh", "py", "rb", "js"], "public.shell-script": ["sh"],
    "public.rtf": ["rtf"], "public.html": ["html", "htm"], "public.xml": ["xml"], "public.json": ["json"],
    "public.comma-separated-values-text": ["csv"], "public.vcard": ["vcf"], "public.calendar-event": ["ics"],
    "net.daringfireball.markdown": ["md", "markdown"], "com.adobe.pdf": ["pdf"],
    "public.image": images, "public.png": ["png"], "public.jpeg": ["jpg", "jpeg"],
    "com.compuserve.gif": ["gif"], "public.tiff": ["tif", "tiff"], "public.heic": ["heic"],
    "public.svg-image": ["svg"], "public.audiovisual-content": sounds + movies, "public.audio": sounds,
    "public.mp3": ["mp3"], "public.movie": movies, "public.mpeg-4": ["mp4", "m4v"],
    "com.apple.quicktime-movie": ["mov"], "public.archive": ["zip", "tar", "gz", "tgz", "xz", "zst", "7z"],
    "public.zip-archive": ["zip"], "org.gnu.gnu-zip-archive": ["gz", "tgz"],
  ]
}
