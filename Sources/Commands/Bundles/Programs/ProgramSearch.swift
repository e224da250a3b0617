// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy

/// Works out what an app must be made of to be a program of this machine, by reading it: nothing is run.
struct ProgramSearch {
  /// What a program is, where a file does not say so itself.
  enum Template: String, CaseIterable {
    case shell, python, swift
  }

  let context: Context
  let isFlat: Bool
  /// The app's name.
  let name: String
  let template: Template?
  /// The file in a directory that is to be started.
  let executable: String?
  let libraries: LibrarySearch.Choice

  /// What a person means by a word: a path, or a program's name.
  func plan(for word: String) throws -> AppPlan {
    let path = try find(word)
    let object = try open(path)
    let status = try object.fd.status()
    if status.isDirectory { return try plan(directory: path) }
    guard status.isRegular else {
      throw CommandFailure(.failed, "\(path.sanitized) is neither a program nor a directory")
    }
    guard executable == nil else {
      throw NewAppCommand.description.error("'--executable' is for a directory; \(word.sanitized) is a file")
    }
    guard template != .swift else {
      throw NewAppCommand.description.error("'--template swift' is for the directory of a package")
    }
    var plan = try self.plan(file: path, try kind(of: object.fd, path))
    if status.st_mode & 0o6000 != 0 { plan.notes.append(Self.withoutRights(path)) }
    return plan
  }

  static func withoutRights(_ path: String) -> String {
    "\(path) runs with the rights of its owner or group (setuid, setgid); the copy in the app does not"
  }

  /// Its path without links.
  private func find(_ word: String) throws -> String {
    let installed =
      word.utf8.contains(UInt8(ascii: "/")) ? nil : Self.installed(word, context.environment["PATH"] ?? "")
    let path = installed ?? context.absolute(word)
    guard let real = realPath(path) else {
      let hint =
        word.utf8.contains(UInt8(ascii: "/")) ? "" : "; it is neither a program in PATH nor a file here"
      throw CommandFailure(.failed, "can't find \(word.sanitized)\(hint)")
    }
    return real
  }

  private static func installed(_ name: String, _ places: String) -> String? {
    places.parts(between: ":").map { "\($0)/\(name)" }.first { path in
      guard path.begins(with: "/"), access(path, X_OK) == 0,
        let file = try? FD.cwd.openFollowing(path, pathOnly)
      else { return false }
      return (try? file.fd.status().isRegular) ?? false
    }
  }

  private func open(_ path: String) throws(CommandFailure) -> OwnedFD {
    do throws(Errno) { return try FD.cwd.openFollowing(path, O_RDONLY | O_NONBLOCK | O_NOCTTY) } catch {
      throw CommandFailure(error, "can't read \(path.sanitized): \(error.message)")
    }
  }

  // MARK: Files

  /// What can be started.
  enum Kind {
    case program(ELFFile)
    case script(ScriptLine)
    /// Something that only a template says how to run.
    case text
  }

  func kind(of file: FD, _ path: String) throws(CommandFailure) -> Kind {
    do throws(ELFFile.Refusal) {
      let program = try ELFFile(file)
      guard program.isLinked else { throw ELFFile.Refusal.unsupported("it is not a finished program") }
      guard program.machine == ELFFile.ownMachine else {
        throw ELFFile.Refusal.unsupported("it is for another kind of processor")
      }
      if let loader = program.interpreter, !Sandbox.shows(loader) {
        throw ELFFile.Refusal.unsupported("apps don't see its loader, \(loader)")
      }
      return .program(program)
    } catch {
      let why: String
      switch error {
      case .notELF:
        let start = (try? beginning(of: file)) ?? []
        return ScriptLine(start).map { .script($0) } ?? .text
      case .unsupported(let reason), .damaged(let reason): why = reason
      case .failed(let errno): why = errno.message
      }
      throw CommandFailure(.failed, "\(path) can't be run as an app: \(why)".sanitized)
    }
  }

  private func beginning(of file: FD) throws(Errno) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: ScriptLine.limit)
    var count = 0
    var failure: Errno?
    bytes.withUnsafeMutableBytes { buffer in
      do throws(Errno) { count = try file.read(into: buffer, at: 0) } catch { failure = error }
    }
    if let failure { throw failure }
    return Array(bytes.prefix(count))
  }

  /// How a text is run that does not say so itself.
  func interpreter(ofText path: String) throws(CommandFailure) -> String {
    if template == .python || template == nil && path.hasSuffix(".py") { return "python3" }
    if template == .shell || template == nil && path.hasSuffix(".sh") { return "/bin/sh" }
    throw CommandFailure(
      .failed,
      "\(path) is neither a program nor a script that begins with '#!'; '--template python' or "
        .sanitized + "'--template shell' says how to run it")
  }

  private func plan(file path: String, _ kind: Kind) throws -> AppPlan {
    let file = path.splitAtName.name
    switch kind {
    case .program(let program):
      let found = try LibrarySearch(libraries).libraries(of: path, program)
      var plan = AppPlan(executable: .file(path), origin: path)
      guard !found.isEmpty else { return plan }
      let launcher = Launcher(words: [.program(file)], hasLibraries: true)
      plan.executable = .bytes(launcher.script(isFlat: isFlat))
      plan.items = [
        .init(path: "\(AppPlan.programPlace)/\(file)", source: .file(path), isExecutable: true)
      ]
      plan.items += Self.items(found)
      return plan
    case .script(let line):
      var plan = AppPlan(executable: .file(path), origin: path)
      try check(line, of: path, &plan)
      return plan
    case .text:
      let launcher = Launcher(words: [.plain(try interpreter(ofText: path)), .program(file)])
      return AppPlan(
        executable: .bytes(launcher.script(isFlat: isFlat)),
        items: [.init(path: "\(AppPlan.programPlace)/\(file)", source: .file(path))], origin: path)
    }
  }

  static func items(_ libraries: [LibrarySearch.Library]) -> [AppPlan.Item] {
    libraries.map { .init(path: "\(AppPlan.libraryPlace)/\($0.name)", source: .file($0.path)) }
  }

  /// Refuses a script whose interpreter no app sees.
  func check(_ line: ScriptLine, of path: String, _ plan: inout AppPlan) throws {
    guard Sandbox.shows(line.interpreter), let real = realPath(line.interpreter), Sandbox.shows(real) else {
      throw CommandFailure(
        .failed,
        "\(path) is run by \(line.interpreter), which apps don't see; ".sanitized
          + "give '--from' the directory that both are in, or have the script run by a program in /usr")
    }
    if let wanted = line.wanted, Self.installed(wanted, SandboxEnvironment.path) == nil {
      plan.notes.append("\(path) is run by '\(wanted)', which is not installed where apps look for it")
    }
  }
}
