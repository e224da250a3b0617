// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// `insula flags`.
struct FlagsCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "flags", summary: "Shows or changes BSD flags, with the words of chflags on macOS.",
    arguments: [
      .init(
        name: "FILE", help: "files whose flags to show or change", isRequired: true, kind: .file,
        isRepeated: true)
    ],
    options: [
      .init(name: "R", short: "R", help: "process directories recursively; symbolic links are not followed"),
      .init(name: "no-follow", help: "process a symbolic link itself instead of its target"),
      CommandDescription.json,
    ],
    change: .init(name: "CHANGE", help: "flags to set or clear, such as uchg,nohidden or +uchg,-hidden"),
    isArgument: { $0.hasPrefix("-") && (try? FlagChange($0)) != nil },
    details: [
      """
      The owner's flags: uchg (the file can't be changed), uappnd (it can only be appended to), hidden,
      opaque, nodump. Root's flags: schg and sappnd (as uchg and uappnd, but only root can clear them), sunlnk
      (the file can't be removed), arch. Until they are cleared, the flags apply to root too.
      """,
      """
      'no' before a flag clears it ('dump' clears nodump). A '+' or '-' sets or clears all flags that follow
      it. A change without a sign comes before the files; write './uchg' for a file with the name of a flag.
      Where there is such a file, the change is refused, and so it is where one has the name of its option: a
      '*' could have been replaced by its name.
      """,
    ],
    examples: [
      "insula flags Documents", "insula flags uchg,hidden Notes.txt", "insula flags -R nouchg Documents",
      "insula flags Notes.txt -uchg",
    ])

  private let paths: [String]
  private let change: FlagChange?
  /// The word that it was read from.
  private let written: String?
  private let isRecursive: Bool
  private let optionWords: [String]
  private let followsLinks: Bool
  private let json: Bool
  /// A first word that was taken for a file, and why it is no change.
  private let unknown: UnknownFlag?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    isRecursive = arguments.has("R")
    optionWords = arguments.optionWords
    followsLinks = !arguments.has("no-follow")
    json = arguments.has("json")
    var paths = arguments.positional
    var changes: [(change: FlagChange, word: String)] = []
    var unknown: UnknownFlag?
    // As chflags has it, in front; with a sign it can't be meant for a file, wherever it stands.
    if paths.count > 1, let first = paths.first {
      do throws(UnknownFlag) {
        changes.append((try FlagChange(first), first))
        paths.removeFirst()
      } catch {
        unknown = error
      }
    }
    paths.removeAll { path in
      guard path.hasPrefix("+") || path.hasPrefix("-"), let change = try? FlagChange(path) else {
        return false
      }
      changes.append((change, path))
      return true
    }
    guard changes.count <= 1 else {
      throw Self.description.error("more than one change; combine them into one with commas")
    }
    guard !paths.isEmpty else { throw Self.description.error("FILE is missing") }
    if json, !changes.isEmpty {
      throw Self.description.error("'--json' can't be combined with a change, which shows no flags")
    }
    self.paths = paths
    self.unknown = unknown
    change = changes.first?.change
    written = changes.first?.word
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    if let written {
      try context.requireNoFile(named: written, Self.description)
      try context.requireNoFiles(namedAs: optionWords, Self.description)
    }
    if change == nil, paths.count > 1, let unknown, !context.mayBeThere(paths[0]) {
      throw Self.description.error(
        "'\(paths[0])' does not exist as a file, and there is no flag '\(unknown.word)'")
    }
    // Each may be a file's name, unless there is no such file.
    if let second = paths.first(where: { (try? FlagChange($0)) != nil && !context.mayBeThere($0) }) {
      throw Self.description.error(
        change == nil
          ? "FILE is missing, and there is no file '\(second)'; flags are changed by "
            + "'insula flags \(second) FILE'"
          : "there is no file '\(second)'; combine several changes into one with commas")
    }
    var walk = FileWalk(context)
    var found: [FlagsDescription] = []
    walk.visit(paths, recursively: isRecursive, followingLinks: followsLinks && !isRecursive) {
      object throws in
      if isRecursive && followsLinks { try object.requireNoLink() }
      let security = ObjectSecurity(fd: object.fd, aliases: context.aliases)
      let flags = try security.flags()
      if let change {
        let changed = change.applied(to: flags)
        if changed != flags { try security.setFlags(changed) }
        return
      }
      // A whole tree is searched for what has flags.
      if isRecursive && flags.isEmpty { return }
      if json { return found.append(FlagsDescription(file: object.path, flags: flags.wordList)) }
      let words = flags.isEmpty ? "-" : flags.words
      context.console.print(isRecursive || paths.count > 1 ? "\(object.path): \(words)" : words)
    }
    if json { context.console.print(json: found) }
    return walk.exitCode
  }
}
