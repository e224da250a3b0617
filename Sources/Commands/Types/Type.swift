// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// `insula type`.
struct TypeCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "type", summary: "Says what files are: their uniform type identifiers and kinds.",
    arguments: [
      .init(name: "FILE", help: "a file or directory", isRequired: true, kind: .file, isRepeated: true)
    ],
    options: [
      .init(name: "tree", help: "also show all types that each one conforms to"),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The type follows from the characters after the last period of the name, never from the contents.
      Installed apps can declare types; what no app and not the base system declares is taken from the
      machine's MIME types (shared-mime-info). An extension that nobody knows has a type of its own ('dyn.').
      """
    ],
    examples: ["insula type Letter.txt", "insula type --tree *"],
    storeUse: .looks)

  private let files: [String]
  private let tree: Bool
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    files = arguments.positional
    tree = arguments.has("tree")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  /// One file, for programs.
  private struct Answer: Encodable {
    let path: String
    let type: String
    let kind: String
    let mimeType: String?
    let isPackage: Bool
    let conformsTo: [String]
  }

  func run(in context: Context) throws -> ExitCode {
    let table = try KnownDocuments.find(store, context).table
    var answers: [Answer] = []
    var code = ExitCode.ok
    for path in files {
      do {
        let file = try ExaminedFile(path, context)
        let type = file.type(in: table)
        answers.append(
          Answer(
            path: path, type: type.identifier, kind: table.kind(of: type),
            mimeType: table.mimeType(of: type, named: file.name), isPackage: file.isPackage(in: table),
            conformsTo: table.ancestors(of: type.identifier).dropFirst().map(\.identifier)))
      } catch {
        context.console.note(CommandFailure(error))
        code = .failed
      }
    }
    if json {
      context.console.print(json: answers)
      return code
    }
    for answer in answers {
      context.console.print("\(answer.path.sanitized): \(answer.type) (\(answer.kind))")
      if tree { context.console.print(lines: answer.conformsTo.map { "    \($0)" }) }
    }
    return code
  }
}
