// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula open-panel`.
struct OpenPanelCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "open-panel", summary: "Has an app's user choose a file for the app; for use inside an app.",
    options: [
      .init(
        name: "types", value: "TYPE,...",
        help: "offer only files of these types: extensions (txt) or type identifiers (public.image)"),
      .init(name: "folder", help: "have a folder chosen"),
      .init(name: "save", value: "NAME", help: "have a place chosen for a file to save, first called NAME"),
      CommandDescription.json,
    ],
    details: [
      """
      The user is shown which app asks, and chooses in the whole tree. The app is granted what they choose, at
      its real path, as if they had used 'insula grant'. The path is printed, one to a line. With --save, the
      file is there when this returns, and empty if it is new.
      """,
      """
      The exit status is \(ExitCode.undecided.rawValue) if the user cancels, and \
      \(ExitCode.notPermitted.rawValue) if the app may not ask or nobody is there to
      ask.
      """,
    ],
    examples: [
      "insula open-panel --types txt,md", "insula open-panel --folder", "insula open-panel --save Letter.txt",
    ])

  private let request: PanelRequest
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    let types = try arguments.value("types").map(Self.types) ?? []
    let name = arguments.value("save")
    guard name == nil || !arguments.has("folder") else {
      throw Self.description.error("'--folder' and '--save' can't be combined; give one of them")
    }
    guard types.isEmpty || !arguments.has("folder") else {
      throw Self.description.error("'--types' is for files; leave it out with '--folder'")
    }
    if let name, name.utf8.contains(UInt8(ascii: "/")) || name == "." || name == ".." || name.utf8.count > 255
    {
      throw Self.description.error(
        "'\(name.sanitized)' is not the name of a file; give a name without a slash")
    }
    request = PanelRequest(
      name != nil ? .save : arguments.has("folder") ? .folder : .file, name: name, types: types)
    json = arguments.has("json")
  }

  /// Extensions begin with a dot in the request, and may here.
  private static func types(_ list: String) throws(UsageError) -> [String] {
    var types: [String] = []
    for word in list.parts(between: ",", keepingEmpty: true).map(String.init) {
      let isType =
        word.utf8.count <= 128 && word != "." && !word.isEmpty
        && word.unicodeScalars.allSatisfy {
          $0.properties.isAlphabetic || ("0"..."9").contains($0) || "-_+.".unicodeScalars.contains($0)
        }
      guard isType else {
        throw description.error(
          "'\(word.sanitized)' is neither an extension such as txt nor a type identifier such as public.image"
        )
      }
      types.append(word.contains(".") ? word : ".\(word)")
    }
    guard types.count <= 64 else { throw description.error("'--types' takes at most 64 types") }
    return types
  }

  func run(in context: Context) throws -> ExitCode {
    let own = try AppAccess.require(
      Self.description, context, instead: "'insula grant ID PATH' gives an app a file")
    guard let chosen = try own.openPanel(request) else {
      context.console.inform("open-panel: nothing was chosen")
      return .undecided
    }
    let places = chosen.map { place in
      var place = place
      place.path = "\(own.root)/\(place.path)"
      return place
    }
    if json { context.console.print(json: places) }
    for place in places where !json { context.console.print(path: place.path) }
    return .ok
  }
}
