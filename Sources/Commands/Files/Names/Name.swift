// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// `insula name`.
struct NameCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "name", summary: "Shows what files are called for a person, in their language.",
    arguments: [
      .init(
        name: "PATH", help: "files and directories, which need not be in a store", isRequired: true,
        kind: .file, isRepeated: true)
    ],
    options: [
      languageOption,
      .init(name: "hide-extension", help: "hide the extension of these files from now on"),
      .init(name: "show-extension", help: "show the extension of these files from now on"),
      CommandDescription.json,
    ],
    details: [
      """
      The name on disk stays as it is, and paths are made of that alone. A directory X.localized, a standard
      directory and an app have names in other languages; documents are shown without their extensions, unless
      the store was created with --show-extensions.
      """
    ],
    examples: ["insula name ~/Documents --language ja", "insula name --show-extension report.pdf"])

  static let languageOption = CommandDescription.Option(
    name: "language", value: "LANGUAGE",
    help: "such as de, pt-BR or zh-Hans (default: LC_ALL, LC_MESSAGES, LANG, LANGUAGE)")

  private let paths: [String]
  private let language: Languages?
  /// Whether extensions are to be hidden from now on.
  private let hides: Bool?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    paths = arguments.positional
    language = try Self.description.language(arguments)
    json = arguments.has("json")
    let (hide, show) = (arguments.has("hide-extension"), arguments.has("show-extension"))
    if hide, show {
      throw Self.description.error("'--hide-extension' and '--show-extension' can't be combined")
    }
    hides = hide || show ? hide : nil
    guard hides == nil || !json && language == nil else {
      throw Self.description.error("a change shows no names: leave '--json' and '--language' out")
    }
  }

  var goesByConfiguration: Bool { false }

  /// A file for programs.
  private struct Answer: Encodable {
    let file: String
    let name: String
    let hidden: Bool
  }

  func run(in context: Context) throws -> ExitCode {
    var walk = FileWalk(context)
    var view = FinderView(language ?? Languages(environment: context.environment), context)
    var answers: [Answer] = []
    walk.visit(paths, recursively: false, followingLinks: false) { object throws in
      let name = context.name(of: object.path)
      if let hides { return try setHidden(hides, name, object) }
      let shown = view.look(at: object.fd, called: Array(name.utf8), object.status)
      if json {
        answers.append(Answer(file: object.path, name: shown.name, hidden: shown.isHidden))
      } else {
        context.console.print(paths.count > 1 ? "\(object.path): \(shown.name)" : shown.name)
      }
    }
    if json { context.console.print(json: answers) }
    return walk.exitCode
  }

  private func setHidden(_ hides: Bool, _ name: String, _ object: FileWalk.Object) throws {
    guard DisplayName.split(name).ending != nil else {
      throw CommandFailure(.failed, "its name has no extension that could be hidden or shown")
    }
    guard object.status.isRegular || object.status.isDirectory else {
      throw CommandFailure(.failed, "is neither a file nor a directory, and only those can be marked")
    }
    var info = object.fd.finderInfo
    info[.hidesExtension] = hides
    try object.fd.setAttributeValue(FinderInfo.attribute, to: info.isEmpty ? nil : info.bytes)
    try object.fd.setAttributeValue(ExtensionChoice.attribute, to: hides ? nil : ExtensionChoice.shown)
  }
}

extension CommandDescription {
  /// The language that was asked for; nil if none was.
  func language(_ arguments: ParsedArguments) throws(UsageError) -> Languages? {
    guard let word = arguments.value("language") else { return nil }
    guard let language = Languages(word) else {
      throw error("'\(word)' is not a language; give one such as de, pt-BR or zh-Hans")
    }
    return language
  }
}
