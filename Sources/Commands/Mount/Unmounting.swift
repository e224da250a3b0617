// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// Takes mounts away without the help of their daemon.
enum Unmounting {
  /// Corresponds to `umount(8)`; a user's own mount goes through fusermount3.
  static func unmount(_ path: String, lazily: Bool, _ context: Context) throws {
    if context.isRoot {
      try LinuxIO.unmount(path, lazily: lazily)
      return
    }
    guard let helper = Requirements.find("fusermount3", context) else {
      throw CommandFailure(
        .failed, "can't unmount \(path): fusermount3 is missing; install it ('apt-get install fuse3')")
    }
    let result = try Subprocess.run(
      helper, ["fusermount3", "-u"] + (lazily ? ["-z"] : []) + ["--", path], context)
    guard result.end != .exited(0) else { return }
    if result.output.includes("busy") { throw Errno.EBUSY }
    throw CommandFailure(.failed, "can't unmount \(path): \(lastLine(result.output))")
  }

  /// Takes a mount away whose daemon is dead.
  static func detach(_ path: String, _ context: Context) throws {
    do {
      try unmount(path, lazily: true, context)
    } catch let error as Errno {
      throw CommandFailure(
        CommandFailure(error).code, "can't remove the dead mount from \(path): \(error.message)")
    }
  }

  private static func lastLine(_ text: String) -> String {
    text.split(separator: "\n").last.map(String.init) ?? "fusermount3 gave no reason"
  }
}
