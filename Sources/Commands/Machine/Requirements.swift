// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// What the machine must have for any mount at all.
enum Requirements {
  static let device = "/dev/fuse"

  /// Says what is missing before the mount fails with an errno.
  static func check(_ context: Context) throws {
    guard access(device, F_OK) == 0 else {
      throw CommandFailure(
        .failed,
        "\(device) does not exist; load the kernel module with "
          + "'modprobe fuse' (in a container: add the device)"
      )
    }
    guard !context.isRoot else { return }
    guard let helper = find("fusermount3", context) else {
      throw CommandFailure(.failed, "fusermount3 is missing; install it ('apt-get install fuse3')")
    }
    guard isSetUserID(helper) else {
      throw CommandFailure(
        .notPermitted, "\(helper) is not setuid root, so users can't mount; run 'chmod u+s \(helper)' as root"
      )
    }
    // fusermount3 opens it with the rights of whoever calls it.
    guard access(device, R_OK | W_OK) == 0 else {
      throw CommandFailure(
        .notPermitted, "only root can open \(device), so users can't mount; \(adviceToOpen(device))")
    }
  }

  static func adviceToOpen(_ device: String) -> String {
    "run 'chmod 0666 \(device)' as root; to make it permanent, add the udev rule "
      + "KERNEL==\"fuse\", MODE=\"0666\" (Debian has it)"
  }

  /// Looks for a program where the shell would, and where administrators' programs are.
  static func find(_ program: String, _ context: Context) -> String? {
    let path = (context.environment["PATH"] ?? "") + ":/usr/bin:/bin:/usr/sbin:/sbin"
    return path.parts(between: ":").map { "\($0)/\(program)" }.first { access($0, X_OK) == 0 }
  }

  static func isSetUserID(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_uid == 0 && status.st_mode & 0o4000 != 0
  }
}
