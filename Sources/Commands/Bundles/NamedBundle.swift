// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy

/// A bundle that a person named on the command line.
struct NamedBundle {
  let path: String
  private let name: String
  private let directory: String
  private let context: Context
  private var console: Console { context.console }

  init(_ path: String, _ context: Context) {
    self.path = path
    self.context = context
    directory = context.reachable(path)
    // The name counts: an app must have an executable. `.` is no name, and a link's is not the bundle's.
    name = context.name(of: path)
  }

  /// Opens it, and does what may take long; what is wrong with it is a finding.
  ///
  /// `toChange`: no other user's link leads there.
  func open<Result>(
    _ doing: String, toChange: Bool = false, _ body: (CodeBundle) throws -> Result
  ) throws -> Result {
    let root: OwnedFD
    do throws(Errno) {
      root =
        toChange
        ? try context.openToMake(in: path) : try FD.cwd.openFollowing(directory, O_RDONLY | O_DIRECTORY)
    } catch {
      if error == .ENOTDIR { throw Bundles.Finding(.notABundle, detail: "it is not a directory") }
      throw CommandFailure(error, "can't open \(path.sanitized): \(Context.words(ofMaking: error))")
    }
    let progress = ReadProgress()
    let path = path.sanitized
    let bundle = try CodeBundle(in: root, name: name, progress: progress)
    return try ProgressLine.show(
      console, { "\(doing) \(path): \(progress.text)" }, while: { try body(bundle) })
  }

  /// Says what was found, and how a command ends that found it.
  func tell(_ findings: [Bundles.Finding], all: Bool) -> ExitCode {
    guard let first = findings.first else { return .ok }
    for finding in all ? findings : [first] {
      console.note(finding.inside(path).message.sanitized)
    }
    if !all, findings.count > 1 {
      console.note("\(path.sanitized): \(findings.count - 1) more; '--all' shows all findings")
    }
    return .found(BundleProblem(first.kind))
  }
}

extension ReadProgress {
  fileprivate var text: String {
    let (files, bytes) = count
    return "\(files) files, \(bytes.asSize)"
  }
}
