// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy

/// `insula new-app`.
struct NewAppCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "new-app", summary: "Creates an app: of a program that is there, or a small one to start with.",
    arguments: [
      .init(name: "NAME", help: "the app's name; the bundle is NAME.app", isRequired: true),
      .init(name: "DIRECTORY", help: "where to create it (default: the current directory)", kind: .directory),
    ],
    options: [
      .init(
        name: "identifier", value: "ID",
        help: "the app's identifier (default: 'org.example.' followed by the name)"),
      .init(name: "flat", help: "put all files directly in NAME.app, without Contents, as on iOS"),
      .init(
        name: "from", value: "PROGRAM",
        help: "make it of an installed program, a script, a directory, or a Swift package that was built",
        kind: .either(.file, .program)),
      .init(
        name: "executable", value: "FILE",
        help: "the file in the directory that is started (default: one of the app's name, main.py, run...)",
        kind: .file),
      .init(
        name: "template", value: "KIND",
        help: "shell, python or swift: what to start with, or what PROGRAM is if it does not tell",
        kind: .word(["shell", "python", "swift"])),
      .init(
        name: "libraries", value: "WHICH",
        help: "own: libraries that apps don't find on this machine (default); all: all but the C library",
        kind: .word(["own", "all"])),
      .init(
        name: "entitlement", value: "KEY",
        help: "an entitlement for it, such as network.client (repeatable)", mayRepeat: true),
    ],
    details: [
      """
      Without '--from', the app is a script that prints the path of its container and writes to its Documents
      directory; with '--template swift' it is a Swift package to build first. NAME.entitlements beside the
      bundle lists the app's entitlements. Existing files are never overwritten.
      """,
      """
      PROGRAM is a path, or the name of a program in PATH. Apps see /usr of the machine, so of an installed
      program the bundle has the program itself, and those of its libraries that are not in /usr or that it
      finds by its own place. '--libraries all' takes all but the C library, for another machine. Libraries
      are found by reading the program, which is never run; those that it loads by itself (plug-ins) are not
      found. Its files in /usr/share and the like stay where they are.
      """,
      """
      A directory is copied as a whole, into the app's resources. Links that lead out of it, what you can't
      read, devices, and setuid bits are left out with a message; a link to a file in /usr is replaced by a
      copy, so a Python virtual environment works. Scripts in it are run by the environment's Python.
      """,
    ],
    examples: [
      "insula new-app Note", "insula new-app Note --identifier com.example.note --flat ~/Projects",
      "insula new-app Vim --from vim", "insula new-app Fetch --from curl --entitlement network.client",
      "insula new-app Report --from ~/report --executable main.py",
    ])

  private let name: String
  private let directory: String
  private let identifier: String?
  private let isFlat: Bool
  private let program: String?
  private let executable: String?
  private let template: ProgramSearch.Template?
  private let libraries: LibrarySearch.Choice
  private let entitlements: [String]

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    directory = arguments.argument(1) ?? "."
    identifier = arguments.value("identifier")
    isFlat = arguments.has("flat")
    program = arguments.value("from")
    executable = arguments.value("executable")
    template = try arguments.value("template").map { (word) throws(UsageError) in
      guard let template = ProgramSearch.Template(rawValue: word) else {
        throw Self.description.error("'--template' takes shell, python or swift")
      }
      return template
    }
    let which = arguments.value("libraries")
    guard let libraries = LibrarySearch.Choice(rawValue: which ?? "own") else {
      throw Self.description.error("'--libraries' takes own or all")
    }
    self.libraries = libraries
    entitlements = try arguments.allValues("entitlement").map { (key) throws(UsageError) in
      try Self.entitlement(key)
    }
    guard Identity.isAllowed(name: name) else {
      throw Self.description.error(
        "'\(name.sanitized)' can't be the name of an app: "
          + "a name has 1 to 64 bytes, contains no '/' and does not begin with a dot"
      )
    }
    guard program != nil || executable == nil && which == nil else {
      throw Self.description.error("'--executable' and '--libraries' need '--from'")
    }
    guard program?.isEmpty != true else { throw Self.description.error("PROGRAM is empty") }
  }

  /// The whole key; Apple's own are written without what all of them begin with.
  private static func entitlement(_ key: String) throws(UsageError) -> String {
    let isGood = key.utf8.allSatisfy {
      (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0)
        || "-_.".utf8.contains($0)
    }
    guard isGood, !key.isEmpty, key.utf8.count <= 200 else {
      throw description.error("'\(key.sanitized)' is not an entitlement; write it as in network.client")
    }
    return key.hasPrefix("com.") || key.hasPrefix("org.") ? key : "com.apple.security." + key
  }

  func run(in context: Context) throws -> ExitCode {
    var place = directory
    while place.count > 1, place.ends(with: "/") { place.removeLast() }
    let prefix = directory == "." ? "" : place == "/" ? "/" : place + "/"
    if program == nil, template == .swift { return try makePackage(prefix, context) }

    let app = AppTemplate(name: name, identifier: try chosenIdentifier(), isFlat: isFlat)
    let search = ProgramSearch(
      context: context, isFlat: isFlat, name: name, template: template, executable: executable,
      libraries: libraries)
    let plan = try program.map { try search.plan(for: $0) } ?? app.plan(template ?? .shell)
    let chosen = Array(Set(entitlements)).inOrder(by: <)
    let rights = try app.entitlements(
      chosen.filter { $0 != "com.apple.security.app-sandbox" }, example: program == nil)
    let notes = try AppWriter(app: app, plan: plan).write(
      in: directory, entitlements: rights, opensText: program == nil, prefix, context)
    let origin = program == nil ? "" : ", of \(plan.origin)"
    context.console.say(
      "Created \(prefix)\(name).app (\(app.identifier)\(origin)) and \(name).entitlements.".sanitized)
    tell(plan.notes + notes, context)
    try tellWhatIsNext(prefix, context)
    return .ok
  }

  private func tell(_ notes: [String], _ context: Context) {
    let shown = 20
    for note in notes.prefix(shown) { context.console.note(note) }
    if notes.count > shown { context.console.note("\(notes.count - shown) more of these") }
  }

  private func makePackage(_ prefix: String, _ context: Context) throws -> ExitCode {
    do throws(Errno) {
      let parent = try context.openToMake(in: directory)
      let package = try parent.fd.makeAndOpenDirectory(name, mode: 0o755)
      do throws(Errno) {
        for file in SwiftPackageTemplate(name: name).files {
          try package.fd.withMadeParent(of: file.path) { (parent, name) throws(Errno) in
            try parent.makeFile(name, Array(file.text.utf8), mode: 0o644)
          }
        }
      } catch {
        try? parent.fd.remove(held: package.fd, named: name)
        throw error
      }
    } catch {
      let why =
        error == .EEXIST
        ? "it already exists; nothing was changed"
        : error == .ENOENT
          ? "there is no directory '\(directory)'; create it first" : Context.words(ofMaking: error)
      throw CommandFailure(error, "can't create \(prefix)\(name): \(why)".sanitized)
    }
    let path = (prefix + name).forShell
    context.console.say("Created the package \(prefix)\(name).".sanitized)
    context.console.say("Next steps:")
    context.console.say("  swift build -c release --static-swift-stdlib --package-path \(path)")
    context.console.say("  insula new-app \(name.forShell) --from \(prefix.isEmpty ? "./" + path : path)")
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
    context.console.say("Next steps:")
    for step in steps { context.console.say("  \(step)") }
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
