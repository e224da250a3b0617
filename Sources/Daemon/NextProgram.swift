// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO

/// The installed program, which can be put in place of the running one.
///
/// It lies where the running one was started from. It is started as a keeper: in this very process, with the
/// worker's descriptors, and with the memory that workers leave for each other.
final class NextProgram: @unchecked Sendable {
  // Unchecked: the process has one thread.
  let path: String
  /// How it is told to serve this mount.
  private let words: [String]
  /// What was found fit to take over, so that nothing else is started.
  private var found: OwnedFD?

  /// `path` is nil where the running one is: it need not be what is installed there by now.
  init(path: String?, words: [String]) {
    self.path = path ?? Self.own
    self.words = words
  }

  private static var own: String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    return String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Option, and what it says if a program keeps the same things in the same layout.
  static let question = "can-take-over"

  /// How it is asked.
  var rehearsal: Rehearsal {
    Rehearsal(path, ["insula", "mount", "--\(Self.question)", LeftService.layout] + words)
  }

  /// Has the helper ask the installed program whether it can go on from here; what it says goes to the log.
  ///
  /// It must answer within ten seconds: the worker serves meanwhile, but nobody would replace it.
  func canTakeOver(_ helper: MountHelper) -> Bool {
    found = nil
    do throws(Errno) {
      // What has taken the program's place may be something that an open waits for, and nothing waits here.
      let file = try FD.cwd.openFollowing(path, O_RDONLY | O_NONBLOCK)
      guard try helper.rehearse(file.fd) else { return false }
      found = consume file
      return true
    } catch {
      DaemonLog.write("can't ask \(path) whether it can take over: \(error.message)")
      return false
    }
  }

  /// A worker closes what nobody has noted, and this would be the number of something else.
  func forget() { found = nil }

  /// Becomes it; returns only if that fails.
  ///
  /// The worker has ended, so nobody else has this table of descriptors. What it had open stays open, and
  /// what is the keeper's alone does not.
  func start(with kept: KeptState) throws(Errno) {
    guard let file = found.take() else { throw .ENOENT }
    let noted = kept.all
    let others = Set(noted.filter { $0.kind != .keepers }.map(\.fd.raw) + [kept.fd.raw]).union(
      0...STDERR_FILENO)
    let keepers = Set(noted.map(\.fd.raw)).subtracting(others).union([file.fd.raw])
    let left = FD.allOpen.filter { !keepers.contains($0.raw) }
    for descriptor in left { try? descriptor.closeOnExecution(false) }
    let resumed = ["--resume", String(kept.fd.raw), "--program", path]
    var arguments = Self.cStrings(["insula", "mount"] + resumed + words)
    defer { for argument in arguments { free(argument) } }
    "/proc/self/fd/\(file.fd.raw)".withCString { _ = execv($0, &arguments) }
    let error = Errno.last
    for descriptor in left where descriptor.raw > STDERR_FILENO { try? descriptor.closeOnExecution(true) }
    throw error
  }

  private static func cStrings(_ words: [String]) -> [UnsafeMutablePointer<CChar>?] {
    words.map { strdup($0) } + [nil]
  }
}
