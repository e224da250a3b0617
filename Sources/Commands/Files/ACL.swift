// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// `insula acl`.
struct ACLCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "acl", summary: "Shows or changes ACLs, with the syntax of chmod and ls on macOS.",
    arguments: [
      .init(
        name: "FILE", help: "files whose ACLs to show or change", isRequired: true, kind: .file,
        isRepeated: true)
    ],
    options: [
      .init(name: "R", short: "R", help: "process directories recursively; symbolic links are not followed"),
      CommandDescription.json,
    ],
    actions: [
      .init(word: "+a", values: ["ENTRY"], help: "add an entry where canonical order requires"),
      .init(word: "+ai", values: ["ENTRY"], help: "the same, marked as inherited"),
      .init(word: "+a#", values: ["N", "ENTRY"], help: "insert an entry as number N, counted from 0"),
      .init(word: "+ai#", values: ["N", "ENTRY"], help: "the same, marked as inherited"),
      .init(word: "-a", values: ["ENTRY"], help: "remove the rights of ENTRY, inherited or not"),
      .init(word: "-a#", values: ["N"], help: "remove entry N"),
      .init(word: "=a#", values: ["N", "ENTRY"], help: "replace entry N"),
      .init(word: "-E", help: "replace the ACL by the entries on standard input, one per line"),
      .init(word: "-C", help: "check canonical order; exit code 1 if an ACL is not in it"),
      .init(word: "-i", help: "turn inherited entries into the file's own"),
      .init(word: "-I", help: "remove inherited entries"),
      .init(word: "-N", help: "remove the ACL"),
    ],
    change: .init(name: "ACTION", help: "one of the actions below; without one, show ACLs"),
    details: [
      """
      ENTRY is '[user:|group:]NAME allow|deny WORD,...'. A ':' can replace each blank, so that names can
      contain blanks. NAME is an account, or 'everyone', 'owner' or 'group' (the file's own). For an id or
      UUID without an account, write 'user:' or 'group:' before it. '-E' accepts what this command shows.
      """,
      """
      An action that is also the name of a file in the working directory is refused, and so is an option of
      one: a '*' could have been replaced by that name. Names after '--' are those of files.
      """,
      wordsParagraph,
    ],
    examples: [
      "insula acl Documents", "insula acl +a 'user:anna allow list,search,add_file' Documents",
      "insula acl +a 'group:staff allow read,file_inherit,directory_inherit' Projects",
      "insula acl -a# 0 Documents", "insula acl From | insula acl -E To",
    ])

  /// All words, broken into lines.
  private static var wordsParagraph: String {
    var lines = [
      "WORD is a right (some have different words for files and directories) or controls inheritance:"
    ]
    for word in EntryWords.all {
      if let last = lines.last, lines.count > 1, last.count + word.count < 105 {
        lines[lines.count - 1] += " " + word
      } else {
        lines.append("  " + word)
      }
    }
    return lines.joined(separator: "\n")
  }

  private enum Task {
    case show
    case check
    case edit(ACLEdit)
  }

  private let paths: [String]
  private let action: ParsedArguments.Action?
  private let isRecursive: Bool
  private let optionWords: [String]
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    paths = arguments.positional
    action = arguments.action
    isRecursive = arguments.has("R")
    optionWords = arguments.optionWords
    json = arguments.has("json")
    if let action, json {
      throw Self.description.error("'--json' can't be combined with '\(action.word)', which shows no ACLs")
    }
    if let action, action.word.hasSuffix("#") { _ = try Self.index(action) }
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    switch try task(context) {
    case .show: return show(context)
    case .check: return check(context)
    case .edit(let edit): return change(edit, context)
    }
  }

  private func change(_ edit: ACLEdit, _ context: Context) -> ExitCode {
    var walk = FileWalk(context)
    // The ACL may be what keeps its owner from looking at the file.
    walk.visit(paths, recursively: isRecursive, followingLinks: !isRecursive, looking: isRecursive) {
      object throws in
      if isRecursive { try object.requireNoLink() }
      let security = ObjectSecurity(fd: object.fd, aliases: context.aliases)
      // These two need not know what is there, which may be damaged.
      let current: AccessControlList?
      switch edit {
      case .removeACL, .replaceAll: current = nil
      default: current = try security.acl()
      }
      let acl: AccessControlList?
      do throws(ACLEditError) {
        acl = try edit.applied(to: current)
      } catch {
        throw CommandFailure(error, context.names)
      }
      try security.setACL(acl)
      if let place = Self.passedOver(edit, current) {
        context.console.note(
          "\(object.path): the ACL had no entries, so the entry is number 0 and not \(place)")
      }
    }
    return walk.exitCode
  }

  /// The place that was asked for where no entry was: as on a Mac it counts as the first, but that should not
  /// go unseen.
  private static func passedOver(_ edit: ACLEdit, _ current: AccessControlList?) -> Int? {
    guard current?.entries.isEmpty ?? true else { return nil }
    return switch edit {
    case .insert(_, let index) where index > 0: index
    case .replace(let index, _) where index > 0: index
    default: nil
    }
  }

  private func check(_ context: Context) -> ExitCode {
    var walk = FileWalk(context)
    walk.visit(paths, recursively: isRecursive, followingLinks: !isRecursive) { object throws in
      if isRecursive { try object.requireNoLink() }
      let acl = try ObjectSecurity(fd: object.fd, aliases: context.aliases).acl()
      guard acl?.isCanonical ?? true else {
        throw CommandFailure(.failed, "its ACL is not in canonical order")
      }
    }
    return walk.exitCode
  }

  private func show(_ context: Context) -> ExitCode {
    var walk = FileWalk(context)
    var found: [ACLDescription] = []
    walk.visit(paths, recursively: isRecursive, followingLinks: !isRecursive) { object throws in
      if isRecursive { try object.requireNoLink() }
      let acl = try ObjectSecurity(fd: object.fd, aliases: context.aliases).acl()
      // A whole tree is searched for its ACLs; who names a file wants to know also that it has none.
      if isRecursive && acl == nil { return }
      let isDirectory = object.status.isDirectory
      if json {
        return found.append(ACLDescription(object.path, acl, isDirectory: isDirectory, context.names))
      }
      let lines = acl?.lines(isDirectory: isDirectory, names: context.names) ?? []
      if lines.isEmpty {
        context.console.print("\(object.path): \(acl == nil ? "no ACL" : "an empty ACL")")
      } else {
        if isRecursive || paths.count > 1 { context.console.print("\(object.path):") }
        for line in lines { context.console.print(line) }
      }
    }
    if json { context.console.print(json: found) }
    return walk.exitCode
  }

  /// What the action asks for; reads standard input for `-E`.
  private func task(_ context: Context) throws -> Task {
    guard let action else { return .show }
    try context.requireNoFile(named: action.written, Self.description)
    try context.requireNoFiles(namedAs: optionWords, Self.description)
    func entries() throws -> [AccessControlEntry] {
      try self.entries(action.values.last ?? "", context.names).map { entry in
        var entry = entry
        if action.word.contains("i") { entry.inheritance.insert(.inherited) }
        return entry
      }
    }
    switch action.word {
    case "+a", "+ai": return .edit(.add(try entries()))
    case "+a#", "+ai#": return .edit(.insert(try entries(), at: try Self.index(action)))
    case "-a": return .edit(.subtract(try entries()))
    case "-a#": return .edit(.remove(at: try Self.index(action)))
    case "=a#": return .edit(.replace(at: try Self.index(action), with: try entries()))
    case "-E":
      let bytes = try context.input(AccessControlList.maximumTextLength + 1)
      return .edit(.replaceAll(try self.entries(String(decoding: bytes, as: UTF8.self), context.names)))
    case "-C": return .check
    case "-i": return .edit(.disown)
    case "-I": return .edit(.removeInherited)
    case "-N": return .edit(.removeACL)
    default: throw Self.description.error("unknown action '\(action.word)'")
    }
  }

  private func entries(_ text: String, _ names: AccountNames) throws(CommandFailure) -> [AccessControlEntry] {
    do throws(EntryTextError) {
      return try AccessControlList.entries(text: text, names: names)
    } catch {
      throw CommandFailure(error)
    }
  }

  private static func index(_ action: ParsedArguments.Action) throws(UsageError) -> Int {
    let text = action.values.first ?? ""
    guard !text.isEmpty, text.allSatisfy({ ("0"..."9").contains($0) }), let index = Int(text),
      index <= AccessControlList.maximumCount
    else {
      throw description.error(
        "'\(action.word)' requires a number from 0 to \(AccessControlList.maximumCount), not '\(text)'")
    }
    return index
  }
}
