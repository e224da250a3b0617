// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// `insula acl`.
struct ACLCommand: Command {
  static let description = CommandDescription(
    name: "acl", summary: "Shows or changes access control lists, in the words of Mac's chmod and ls.",
    arguments: [.init(name: "FILE", help: "whose list", isRequired: true, kind: .file, isRepeated: true)],
    options: [
      .init(name: "R", short: "R", help: "with all that is in a directory; no link is followed"),
      CommandDescription.json,
    ],
    actions: [
      .init(word: "+a", values: ["ENTRY"], help: "add it where canonical order wants it"),
      .init(word: "+ai", values: ["ENTRY"], help: "the same, as if it had been inherited"),
      .init(word: "+a#", values: ["N", "ENTRY"], help: "put it in place N, counted from 0"),
      .init(word: "+ai#", values: ["N", "ENTRY"], help: "the same, as if it had been inherited"),
      .init(word: "-a", values: ["ENTRY"], help: "take away what it says, inherited or not"),
      .init(word: "-a#", values: ["N"], help: "remove entry N"),
      .init(word: "=a#", values: ["N", "ENTRY"], help: "replace entry N"),
      .init(word: "-E", help: "replace the list by the entries on standard input, one to a line"),
      .init(word: "-C", help: "exit code 1 if a list is not in canonical order"),
      .init(word: "-i", help: "make inherited entries the file's own"),
      .init(word: "-I", help: "remove inherited entries"),
      .init(word: "-N", help: "remove the list"),
    ],
    change: .init(name: "ACTION", help: "what to do, from below; without one the lists are shown"),
    details: [
      "ENTRY is '[user:|group:]NAME allow|deny WORD,...'. "
        + "A ':' instead of the blanks allows blanks in the name.\n"
        + "'everyone', 'owner' and 'group' (the file's own) are names too. "
        + "Without an account, 'user:' or 'group:'\n"
        + "may be followed by an id or a UUID. What is shown is understood again, so '-E' takes it.",
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
      "WORD is a right (files and directories have their own words for some) or says what is inherited:"
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
    case edit(ListEdit)
  }

  private let paths: [String]
  private let action: ParsedArguments.Action?
  private let isRecursive: Bool
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    paths = arguments.positional
    action = arguments.action
    isRecursive = arguments.has("R")
    json = arguments.has("json")
    if let action, json {
      throw Self.description.error("'--json' shows lists, and '\(action.word)' shows none")
    }
    if let action, action.word.hasSuffix("#") { _ = try Self.index(action) }
  }

  func run(in context: Context) throws -> ExitCode {
    switch try task(context) {
    case .show: return show(context)
    case .check: return check(context)
    case .edit(let edit): return change(edit, context)
    }
  }

  private func change(_ edit: ListEdit, _ context: Context) -> ExitCode {
    var walk = FileWalk(context)
    // The list may be what keeps its owner from looking at the file.
    walk.visit(paths, recursively: isRecursive, followingLinks: !isRecursive, looking: isRecursive) {
      object throws in
      if isRecursive { try object.requireNoLink() }
      let security = ObjectSecurity(fd: object.fd, doors: context.doors)
      // These two need not know what is there, which may be damaged.
      let current: AccessControlList?
      switch edit {
      case .removeList, .replaceAll: current = nil
      default: current = try security.list()
      }
      let list: AccessControlList?
      do throws(ListEditError) {
        list = try edit.applied(to: current)
      } catch {
        throw CommandFailure(error, context.names)
      }
      try security.setList(list)
      if let place = Self.passedOver(edit, current) {
        context.console.note(
          "\(object.path): it had no entries, so there is no place \(place); the entry is number 0")
      }
    }
    return walk.exitCode
  }

  /// The place that was asked for where no entry was: as on a Mac it counts as the first, but that should not
  /// go unseen.
  private static func passedOver(_ edit: ListEdit, _ current: AccessControlList?) -> Int? {
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
      let list = try ObjectSecurity(fd: object.fd, doors: context.doors).list()
      guard list?.isCanonical ?? true else {
        throw CommandFailure(.failed, "its list is not in canonical order")
      }
    }
    return walk.exitCode
  }

  private func show(_ context: Context) -> ExitCode {
    var walk = FileWalk(context)
    var found: [ListDescription] = []
    walk.visit(paths, recursively: isRecursive, followingLinks: !isRecursive) { object throws in
      if isRecursive { try object.requireNoLink() }
      let list = try ObjectSecurity(fd: object.fd, doors: context.doors).list()
      // A whole tree is searched for its lists; who names a file wants to know also that it has none.
      if isRecursive && list == nil { return }
      let isDirectory = object.status.isDirectory
      if json {
        return found.append(ListDescription(object.path, list, isDirectory: isDirectory, context.names))
      }
      let lines = list?.lines(isDirectory: isDirectory, names: context.names) ?? []
      if lines.isEmpty {
        context.console.print("\(object.path): \(list == nil ? "no list" : "an empty list")")
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
    case "-N": return .edit(.removeList)
    default: throw Self.description.error("'\(action.word)' is not known")
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
        "'\(action.word)' takes a number from 0 to \(AccessControlList.maximumCount), not '\(text)'")
    }
    return index
  }
}

/// A list for programs.
struct ListDescription: Encodable {
  struct Entry: Encodable {
    let index: Int
    let principal: String
    let uuid: String
    let verb: String
    let inherited: Bool
    /// Rights and inheritance, as they are printed.
    let words: [String]
  }

  let file: String
  /// Missing if there is no list, which is not the same as an empty one.
  let entries: [Entry]?
  let canonical: Bool?

  init(_ file: String, _ list: AccessControlList?, isDirectory: Bool, _ names: AccountNames) {
    self.file = file
    canonical = list?.isCanonical
    entries = list?.entries.enumerated().map { index, entry in
      Entry(
        index: index, principal: entry.principal.text(names: names), uuid: entry.principal.uuid,
        verb: entry.kind.verb, inherited: entry.inheritance.contains(.inherited),
        words: entry.words(isDirectory: isDirectory))
    }
  }
}
