// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// `insula ls`.
struct ListCommand: Command {
  static let description = CommandDescription(
    name: "ls", summary: "Lists files as Mac's ls does, with access control lists, flags and attributes.",
    arguments: [
      .init(name: "FILE", help: "what to list (default: this directory)", kind: .file, isRepeated: true)
    ],
    options: [
      .init(
        name: "l", short: "l", help: "mode, links, owner, group, size, time; '@' has attributes, '+' a list"),
      .init(name: "e", short: "e", help: "access control lists too, with -l"),
      .init(name: "O", short: "O", help: "flags too, with -l"),
      .init(name: "@", short: "@", help: "names and sizes of extended attributes too, with -l"),
      .init(name: "a", short: "a", help: "names that begin with a dot too"),
      .init(name: "A", short: "A", help: "the same without '.' and '..'"),
      .init(name: "d", short: "d", help: "directories themselves, not what they hold"),
      .init(name: "R", short: "R", help: "what is below directories too"),
      .init(name: "n", short: "n", help: "as -l, with numbers instead of names"),
      .init(name: "h", short: "h", help: "sizes with a unit"),
      .init(name: "T", short: "T", help: "the whole time, with seconds and year"),
      .init(name: "t", short: "t", help: "the newest first"),
      .init(name: "S", short: "S", help: "the largest first"),
      .init(name: "r", short: "r", help: "the other way round"),
      .init(name: "i", short: "i", help: "the file's number in front"),
      .init(name: "F", short: "F", help: "a sign after the name for what it is"),
      .init(name: "1", short: "1", help: "one name to a line, which is always so"),
      CommandDescription.json,
    ],
    details: [
      "Works on any filesystem; "
        + "lists and flags are to be had on insula mounts only. On a terminal, what can't be\n"
        + "shown in a name is a question mark; elsewhere the name's bytes are printed as they are."
    ],
    examples: ["insula ls -le", "insula ls -leO@ Documents", "insula ls -lde Documents"])

  private let paths: [String]
  private let options: ListingOptions

  init(_ arguments: ParsedArguments) {
    paths = arguments.positional.isEmpty ? ["."] : arguments.positional
    options = ListingOptions(arguments)
  }

  func run(in context: Context) throws -> ExitCode {
    var listing = Listing(options, context)
    listing.show(paths)
    return listing.exitCode
  }
}

/// What a listing is to look like.
struct ListingOptions {
  enum Order { case name, time, size }

  let isLong: Bool
  let showsLists: Bool
  let showsFlags: Bool
  let showsAttributes: Bool
  let showsHidden: Bool
  let showsSelfAndParent: Bool
  let showsDirectoriesThemselves: Bool
  let isRecursive: Bool
  let isNumeric: Bool
  let hasUnits: Bool
  let hasSeconds: Bool
  let order: Order
  let isReversed: Bool
  let showsNumber: Bool
  let showsKind: Bool
  let json: Bool

  init(_ arguments: ParsedArguments) {
    isNumeric = arguments.has("n")
    isLong = arguments.has("l") || isNumeric
    showsLists = arguments.has("e")
    showsFlags = arguments.has("O")
    showsAttributes = arguments.has("@")
    showsSelfAndParent = arguments.has("a") && !arguments.has("A")
    showsHidden = arguments.has("a") || arguments.has("A")
    showsDirectoriesThemselves = arguments.has("d")
    isRecursive = arguments.has("R") && !arguments.has("d")
    hasUnits = arguments.has("h")
    hasSeconds = arguments.has("T")
    order = arguments.has("S") ? .size : arguments.has("t") ? .time : .name
    isReversed = arguments.has("r")
    showsNumber = arguments.has("i")
    showsKind = arguments.has("F")
    json = arguments.has("json")
  }

  /// Whether more is wanted of a file than its name and status.
  var needsDetails: Bool { isLong || json }

  /// Whether one is listed before the other.
  func precedes(_ first: ListedFile, _ second: ListedFile) -> Bool {
    let (first, second) = isReversed ? (second, first) : (first, second)
    switch order {
    case .size where first.status.st_size != second.status.st_size:
      return first.status.st_size > second.status.st_size
    case .time:
      let (one, other) = (first.status.st_mtim, second.status.st_mtim)
      if one.tv_sec != other.tv_sec { return one.tv_sec > other.tv_sec }
      if one.tv_nsec != other.tv_nsec { return one.tv_nsec > other.tv_nsec }
    default: break
    }
    return first.name.lexicographicallyPrecedes(second.name)
  }
}
