// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula ls`.
struct ListCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "ls", summary: "Lists files as ls does on macOS, with ACLs, flags and attributes.",
    arguments: [
      .init(
        name: "FILE", help: "what to list (default: the current directory)", kind: .file, isRepeated: true)
    ],
    options: [
      .init(
        name: "l", short: "l",
        help: "long format: mode ('@': has attributes, '+': has an ACL), links, owner, group, size, time"
      ),
      .init(name: "e", short: "e", help: "with -l, show ACLs too"),
      .init(name: "O", short: "O", help: "with -l, show flags too"),
      .init(name: "@", short: "@", help: "with -l, show names and sizes of extended attributes too"),
      .init(name: "a", short: "a", help: "include names that begin with a dot"),
      .init(name: "A", short: "A", help: "the same, without '.' and '..'"),
      .init(name: "d", short: "d", help: "list directories themselves, not their contents"),
      .init(name: "R", short: "R", help: "list directories recursively"),
      .init(name: "n", short: "n", help: "as -l, with numeric owners and groups"),
      .init(name: "h", short: "h", help: "show sizes with a unit"),
      .init(name: "T", short: "T", help: "show the full time, with seconds and year"),
      .init(name: "t", short: "t", help: "sort by time, newest first"),
      .init(name: "S", short: "S", help: "sort by size, largest first"),
      .init(name: "r", short: "r", help: "reverse the order"),
      .init(name: "i", short: "i", help: "show inode numbers"),
      .init(name: "F", short: "F", help: "append a character that shows the type to each name"),
      .init(
        name: "finder",
        help: "show what Finder shows: names in your language, packages as one, nothing hidden"),
      .init(name: "1", short: "1", help: "one name per line (always on)"),
      CommandDescription.json,
    ],
    details: [
      """
      This works on any filesystem, but only insula mounts have ACLs and flags. On a terminal, characters of a
      name that can't be shown are replaced by question marks; otherwise names are printed as they are.
      """
    ],
    examples: ["insula ls -le", "insula ls -leO@ Documents", "insula ls -lde Documents"])

  private let paths: [String]
  private let options: ListingOptions

  init(_ arguments: ParsedArguments) {
    paths = arguments.positional.isEmpty ? ["."] : arguments.positional
    options = ListingOptions(arguments)
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    var listing = Listing(options, context)
    listing.show(paths)
    return listing.exitCode
  }
}
