// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// A cgroup of our own from systemd, where that is the service manager: a scope, which it delegates to us and
/// takes away when the last process in it has ended, however that was.
///
/// In the namespace in which the app is prepared nothing of systemd can be reached, and whether it is needed
/// is known only there. So a process that is forked before waits for the question; it ends when that can't
/// come any more.
final class DelegatedScope {
  private let end: FD
  private let helper: Int32

  /// How long systemd has.
  private static let milliseconds: Int32 = 5000

  /// Nil where there is no systemd that we could ask.
  static func prepare(_ processes: Set<Int32>, _ context: Context) -> DelegatedScope? {
    guard access("/run/systemd/system", F_OK) == 0, let busctl = Requirements.find("busctl", context),
      let systemctl = Requirements.find("systemctl", context)
    else { return nil }
    var context = context
    if !context.isRoot {
      let runtime = context.environment["XDG_RUNTIME_DIR"] ?? "/run/user/\(context.uid)"
      guard access(runtime + "/bus", F_OK) == 0 else { return nil }
      context.environment["XDG_RUNTIME_DIR"] = runtime
    }
    guard let ends = try? Pairs.messages() else { return nil }
    let helper = clx_fork()
    if helper == 0 {
      _ = close(ends.mine.raw)
      serve(ends.theirs, processes, busctl, systemctl, context)
    }
    _ = close(ends.theirs.raw)
    guard helper > 0 else {
      _ = close(ends.mine.raw)
      return nil
    }
    return DelegatedScope(ends.mine, helper)
  }

  private init(_ end: FD, _ helper: Int32) {
    self.end = end
    self.helper = helper
  }

  deinit {
    _ = close(end.raw)
    ChildEnd.force(helper)
  }

  /// Moves the processes into a scope; false if there is none to be had.
  func enter() -> Bool {
    var byte: UInt8 = 1
    guard send(end.raw, &byte, 1, Int32(MSG_NOSIGNAL)) == 1,
      (try? end.waitUntilReadable(milliseconds: Self.milliseconds)) == true
    else { return false }
    return recv(end.raw, &byte, 1, 0) == 1 && byte == 1
  }

  // MARK: The process that waits

  private static func serve(
    _ end: FD, _ processes: Set<Int32>, _ busctl: String, _ systemctl: String, _ context: Context
  ) -> Never {
    // Whoever waits for the end of what is written there waits for the app, not for us.
    for stream in Int32(0)...2 { _ = close(stream) }
    var byte: UInt8 = 0
    guard let count = try? retrying({ recv(end.raw, &byte, 1, 0) }), count == 1 else { _exit(0) }
    let manager = context.isRoot ? "--system" : "--user"
    let unit = "insula-run-\(getppid()).scope"
    let start = [busctl, manager, "--timeout=4"] + call(unit, processes)
    // The answer to the call does not say that it is done; who waits for the same start learns that.
    let isThere =
      succeeds(busctl, start, context)
      && succeeds(systemctl, [systemctl, manager, "--no-ask-password", "start", unit], context)
    byte = isThere ? 1 : 0
    _ = send(end.raw, &byte, 1, Int32(MSG_NOSIGNAL))
    _exit(0)
  }

  private static func succeeds(_ path: String, _ words: [String], _ context: Context) -> Bool {
    guard let pid = try? Subprocess.spawn(path, words, context, descriptors: []) else { return false }
    return (try? Subprocess.wait(pid)) == .exited(0)
  }

  private static func call(_ unit: String, _ processes: Set<Int32>) -> [String] {
    let manager = "org.freedesktop.systemd1"
    let properties = [
      ["Description", "s", "An app that insula runs"], ["Delegate", "b", "true"],
      ["CollectMode", "s", "inactive-or-failed"],
      ["PIDs", "au", "\(processes.count)"] + processes.map { "\($0)" },
    ]
    return [
      "call", manager, "/org/freedesktop/systemd1", manager + ".Manager", "StartTransientUnit",
      "ssa(sv)a(sa(sv))", unit, "fail", "\(properties.count)",
    ] + properties.flatMap { $0 } + ["0"]
  }
}
