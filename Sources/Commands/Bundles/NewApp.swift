// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy

/// `insula new-app`.
struct NewAppCommand: Command {
  static let description = CommandDescription(
    name: "new-app", summary: "Creates a small working app, as a start or to experiment with.",
    arguments: [
      .init(name: "NAME", help: "the app's name; the bundle is NAME.app", isRequired: true),
      .init(name: "DIRECTORY", help: "where to create it (default: the current directory)", kind: .directory),
    ],
    options: [
      .init(
        name: "identifier", value: "ID",
        help: "the app's identifier (default: 'org.example.' followed by the name)"),
      .init(name: "flat", help: "put all files directly in NAME.app, without Contents, as on iOS"),
    ],
    details: [
      """
      The app is a shell script that prints the path of its container and writes to its Documents directory.
      NAME.entitlements beside the bundle lists the app's entitlements, with a group as an example. Existing
      files are never overwritten.
      """
    ],
    examples: ["insula new-app Note", "insula new-app Note --identifier com.example.note --flat ~/Projects"])

  private let name: String
  private let directory: String
  private let identifier: String?
  private let isFlat: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    directory = arguments.argument(1) ?? "."
    identifier = arguments.value("identifier")
    isFlat = arguments.has("flat")
    guard Identity.isAllowed(name: name) else {
      throw Self.description.error(
        "'\(name.sanitized)' can't be the name of an app: "
          + "a name has 1 to 64 bytes, contains no '/' and does not begin with a dot"
      )
    }
  }

  func run(in context: Context) throws -> ExitCode {
    let template = AppTemplate(name: name, identifier: try chosenIdentifier(), isFlat: isFlat)
    let files = try template.files()
    let entitlements = try template.entitlements()
    let bundle = "\(name).app"
    let beside = "\(name).entitlements"
    var place = directory
    while place.count > 1, place.hasSuffix("/") { place.removeLast() }
    let prefix = directory == "." ? "" : place == "/" ? "/" : place + "/"

    do throws(Errno) {
      let parent = try FD.cwd.openFollowing(context.reachable(directory), O_RDONLY | O_DIRECTORY)
      // Each is made only if it is not there, and both or none.
      try parent.fd.makeFile(beside, entitlements, mode: 0o644)
      do throws(Errno) {
        try parent.fd.makeDirectory(bundle, mode: 0o755)
        do throws(Errno) {
          let root = try parent.fd.openDirectory(bundle)
          for file in files { try root.fd.makeFile(at: file.path, file.bytes, mode: file.mode) }
        } catch {
          try? parent.fd.removeTree(bundle)
          throw error
        }
      } catch {
        try? parent.fd.remove(beside, directory: false)
        throw error
      }
    } catch {
      let why =
        error == .EEXIST
        ? "'\(bundle)' or '\(beside)' already exists; nothing was changed" : error.message
      throw CommandFailure(error, "can't create \(prefix)\(bundle): \(why)")
    }
    context.console.print("Created \(prefix)\(bundle) (\(template.identifier)) and \(beside).")
    try tellWhatIsNext(prefix, context)
    return .ok
  }

  private func tellWhatIsNext(_ prefix: String, _ context: Context) throws {
    let bundle = (prefix + "\(name).app").forShell
    var steps: [String] = []
    var roots: [Certificate] = []
    var me = (Account.numbered(context.uid)?.name ?? "me").forShell
    if let place = try context.openIdentities(), let mine = try IdentityDirectory(place.fd).list().first {
      me = mine.name.forShell
      roots = (try? mine.chain.get()).map { $0.suffix(1) } ?? []
    } else {
      steps.append("insula identity new \(me)")
    }
    if !Self.trusts(roots, nil, context) {
      steps.append("insula identity export \(me) | insula trust add -")
    }
    // What is installed is judged by whom the store trusts.
    if !Self.trusts(roots, context.defaultStore, context) {
      let store = context.defaultStore.forShell
      steps.append("insula identity export \(me) | insula trust add - --store \(store)")
    }
    steps.append("insula sign \(bundle) --entitlements \((prefix + "\(name).entitlements").forShell)")
    steps.append("insula verify \(bundle)")
    steps.append("insula install \(bundle)")
    context.console.print("Next steps:")
    for step in steps { context.console.print("  \(step)") }
  }

  /// Whether all of those roots are trusted, and there is one.
  private static func trusts(_ roots: [Certificate], _ store: String?, _ context: Context) -> Bool {
    guard !roots.isEmpty, let trust = try? context.trust(ofStore: store) else { return false }
    return roots.allSatisfy(trust.roots.contains)
  }

  private func chosenIdentifier() throws(UsageError) -> String {
    let chosen: String
    if let identifier {
      chosen = identifier
    } else {
      let words = name.lowercased().split { !$0.isASCII || !($0.isLetter || $0.isNumber) }
      guard !words.isEmpty else {
        throw Self.description.error(
          "can't derive an identifier from '\(name)'; give one with '--identifier'")
      }
      chosen = "org.example." + words.joined(separator: "-")
    }
    do throws(Bundles.Finding) { try BundleInfo.checkIdentifier(chosen) } catch {
      throw Self.description.error("'\(chosen.sanitized)' is not a valid identifier: \(error.detail)")
    }
    return chosen
  }
}

extension FD {
  /// Makes a file and the directories above it.
  fileprivate func makeFile(at path: String, _ bytes: [UInt8], mode: UInt32) throws(Errno) {
    let parts = path.split(separator: "/").map(String.init)
    var parent = try duplicated()
    for part in parts.dropLast() {
      let above = parent.fd
      parent = try part.withName { (name) throws(Errno) in
        do throws(Errno) { try above.makeDirectory(name, mode: 0o755) } catch .EEXIST {}
        return try above.openDirectory(name)
      }
    }
    try parent.fd.makeFile(parts.last ?? "", bytes, mode: mode)
  }

  fileprivate func makeFile(_ name: String, _ bytes: [UInt8], mode: UInt32) throws(Errno) {
    try name.withName { (name) throws(Errno) in
      let file = try open(name, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
      do throws(Errno) {
        try file.fd.writeAll(bytes)
      } catch {
        try? remove(name, directory: false)
        throw error
      }
    }
  }
}
