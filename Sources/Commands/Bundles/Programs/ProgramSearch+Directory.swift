// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy

// Programs that are directories: all of it comes along, and one file of it is started.

extension ProgramSearch {
  func plan(directory path: String) throws -> AppPlan {
    let directory = try context.openDirectory(path)
    let isPackage = template == .swift || template == nil && directory.fd.has("Package.swift")
    guard !isPackage else { return try plan(package: path, directory.fd) }
    let started = try startedFile(in: directory.fd, path)
    let file = try open(started, in: directory.fd, path)
    var plan = AppPlan(executable: .bytes([]), origin: path)
    plan.items = [.init(path: AppPlan.programPlace, source: .tree(path))]
    var launcher = Launcher(words: [.program(started)])
    switch try kind(of: file.fd, "\(path)/\(started)") {
    case .program(let program):
      guard let real = realPath("\(path)/\(started)") else { throw Errno.ENOENT }
      let found = try LibrarySearch(libraries, tree: path).libraries(of: real, program)
      plan.items += Self.items(found)
      launcher.hasLibraries = !found.isEmpty
    case .script(let line): launcher.words = try words(line, started, in: directory.fd, path, &plan)
    case .text:
      let interpreter = try interpreter(ofText: started)
      let python = interpreter == "python3" ? Self.environment(in: directory.fd) : nil
      launcher.words = [python.map { .program($0) } ?? .plain(interpreter), .program(started)]
    }
    plan.executable = .bytes(launcher.script(isFlat: isFlat))
    plan.started = launcher.programs
    return plan
  }

  /// The file that is to be started, from the directory on.
  private func startedFile(in directory: FD, _ path: String) throws -> String {
    if let executable {
      let names = executable.parts(between: "/")
      guard !executable.begins(with: "/"), !names.isEmpty, !names.contains(".."), !names.contains(".") else {
        throw NewAppCommand.description.error("'--executable' is a path from the directory on, without '..'")
      }
      return names.joined(separator: "/")
    }
    let own = [name, name.lowercased()]
    let candidates = own + own.map { "bin/\($0)" } + ["main.py", "__main__.py", "main.sh", "run", "run.sh"]
    for candidate in candidates {
      guard let file = try? directory.openBeneath(candidate, pathOnly),
        let status = try? file.fd.status(), status.isRegular
      else { continue }
      return candidate
    }
    throw CommandFailure(
      .failed, "which file of \(path.sanitized) is to be started? '--executable' says so, as a path in there")
  }

  private func open(_ started: String, in directory: FD, _ path: String) throws -> OwnedFD {
    do throws(Errno) {
      let file = try directory.openBeneath(started, O_RDONLY | O_NONBLOCK | O_NOCTTY)
      guard try file.fd.status().isRegular else { throw Errno.EISDIR }
      return file
    } catch {
      let why =
        switch error {
        case .EXDEV: "it is a link that leads out of the directory"
        case .EISDIR: "it is not a file"
        default: error.message
        }
      throw CommandFailure(error, "can't start \(started) of \(path): \(why)".sanitized)
    }
  }

  /// How a script in the directory is run: by what is in there, if its first line says so.
  private func words(
    _ line: ScriptLine, _ started: String, in directory: FD, _ path: String, _ plan: inout AppPlan
  ) throws -> [Launcher.Word] {
    let script = Launcher.Word.program(started)
    if line.interpreter.begins(with: path + "/") {
      let inside = String(line.interpreter.dropFirst(path.utf8.count + 1))
      return [.program(inside)] + (line.argument.map { [.plain($0)] } ?? []) + [script]
    }
    if (line.wanted ?? line.interpreter).splitAtName.name.hasPrefix("python"),
      let python = Self.environment(in: directory)
    {
      return [.program(python), script]
    }
    try check(line, of: "\(path)/\(started)", &plan)
    return [script]
  }

  /// The Python of a virtual environment in the directory, which finds that by its own place.
  private static func environment(in directory: FD) -> String? {
    ["", "venv/", ".venv/"].first { place in
      let found = try? directory.openDirectory(at: place)
      guard let found, found.fd.has("pyvenv.cfg"), let programs = try? found.fd.openDirectory("bin") else {
        return false
      }
      return programs.fd.has("python3")
    }.map { "\($0)bin/python3" }
  }

  // MARK: Swift packages

  /// What `swift build -c release` has made; nothing is built here, since a package is a program too.
  private func plan(package path: String, _ directory: FD) throws -> AppPlan {
    let place = "\(path)/.build/release"
    guard let real = realPath(place) else {
      throw CommandFailure(
        .failed,
        "the package \(path.sanitized) was not built yet; run "
          + "'swift build -c release --static-swift-stdlib --package-path \(path.forShell)' first")
    }
    let products = try context.openDirectory(real)
    let entries = try products.fd.entries().map { String(decoding: $0.name, as: UTF8.self) }.inOrder(by: <)
    let programs = entries.compactMap { (name: String) -> (name: String, file: ELFFile)? in
      guard executable.map({ $0 == name }) ?? true, let file = try? products.fd.openToExamine(name),
        let status = try? file.fd.status(), status.isRegular, status.st_mode & 0o100 != 0,
        let program = try? ELFFile(file.fd), program.isLinked, !name.hasSuffix(".so")
      else { return nil }
      return (name, program)
    }
    guard let program = programs.first, programs.count == 1 else {
      let found = programs.isEmpty ? "no program" : programs.map(\.name).joined(separator: ", ")
      throw CommandFailure(
        .failed, "\(place) has \(found); '--executable' names the one that is to be started".sanitized)
    }
    let file = "\(real)/\(program.name)"
    let found = try LibrarySearch(libraries).libraries(of: file, program.file)
    var plan = AppPlan(executable: .bytes([]), origin: file)
    plan.items = [
      .init(path: "\(AppPlan.programPlace)/\(program.name)", source: .file(file), isExecutable: true)
    ]
    // A target's own files, which it looks for beside the program.
    for name in entries where name.hasSuffix(".resources") {
      plan.items.append(.init(path: "\(AppPlan.programPlace)/\(name)", source: .tree("\(real)/\(name)")))
    }
    plan.items += Self.items(found)
    let launcher = Launcher(words: [.program(program.name)], hasLibraries: !found.isEmpty)
    plan.executable = .bytes(launcher.script(isFlat: isFlat))
    return plan
  }
}
