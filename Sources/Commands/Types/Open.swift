// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import LinuxIO
internal import Policy
internal import Store

/// `insula open`.
struct OpenCommand: Command {
  static let description = CommandDescription(
    name: "open", summary: "Opens files in the app that knows them.",
    arguments: [
      .init(
        name: "FILE", help: "a file, or a directory that is a single document", kind: .file, isRepeated: true)
    ],
    options: [
      .init(
        name: "with", value: "ID", help: "open them with this app, whatever it says of itself", kind: .app),
      .init(name: "new", help: "start the app once more, also if one that runs takes documents"),
      .init(name: "print-only", help: "print which app would open each file, and do nothing"),
      AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The app gets a copy of the file in its Inbox, as by 'insula deliver'. An app that opens documents in
      place (LSSupportsOpeningDocumentsInPlace) is granted the file itself if it is in the tree, as by 'insula
      grant'; what is in the app's own container it has already. An app that runs and waits for documents
      ('insula opened') is told the paths. Any other is started as by 'insula run', with the paths as its
      arguments.
      """,
      """
      Which app opens a file says 'insula handlers'. With --with and no FILE, the app is only started. The
      exit status is that of the app; where several are started, it is 0 if each was, and so it is where
      those that run were told.
      """,
    ],
    examples: ["insula open Letter.txt", "insula open --with com.example.viewer *.png"],
    becomesUser: true)

  private let files: [String]
  private let chosen: AppReference?
  private let startsAnew: Bool
  private let printsOnly: Bool
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    files = arguments.positional
    chosen = try arguments.value("with").map { (text) throws(UsageError) in try Self.description.app(text) }
    startsAnew = arguments.has("new")
    printsOnly = arguments.has("print-only")
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
    guard !files.isEmpty || chosen != nil && !printsOnly else {
      throw Self.description.error("name a FILE to open")
    }
    guard !json || printsOnly else {
      throw Self.description.error("'--json' is for '--print-only'; the app itself prints what it likes")
    }
  }

  /// One file, and what opens it.
  private struct Plan: Encodable {
    enum Manner: String, Encodable {
      case copy
      case inPlace = "in place"
    }

    let found: FoundObject
    let type: String
    let identifier: String
    let manner: Manner

    var file: String { found.path }

    private enum Key: String, CodingKey { case file, type, identifier, manner }

    func encode(to encoder: any Encoder) throws {
      var fields = encoder.container(keyedBy: Key.self)
      try fields.encode(file, forKey: .file)
      try fields.encode(type, forKey: .type)
      try fields.encode(identifier, forKey: .identifier)
      try fields.encode(manner, forKey: .manner)
    }
  }

  func run(in context: Context) throws -> ExitCode {
    let words =
      (chosen.map { ["--with", $0.text] } ?? []) + (startsAnew ? ["--new"] : [])
      + (printsOnly ? ["--print-only"] : [])
    if let done = try ActingCommand.onMount(
      of: store, for: user, context,
      { ["open", "--store", $0] + words + (json ? ["--json"] : []) + ["--"] + files.map(context.unresolved) })
    {
      return done
    }
    let access = try AppsAccess.find(store, writing: !printsOnly, context)
    let known = KnownDocuments(try access.documents(for: nil))
    let with = try chosen.map { try opener($0, known, access) }
    // Nothing is done for some of the files before it is known who opens the others.
    let plans = try files.map { try plan($0, with, known, access) }
    if printsOnly {
      context.console.print(list: plans, json: json, none: "", columns: ["APP", "MANNER", "FILE"]) {
        [$0.identifier, $0.manner.rawValue, $0.file.sanitized]
      }
      return .ok
    }
    var daemon = try access.runner()
    var starts: [Start] = with.map { [Start($0.identifier)] } ?? []
    for plan in plans {
      let path = try hand(plan, access)
      if let index = starts.firstIndex(where: { $0.identifier == plan.identifier }) {
        starts[index].paths.append(path)
      } else {
        starts.append(Start(plan.identifier, [path]))
      }
    }
    if !startsAnew { starts = try starts.compactMap { try Self.unlessTold($0, &daemon) } }
    let runs = starts.map {
      ["run", "--store", daemon.store, AppReference.word(of: $0.identifier)]
        + ($0.paths.isEmpty ? [] : ["--args"] + $0.paths.map { "\(access.root)/\($0)" })
    }
    guard !runs.isEmpty else { return .ok }
    guard runs.count != 1 else {
      return try RunCommand(ParsedArguments(Array(runs[0].dropFirst()), for: RunCommand.description)).run(
        in: context)
    }
    return try Self.run(several: runs, context)
  }

  /// An app that is to be started, with paths below the root of the tree.
  private struct Start {
    let identifier: String
    var paths: [String]

    init(_ identifier: String, _ paths: [String] = []) {
      self.identifier = identifier
      self.paths = paths
    }
  }

  private func opener(
    _ app: AppReference, _ known: KnownDocuments, _ access: any StoreAccess
  ) throws -> KnownDocuments.Opener {
    let identifier = try access.identifier(of: app, for: nil)
    guard let opener = known.opener(identifier) else {
      // It says why.
      _ = try access.app(identifier, for: nil)
      throw CommandFailure(.failed, "\(identifier) can't be asked what it opens; see 'insula check'")
    }
    return opener
  }

  private func plan(
    _ file: String, _ with: KnownDocuments.Opener?, _ known: KnownDocuments, _ access: any StoreAccess
  ) throws -> Plan {
    let object = try access.context.find(file)
    let found = try ExaminedFile(object)
    guard found.status.isRegular || found.status.isDirectory else {
      throw CommandFailure(.failed, "\(file.sanitized) is neither a file nor a directory")
    }
    let type = found.type(in: known.table)
    if with == nil, type.identifier == "com.apple.application-bundle" {
      throw CommandFailure(
        .failed, "\(file.sanitized) is an app; 'insula run ID' starts one that is installed")
    }
    let name = NameExtension.of(found.name)
    guard let opener = with ?? known.openers(of: type, nameExtension: name).first else {
      throw CommandFailure(
        .failed,
        "no app opens \(file.sanitized) (\(known.table.kind(of: type)), \(type.identifier)); "
          + "choose one with 'insula open --with ID', or for all such files with "
          + "'insula handlers \(type.identifier) --set ID'")
    }
    let isInTree = object.path.utf8.starts(with: (access.context.absolute(access.root) + "/").utf8)
    return Plan(
      found: object, type: type.identifier, identifier: opener.identifier,
      manner: isInTree && opener.opensInPlace ? .inPlace : .copy)
  }

  /// Sees to it that the app has the file; the path below the root of the tree by which it finds it.
  private func hand(_ plan: Plan, _ access: any StoreAccess) throws -> String {
    guard let identifier = AppIdentifier(plan.identifier) else {
      throw CommandFailure(.failed, "'\(plan.identifier.sanitized)' is no identifier of an app")
    }
    let container = try access.pathOfContainer(identifier, for: nil)
    let root = access.context.absolute(access.root) + "/"
    if plan.file.utf8.starts(with: root.utf8) {
      let path = String(decoding: plan.file.utf8.dropFirst(root.utf8.count), as: UTF8.self)
      try refusePrivate(plan, path, access)
    }
    let own = root + "\(container)/\(ContainerLayout.dataName)/"
    if plan.file.utf8.starts(with: own.utf8) {
      return String(decoding: plan.file.utf8.dropFirst(root.utf8.count), as: UTF8.self)
    }
    if plan.manner == .inPlace {
      let place = try access.place(of: plan.found)
      do {
        try access.perform(.grant(identifier, path: place.path, inode: place.inode, nil, user: nil))
        return place.path
      } catch {
        access.context.console.inform(
          "\(plan.file.sanitized) is opened as a copy: \(CommandFailure(error).message)")
      }
    }
    let app = try access.app(identifier, for: nil)
    return try access.deliver(plan.found, to: try access.container(of: app, for: nil))
  }

  /// What takes consent is given to no app that may not use it: a double-click is no decision.
  ///
  /// A song or a picture is a file that people open. What lies in a library of them is not.
  private func refusePrivate(_ plan: Plan, _ path: String, _ access: any StoreAccess) throws {
    guard let home = Homes.name(in: path) else { return }
    let names = path.parts(between: "/").map { Array($0.utf8) }
    let services: [PrivacyService] =
      [.contacts, .calendars, .reminders] + (plan.found.status.isDirectory ? [.photos, .mediaLibrary] : [])
    guard let service = services.first(where: { $0.places(home: home).contains { names.starts(with: $0) } })
    else { return }
    let found = try access.consents(.list(app: plan.identifier, user: access.orOneself(nil)))
    guard !found.contains(where: { $0.service == service && $0.state == .authorized }) else { return }
    throw CommandFailure(
      .notPermitted,
      "\(plan.file.sanitized) is a part of \(service.title), which \(plan.identifier) may not use; "
        + "'insula consent allow \(AppReference.word(of: plan.identifier)) \(service.rawValue)' lets it")
  }

  /// Tells the app, if it runs; what is left to be started for what it was not told of.
  private static func unlessTold(_ start: Start, _ daemon: inout RunningDaemon) throws -> Start? {
    guard let identifier = AppIdentifier(start.identifier) else { return start }
    guard let left = try daemon.tell(identifier, ofOpened: start.paths) else { return start }
    return left.isEmpty ? nil : Start(start.identifier, left)
  }

  /// Starts several apps beside each other, and waits for all of them.
  private static func run(several runs: [[String]], _ context: Context) throws -> ExitCode {
    var running: [Int32] = []
    var code = ExitCode.ok
    for words in runs {
      do throws(Errno) {
        let output = try FD(1).duplicated()
        let errors = try FD(2).duplicated()
        running.append(
          try Subprocess.spawn(
            "/proc/self/exe", ["insula"] + context.console.manner.words + words, context,
            descriptors: [(output.fd, 1), (errors.fd, 2)]))
      } catch {
        context.console.note("can't start 'insula \(words[0]) \(words[3])': \(error.message)")
        code = .failed
      }
    }
    for pid in running where try Subprocess.wait(pid) != .exited(0) { code = .failed }
    return code
  }
}
