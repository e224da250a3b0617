// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// A configuration file, and who may have written it.
///
/// What it says is done with the rights of whoever runs the command. So it counts only if nobody else could
/// have written it, and looking at it must neither wait nor change anything, whatever lies in its place.
struct ConfigurationFile: Sendable {
  static let name = "insula.conf"

  /// From the root.
  let path: String
  /// Whether it is the machine's, which only root writes.
  let isMachines: Bool
  /// Who may own it besides root.
  private let reader: UInt32

  /// `/etc/insula/insula.conf`, or where a test has it.
  static func machines(_ context: Context) -> ConfigurationFile {
    ConfigurationFile(path: context.machineConfiguration, isMachines: true, reader: 0)
  }

  /// The user's own.
  ///
  /// Root has none: what root does is for all, and HOME may be somebody else's, as under sudo.
  static func own(_ context: Context) -> ConfigurationFile? {
    if context.isRoot { return nil }
    return ConfigurationFile(
      path: "\(context.configurationDirectory)/\(name)", isMachines: false, reader: context.uid)
  }

  /// Those that count for whoever runs a command; the later ones come before the earlier ones.
  static func all(_ context: Context) -> [ConfigurationFile] {
    [machines(context), own(context)].compactMap(\.self)
  }

  /// What it says; nil if there is no such file.
  func read() -> ConfigurationText? {
    do throws(Errno) {
      switch try contents() {
      case .nothing: return nil
      case .bytes(let bytes): return ConfigurationText(bytes, isMachines: isMachines)
      case .unusable(let why): return ConfigurationText(unusable: why)
      }
    } catch {
      if error == .ENOENT || error == .ENOTDIR { return nil }
      return ConfigurationText(unusable: "can't be read: \(error.message)\(advice(for: error))")
    }
  }

  private enum Contents {
    case nothing
    case bytes([UInt8])
    case unusable(String)
  }

  private func contents() throws(Errno) -> Contents {
    let (parent, name) = path.splitAtName
    guard let directory = try openDirectory("/" + parent) else { return .nothing }
    if let why = refusal(of: try directory.fd.status(), kind: "directory") {
      return .unusable("does not count, because its directory \(why)")
    }
    let named = try directory.fd.open(name, pathOnly)
    let found = try named.fd.status()
    // Whoever owns a link decides what is read.
    if found.isSymlink, !isTrusted(found.st_uid) {
      return .unusable("does not count, because it is another user's link; remove it")
    }
    let irregular = Contents.unusable("is not a regular file; remove it")
    guard found.isSymlink || found.isRegular else { return irregular }
    // A pipe at the end of a link must not stop us.
    let file = try directory.fd.openFollowing(name, O_RDONLY | O_NONBLOCK | O_NOCTTY)
    let status = try file.fd.status()
    guard status.isRegular else { return irregular }
    if let why = refusal(of: status, kind: "file") { return .unusable("does not count, because it \(why)") }
    return .bytes(try file.fd.readToEnd(limit: ConfigurationText.sizeLimit + 1))
  }

  /// Nil for one in a home that this user can't enter: HOME says nothing of who runs a command.
  private func openDirectory(_ path: String) throws(Errno) -> OwnedFD? {
    do throws(Errno) {
      return try FD.cwd.openFollowing(path, pathOnly | O_DIRECTORY)
    } catch {
      if error == .EACCES && !isMachines { return nil }
      throw error
    }
  }

  /// Why somebody else could have written it, and what to do.
  private func refusal(of status: FileStatus, kind: String) -> String? {
    guard isTrusted(status.st_uid) else {
      let owner = Account.numbered(status.st_uid)?.name ?? "uid \(status.st_uid)"
      return "belongs to \(owner); "
        + (isMachines
          ? "it must be root's ('chown root')"
          : "it must be yours or root's: HOME and XDG_CONFIG_HOME say where yours is")
    }
    if status.st_mode & 0o022 == 0 { return nil }
    return "can be written to by others; check the \(kind), and run 'chmod go-w' on it"
  }

  private func isTrusted(_ owner: UInt32) -> Bool { owner == 0 || owner == reader }

  private func advice(for error: Errno) -> String {
    error == .EACCES && isMachines ? "; all users must be able to read it ('chmod 644' as root)" : ""
  }
}
