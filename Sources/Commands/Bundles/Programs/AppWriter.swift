// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

extension AppTemplate {
  /// An app to begin with.
  func plan(_ template: ProgramSearch.Template) -> AppPlan {
    AppPlan(
      executable: .bytes(Array(script(template).utf8)),
      items: [.init(path: "Welcome.txt", source: .bytes(Array(welcome.utf8)))], origin: "")
  }
}

/// Makes an app's bundle and the list of its entitlements: both or none.
struct AppWriter {
  let app: AppTemplate
  let plan: AppPlan

  /// Gives what there is to say of what was left out.
  func write(
    in directory: String, entitlements: [UInt8], opensText: Bool, _ prefix: String, _ context: Context
  ) throws -> [String] {
    let bundle = "\(app.name).app"
    let beside = "\(app.name).entitlements"
    do {
      let parent = try context.openToMake(in: directory)
      // Each is made only if it is not there.
      try parent.fd.makeFile(beside, entitlements, mode: 0o644)
      do {
        let root = try parent.fd.makeAndOpenDirectory(bundle, mode: 0o755)
        do {
          return try fill(root.fd, opensText: opensText)
        } catch {
          try? parent.fd.remove(held: root.fd, named: bundle)
          throw error
        }
      } catch {
        try? parent.fd.remove(beside, directory: false)
        throw error
      }
    } catch let error as Errno {
      let why =
        error == .EEXIST
        ? "'\(bundle)' or '\(beside)' already exists; nothing was changed"
        : error == .ENOENT
          ? "there is no directory '\(directory)'; create it first" : Context.words(ofMaking: error)
      throw CommandFailure(error, "can't create \(prefix)\(bundle): \(why)".sanitized)
    }
  }

  private func fill(_ root: FD, opensText: Bool) throws -> [String] {
    try make(.bytes(try app.info(opensText: opensText)), at: app.base + "Info.plist", in: root)
    try make(.bytes(Array("APPL????".utf8)), at: app.base + "PkgInfo", in: root)
    try make(plan.executable, at: app.executable, isExecutable: true, in: root)
    var notes: [String] = []
    for item in plan.items {
      let path = app.resources + item.path
      if case .tree(let source) = item.source {
        notes += try copy(source, to: path, in: root)
      } else {
        try make(item.source, at: path, isExecutable: item.isExecutable, in: root)
      }
    }
    for path in plan.started { try check(path, in: root, notes) }
    return notes
  }

  private func make(
    _ source: AppPlan.Source, at path: String, isExecutable: Bool = false, in root: FD
  ) throws {
    let mode: FileMode = isExecutable ? 0o755 : 0o644
    switch source {
    case .bytes(let bytes):
      try root.withMadeParent(of: path) { (parent, name) throws(Errno) in
        try parent.makeFile(name, bytes, mode: mode)
      }
    case .file(let original):
      let file = try Self.open(original, O_RDONLY | O_NONBLOCK | O_NOCTTY)
      guard try file.fd.status().isRegular else {
        throw CommandFailure(.failed, "\(original.sanitized) is not a regular file")
      }
      try root.withMadeParent(of: path) { (parent, name) throws(Errno) in
        try parent.makeFile(name, copying: file.fd, mode: mode)
      }
    case .tree(let original): _ = try copy(original, to: path, in: root)
    }
  }

  private func copy(_ original: String, to path: String, in root: FD) throws -> [String] {
    let source = try Self.open(original, O_RDONLY | O_DIRECTORY)
    let own = try root.status()
    try root.withMadeParent(of: path) { (parent, name) throws(Errno) in
      try parent.makeDirectory(name, mode: 0o755)
    }
    let target = try root.openDirectory(at: path)
    return try TreeIntake.copy(source.fd, at: original, to: target.fd, besides: own)
  }

  private static func open(_ path: String, _ flags: Int32) throws(CommandFailure) -> OwnedFD {
    do throws(Errno) { return try FD.cwd.openFollowing(path, flags) } catch {
      throw CommandFailure(error, "can't read \(path): \(error.message)".sanitized)
    }
  }

  /// Sees to it that what is started is there and can be.
  private func check(_ path: String, in root: FD, _ notes: [String]) throws {
    let place = app.resources + AppPlan.programPlace
    do throws(Errno) {
      let directory = try root.openDirectory(at: place)
      let file = try directory.fd.openBeneath(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
      let status = try file.fd.status()
      guard status.isRegular else { throw .ENOENT }
      if status.permissions & 0o111 != 0o111 { try file.fd.changeMode(0o755) }
    } catch {
      throw CommandFailure(
        .failed, "\(path) is not in the app, which would be started by it".sanitized,
        lines: Array(notes.prefix(20)))
    }
  }
}
