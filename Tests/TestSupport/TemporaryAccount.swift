// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// An account of the machine's that is there for one test; root only.
package final class TemporaryAccount: Sendable {
  package let account: Account

  package init() throws {
    let name = "insula-test-\(getpid())"
    let words = ["useradd", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/sh", name]
    let result = try Program.run(words, environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
    guard result.status == 0, let account = Account.named(name) else {
      throw MountedStore.Failure(words: "can't make an account: \(result.errors)")
    }
    self.account = account
  }

  deinit {
    _ = try? Program.run(["userdel", account.name], environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
  }

  /// Lets everyone use /dev/fuse, as udev's own rule does; a machine without udev has it for root alone.
  package func prepareDevice() throws {
    var status = stat()
    guard stat("/dev/fuse", &status) == 0 else { throw Errno.last }
    guard status.st_mode & 0o666 != 0o666 else { return }
    print("/dev/fuse was for root only; it now has the mode 0666, which udev gives it")
    guard chmod("/dev/fuse", 0o666) == 0 else { throw Errno.last }
  }
}
