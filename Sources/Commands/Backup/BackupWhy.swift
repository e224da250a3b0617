// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy

/// `insula backup why`.
struct BackupWhyCommand: Command {
  static let description = CommandDescription(
    name: "backup why", summary: "Says whether files are backed up, and why not.",
    arguments: [
      .init(name: "FILE", help: "files of a mounted store", isRequired: true, kind: .file, isRepeated: true)
    ],
    options: [CommandDescription.json],
    examples: ["insula backup why ~/Insula/Users/anna/Library/Caches"])

  private let paths: [String]
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    paths = arguments.positional
    json = arguments.has("json")
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    var verdicts: [BackupVerdict] = []
    var failures = 0
    for path in paths {
      do {
        verdicts.append(try BackupVerdict(path, context))
      } catch {
        failures += 1
        let failure = CommandFailure(error)
        context.console.note(CommandFailure(failure.code, "\(path.sanitized): \(failure.message)"))
      }
    }
    if json {
      context.console.print(json: verdicts)
    } else {
      for verdict in verdicts { context.console.print(verdict.words) }
    }
    return failures == 0 ? .ok : .failed
  }
}

/// Whether a file is backed up, and what decides that.
struct BackupVerdict: Codable {
  let file: String
  let isBackedUp: Bool
  /// Why not.
  let reason: BackupSet.Reason?
  /// The directory that is left out with all that is in it, or the file itself.
  let because: String?

  init(_ path: String, _ context: Context) throws {
    let full = Self.located(path, context)
    guard let mount = DaemonSearch.mount(containing: full) else {
      throw CommandFailure(.failed, "is not on an insula mount; backups by insula contain nothing of it")
    }
    let root = mount.mountPoint
    let names = Array(full.utf8.dropFirst(root.utf8.count)).split(separator: UInt8(ascii: "/")).map(
      Array.init)
    let access = try AppsAccess.find(root, context)
    if !context.isRoot, names.count > 1, names[0].elementsEqual("Users".utf8),
      let home = try? access.home(of: context.uid),
      ![home, "Users/Shared"].contains(where: {
        names.prefix(2).joined(separator: "/".utf8).elementsEqual($0.utf8)
      })
    {
      throw CommandFailure(.notPermitted, "is in another user's home; they or root can ask")
    }
    let bundles = try access.bundles()
    file = path
    for count in 0...names.count {
      let place = Array(names.prefix(count))
      let at = root + place.map { "/" + String(decoding: $0, as: UTF8.self) }.joined()
      let object = try context.openToName(at, followingLinks: false)
      let isBundle = bundles.contains { $0.utf8.elementsEqual(place.joined(separator: "/".utf8)) }
      let isMarked = try Self.isMarked(object.fd)
      guard
        let reason = BackupSet.reason(at: place) ?? (isBundle ? .bundle : isMarked ? .excluded : nil)
      else { continue }
      (isBackedUp, self.reason, because) = (false, reason, at)
      return
    }
    (isBackedUp, reason, because) = (true, nil, nil)
  }

  /// Where something is that a person has named; a link is what it is, not where it leads to.
  private static func located(_ path: String, _ context: Context) -> String {
    var names = context.reachable(path).parts(between: "/")
    guard let last = names.popLast(), last != ".", last != ".." else { return context.absolute(path) }
    let isAbsolute = context.reachable(path).begins(with: "/")
    let parent = context.absolute((isAbsolute ? "/" : "./") + names.joined(separator: "/"))
    return parent == "/" ? "/\(last)" : "\(parent)/\(last)"
  }

  private static func isMarked(_ object: FD) throws(CommandFailure) -> Bool {
    do throws(Errno) {
      return try !MarkedFile(object).marks().isEmpty
    } catch .EPERM, .EOPNOTSUPP {
      // What is neither a file nor a directory has none.
      return false
    } catch {
      throw CommandFailure(error, "can't tell: its attributes can't be read (\(error.message)); ask as root")
    }
  }

  var words: String {
    let file = file.sanitized
    guard let reason, let place = because?.sanitized else { return "\(file): backed up" }
    let why =
      switch reason {
      case .caches: "\(place) holds what programs make again"
      case .temporary: "\(place) holds temporary files"
      case .bundle: "\(place) is an installed app, which can be installed again"
      case .system: "\(place) is the system domain, which can be installed again"
      case .network: "\(place) is on other machines"
      case .volumes: "\(place) is on other disks"
      case .trash: "\(place) was thrown away"
      case .excluded: "\(place) is marked; 'insula backup include' takes the mark away"
      }
    return "\(file): not backed up; \(why)"
  }
}

extension StoreAccess {
  /// Where installed apps are, below ``root``.
  fileprivate func bundles() throws -> [String] { try apps(for: orOneself(nil)).map(\.path) }
}
