// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Daemon
internal import Policy

/// What `-o` asks for.
struct MountOptions: Equatable {
  var serve = ServeOptions()
  var isRemount = false
  var allowsNonEmpty = false
  /// Where a files view is to be mounted too; empty stands for the usual place.
  var files: String?
  /// Given by name, so the mount's source is not the store's path.
  var source: String?

  /// Why a word is no option, and what would be.
  struct Refusal: Error {
    let message: String
  }

  /// Understands the values of all `-o` options, the last word on a matter counting.
  ///
  /// `sloppy` passes over what is not known, as mount(8) asks for with `-s`.
  init(_ values: [String], sloppy: Bool = false) throws(UsageError) {
    do throws(Refusal) {
      try self.init(reading: values, sloppy: sloppy)
    } catch {
      throw MountCommand.description.error(error.message)
    }
  }

  /// The same, where it is not the command line that is read.
  init(reading values: [String], sloppy: Bool = false) throws(Refusal) {
    // Devices can't be made in the tree, so none is ever used.
    serve.mountFlags = [.nodev]
    for word in values.flatMap(Self.words) {
      let parts = word.parts(between: "=", max: 1, keepingEmpty: true).map(String.init)
      let name = parts[0]
      if let value = parts.count > 1 ? parts[1] : nil {
        guard try takeValue(name, value) || Self.isForOthers(name) || sloppy else { throw Self.unknown(word) }
      } else {
        guard takeWord(name) || takeFlag(name) || Self.isForOthers(name) || sloppy else {
          throw Self.unknown(word)
        }
      }
    }
  }

  /// Splits at commas, except between double quotes.
  private static func words(_ value: String) -> [String] {
    var words = [""]
    var isQuoted = false
    for character in value {
      switch character {
      case "\"": isQuoted.toggle()
      case "," where !isQuoted: words.append("")
      default: words[words.count - 1].append(character)
      }
    }
    return words.filter { !$0.isEmpty }
  }

  private mutating func takeWord(_ word: String) -> Bool {
    switch word {
    case "ro": serve.readOnly = true
    case "rw": serve.readOnly = false
    case "remount": isRemount = true
    case "nonempty": allowsNonEmpty = true
    case "nogrpid", "sysvgroups": serve.callerGroup = true
    case "grpid", "bsdgroups": serve.callerGroup = false
    case "passthrough": serve.passthrough = true
    case "nopassthrough": serve.passthrough = false
    case "handles": serve.fileHandles = true
    case "nohandles": serve.fileHandles = false
    case "local_locks": serve.localLocks = true
    case "files": files = ""
    case "nopurge": serve.purges = .never
    default: return false
    }
    return true
  }

  private mutating func takeFlag(_ word: String) -> Bool {
    if let flag = MountFlag(rawValue: word) {
      if let group = Self.accessTimeFlags.first(where: { $0.contains(flag) }) {
        serve.mountFlags.subtract(group)
      }
      serve.mountFlags.insert(flag)
      return true
    }
    guard let flag = Self.opposites[word] else { return false }
    serve.mountFlags.remove(flag)
    return true
  }

  private mutating func takeValue(_ name: String, _ value: String) throws(Refusal) -> Bool {
    switch name {
    case "fsname": source = value
    case "files": files = value
    case "servers":
      guard value.begins(with: "/") else {
        throw Self.outOfRange(name, value, "the path of a file, from the root")
      }
      serve.serversFile = value
    case "purge":
      do throws(LimitRefusal) {
        serve.purges = try PurgeRule(value)
      } catch {
        throw Refusal(message: "the mount option purge=\(value.sanitized) is not understood: \(error.reason)")
      }
    case "removed":
      serve.removed = RemovedLimit(days: try Self.number(name, value, RemovedLimit.allowed))
    case "restarts": serve.restarts = try Self.number(name, value, 0...1_000_000)
    case "threads": serve.threads = try Self.number(name, value, 1...256)
    case "poll": serve.pollMicroseconds = try Self.number(name, value, 0...10_000)
    case "cache":
      guard let seconds = Double(value), seconds.isFinite, (0...1e6).contains(seconds) else {
        throw Self.outOfRange(name, value, "a number of seconds from 0 to 1000000")
      }
      serve.cacheSeconds = seconds
    default: return false
    }
    return true
  }

  private static func number(
    _ name: String, _ value: String, _ range: ClosedRange<Int>
  ) throws(Refusal) -> Int {
    guard let number = Int(value), range.contains(number) else {
      throw outOfRange(name, value, "a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  private static func outOfRange(_ name: String, _ value: String, _ wanted: String) -> Refusal {
    Refusal(message: "the mount option \(name) must be \(wanted), not '\(value)'")
  }

  private static func unknown(_ word: String) -> Refusal {
    let name = String(word.prefix { $0 != "=" })
    if word.utf8.contains(UInt8(ascii: "=")), takesNoValue(name) {
      return Refusal(message: "the mount option \(name) takes no value: '\(word)'")
    }
    if valueNames.contains(name) {
      return Refusal(message: "the mount option \(name) requires a value: '\(name)=...'")
    }
    let suggestion = Suggestion.text(for: name, among: names)
    return Refusal(
      message: "unknown mount option '\(word)'\(suggestion); 'insula help mount-options' lists them")
  }

  private static func takesNoValue(_ name: String) -> Bool {
    var options = MountOptions()
    return options.takeWord(name) || options.takeFlag(name)
  }

  /// Those that mean something here, for suggestions and completions.
  static let names =
    plainNames + valueNames + MountFlag.allCases.map(\.rawValue) + opposites.keys.inOrder(by: <)

  /// Those that are worth offering, as far as they can be written without knowing a value.
  static let completions =
    plainNames + MountFlag.allCases.map(\.rawValue) + valueNames.map { $0 + "=" }

  private static let plainNames = [
    "ro", "rw", "remount", "nonempty", "nogrpid", "grpid", "nopassthrough", "passthrough", "nohandles",
    "handles", "local_locks", "nopurge", "files",
  ]
  private static let valueNames = [
    "cache", "fsname", "poll", "purge", "removed", "restarts", "servers", "threads",
  ]

  private init() {}

  /// Of these only one can hold.
  private static let accessTimeFlags: [Set<MountFlag>] = [[.noatime, .relatime, .strictatime]]

  private static let opposites: [String: MountFlag] = [
    "suid": .nosuid, "dev": .nodev, "exec": .noexec, "atime": .noatime, "diratime": .nodiratime,
    "norelatime": .relatime, "nostrictatime": .strictatime, "async": .sync,
  ]

  /// What mount(8), fstab and systemd keep for themselves, and what means nothing here but is often given.
  private static func isForOthers(_ name: String) -> Bool {
    name.hasPrefix("x-") || name.hasPrefix("X-") || othersOptions.contains(name)
  }

  private static let othersOptions: Set<String> = [
    "auto", "noauto", "user", "nouser", "users", "owner", "group", "nofail", "_netdev", "defaults", "comment",
    "subtype", "context", "fscontext", "defcontext", "rootcontext", "silent", "loud", "iversion",
    "noiversion",
    "lazytime", "nolazytime", "mand", "nomand", "allow_other",
    // These mount(8) reads from the mount that is there, and gives them back for a remount.
    "user_id", "group_id", "rootmode", "fd", "max_read", "blksize", "seclabel",
  ]
}
