// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// `insula types`.
struct TypesCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "types", summary: "Lists the types that are declared, or shows what is declared of one.",
    arguments: [
      .init(name: "TYPE", help: "an identifier, or an extension with a period before it: '.md'")
    ],
    options: [AppsAccess.storeOption, CommandDescription.json],
    examples: ["insula types public.jpeg", "insula types .md"],
    storeUse: .looks)

  private let type: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    type = arguments.argument(0)
    store = arguments.value("store")
    json = arguments.has("json")
  }

  /// One type, for programs.
  private struct Answer: Encodable {
    let type: String
    let kind: String
    let extensions: [String]
    let mimeTypes: [String]
    let conformsTo: [String]
    let apps: [String]
  }

  func run(in context: Context) throws -> ExitCode {
    let known = try KnownDocuments.find(store, context)
    func answer(_ type: DeclaredType) -> Answer {
      Answer(
        type: type.identifier, kind: known.table.kind(of: type), extensions: type.extensions,
        mimeTypes: type.mimeTypes,
        conformsTo: known.table.ancestors(of: type.identifier).dropFirst().map(\.identifier),
        apps: known.declarers(of: type.identifier))
    }
    guard let type else {
      context.console.print(
        list: known.table.all.inOrder { $0.identifier < $1.identifier }.map(answer), json: json,
        none: "No types are declared.", columns: ["TYPE", "EXTENSIONS", "KIND"]
      ) { [$0.type, $0.extensions.joined(separator: " "), $0.kind] }
      return .ok
    }
    let found = answer(try known.type(named: type))
    if json {
      context.console.print(json: found)
      return .ok
    }
    context.console.print("\(found.type) (\(found.kind))")
    let rows = [
      ("  extensions", found.extensions), ("  MIME types", found.mimeTypes),
      ("  conforms to", found.conformsTo), ("  declared by", found.apps),
    ]
    context.console.print(
      table: rows.filter { !$0.1.isEmpty }.map { [$0.0, $0.1.joined(separator: ", ").sanitized] })
    return .ok
  }
}
