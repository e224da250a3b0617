// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy

/// Why a program does not start in the sandbox, looked for after it did not.
///
/// A program may end with the same status for reasons of its own. So nothing is said unless something is
/// found that it can't start with.
struct StartDiagnosis {
  /// As in a shell: it can't be executed, or it was not found; and what a shell says of a file for another
  /// processor, which it takes for a script.
  static let statuses: Set<Int32> = [2, 126, 127]

  /// Where the whole tree is for the app, and where all that it sees of it is for us.
  let mountPoint: String
  let tree: String
  /// Where the app begins.
  let directory: String
  let runsWhatItWrites: Bool

  /// What stands against starting a program that the app would name so; nil if nothing is found.
  func reason(_ program: String) -> String? {
    guard let path = shownPath(of: program), let file = open(path),
      let status = try? file.fd.status(), status.isRegular,
      let beginning = try? file.fd.readToEnd(limit: ScriptLine.limit)
    else { return nil }
    if isWritable(path), !runsWhatItWrites, status.permissions & 0o111 != 0 {
      return
        "\(program) can't be run: apps don't run what they can write, but for those with the entitlement "
        + "com.apple.security.cs.disable-library-validation"
    }
    if beginning.starts(with: Array("#!".utf8)) { return reason(script: program, beginning) }
    return reason(binary: program, path, file.fd)
  }

  // MARK: Scripts

  private func reason(script: String, _ beginning: [UInt8]) -> String? {
    let line = beginning.prefix { $0 != UInt8(ascii: "\n") }
    if line.last == UInt8(ascii: "\r") {
      return "\(script) can't be started: its first line ends with a carriage return, as Windows writes "
        + "them; 'sed -i s/\\\\r$//' removes them"
    }
    guard let line = ScriptLine(beginning) else {
      return "\(script) can't be started: it has an empty '#!' line"
    }
    if let wanted = line.wanted, shownPath(of: wanted) == nil {
      return "\(script) can't be started: it is a script for '\(wanted)', which is not installed here"
    }
    guard open(line.interpreter) == nil else { return nil }
    return
      "\(script) can't be started: it is a script for '\(line.interpreter)', which is not there for the app; "
      + Self.whatAppsSee
  }

  // MARK: Programs

  private func reason(binary: String, _ path: String, _ file: FD) -> String? {
    do throws(ELFFile.Refusal) {
      let program = try ELFFile(file)
      guard program.machine == ELFFile.ownMachine else {
        return "\(binary) can't be started: it is for another kind of processor"
      }
      if let loader = program.interpreter, open(loader) == nil {
        return "\(binary) can't be started: it needs the loader '\(loader)', which is not there for the app; "
          + Self.whatAppsSee
      }
      do throws(CommandFailure) {
        _ = try LibrarySearch(.own).libraries(of: place(of: path), program)
        return nil
      } catch {
        return "\(binary) can't be started: \(error.message)"
      }
    } catch {
      switch error {
      // Without a '#!' line, it is a shell's.
      case .notELF, .failed: return nil
      case .unsupported(let reason), .damaged(let reason): return "\(binary) can't be started: \(reason)"
      }
    }
  }

  private static let whatAppsSee = "apps see /usr and what is in their bundles"

  // MARK: Places

  /// The path that the app would start; nil if there is none of that name.
  private func shownPath(of program: String) -> String? {
    if program.begins(with: "/") { return program }
    if program.utf8.contains(UInt8(ascii: "/")) { return "\(directory)/\(program)" }
    return SandboxEnvironment.path.parts(between: ":").map { "\($0)/\(program)" }.first { open($0) != nil }
  }

  /// Where that is for us.
  private func place(of path: String) -> String {
    if path.hasSameBytes(as: mountPoint) || path.begins(with: mountPoint + "/") {
      return tree + path.dropFirst(mountPoint.count)
    }
    let isLinked = Sandbox.domainNames(besides: mountPoint).contains { path.begins(with: "/\($0)/") }
    return isLinked ? tree + path : path
  }

  private func open(_ path: String) -> OwnedFD? {
    try? FD.cwd.openFollowing(place(of: path), O_RDONLY | O_NONBLOCK)
  }

  /// Whether this is in the app's containers, or in what it was granted, where nothing runs.
  private func isWritable(_ path: String) -> Bool {
    path.begins(with: mountPoint + "/Users/") && access(place(of: path), X_OK) != 0
  }
}
