// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// The program that makes the sandbox.
enum Bubblewrap {
  /// Where it is, or what to do about that.
  static func require(_ context: Context) throws(CommandFailure) -> String {
    guard let path = Requirements.find("bwrap", context) else {
      throw CommandFailure(
        .failed,
        "bubblewrap is missing, which is required to run apps; install it ('apt-get install bubblewrap')"
      )
    }
    return path
  }

  /// Starts it as the first process of a namespace of its own, and gives its number.
  ///
  /// It gets the program that filters system calls as the descriptor of that number. `starting` does the
  /// starting itself.
  static func start(
    _ path: String, _ words: [String], environment: [String], filter: FilterProgram, as descriptor: Int32,
    ignoring: [Int32] = [], mask: inout sigset_t, _ starting: (() -> Int32) throws -> Int32 = { $0() }
  ) throws -> Int32 {
    let ends = try LinuxIO.pipe()
    // It fits into the pipe.
    try ends.write.fd.writeAll(filter.bytes)
    let filtered = ends.takeRead()
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    let variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
    defer { for string in arguments + variables { free(string) } }
    var failure = Errno.EIO
    var ignored = ignoring.signalSet
    // It finds its child by the number that it has here, so it must not see the /proc of our callers.
    let pid = try starting {
      let pid = clx_spawn_first(path, arguments, variables, filtered.fd.raw, descriptor, &mask, &ignored)
      if pid < 0 { failure = .last }
      return pid
    }
    // Nor could it mount one, for the app; it would not say what to do.
    if pid == -2 { throw CommandFailure(.failed, withoutProcesses(failure)) }
    guard pid > 0 else { throw CommandFailure(.failed, "can't start \(path): \(failure.message)") }
    return pid
  }

  /// Why there is no namespace for an app.
  static func withoutNamespaces(_ error: Errno) -> String {
    "can't create a user namespace (\(error.message)); \(advice)"
  }

  /// Why there is no /proc for an app.
  ///
  /// The kernel gives nobody a new one who is kept from parts of the old one.
  static func withoutProcesses(_ error: Errno) -> String {
    "can't mount /proc for the app (\(error.message)); in a container, nothing may be mounted over parts of "
      + "/proc ('--security-opt unmask=ALL' with podman, '--security-opt systempaths=unconfined' with docker)"
  }

  /// What stands in the way usually, by what this machine says.
  static var advice: String {
    func value(_ name: String) -> String? {
      FD.text(of: "/proc/sys/\(name)", limit: 64)?.parts(between: "\n").first.map(String.init)
    }
    if value("user/max_user_namespaces") == "0" {
      return "to allow user namespaces, run 'sysctl user.max_user_namespaces=10000' as root"
    }
    if value("kernel/unprivileged_userns_clone") == "0" {
      return "to allow user namespaces, run 'sysctl kernel.unprivileged_userns_clone=1' as root"
    }
    if value("kernel/apparmor_restrict_unprivileged_userns") == "1" {
      return
        "to allow user namespaces, run 'sysctl kernel.apparmor_restrict_unprivileged_userns=0' "
        + "as root, or add an AppArmor profile"
    }
    return "in a container, the runtime must allow user namespaces (seccomp profile, '--cap-add SYS_ADMIN')"
  }
}
