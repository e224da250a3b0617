// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Synchronization

/// An account of the machine's that is there for one test; root only.
package final class TemporaryAccount: Sendable {
  package let account: Account

  /// Tests run side by side, so two of them may have one at a time.
  private static let last = Atomic<Int>(0)

  package init() throws {
    let number = Self.last.wrappingAdd(1, ordering: .relaxed).newValue
    let name = "insula-test-\(getpid())-\(number)"
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
}
