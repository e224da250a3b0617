// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// Takes mounts away without the help of their daemon.
enum Unmounting {
  /// Takes that mount away and no other; a user's own goes through fusermount3, which sees to that itself.
  static func unmount(_ mount: MountEntry, lazily: Bool, _ context: Context) throws {
    if context.isRoot { return try mount.unmount(lazily: lazily) }
    let path = mount.mountPoint
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
  static func detach(_ mount: MountEntry, _ context: Context) throws {
    do {
      try unmount(mount, lazily: true, context)
    } catch let error as Errno {
      throw CommandFailure(
        CommandFailure(error).code,
        "can't remove the dead mount from \(mount.mountPoint): \(error.message)")
    }
  }

  private static func lastLine(_ text: String) -> String {
    text.parts(between: "\n").last.map(String.init) ?? "fusermount3 gave no reason"
  }
}
