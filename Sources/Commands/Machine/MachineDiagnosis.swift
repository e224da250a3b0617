// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// What the machine offers, whatever the store.
struct MachineDiagnosis {
  private let context: Context
  private let devicePath: String

  init(_ context: Context, device: String = Requirements.device) {
    self.context = context
    devicePath = device
  }

  var all: [Diagnosis] {
    [device, helper, allowOther, kernel, passthrough, epochs, resending, descriptors, sandbox, neighbours]
      + LibraryDiagnosis.all(context)
  }

  var device: Diagnosis {
    let path = devicePath
    var status = stat()
    guard stat(path, &status) == 0 else {
      return Diagnosis(
        name: "FUSE", level: .fail, finding: "\(path) does not exist",
        advice: "run 'modprobe fuse' as root; in a container, add the device (--device /dev/fuse)")
    }
    if context.isRoot, (try? FD.cwd.openFollowing(path, O_RDWR)) == nil {
      return Diagnosis(
        name: "FUSE", level: .fail, finding: "\(path) exists, but can't be opened",
        advice: "in a container, allow the device (--device /dev/fuse --cap-add SYS_ADMIN)")
    }
    // fusermount3 opens it with the rights of whoever calls it.
    guard status.st_mode & 0o006 == 0o006 || !context.isRoot && access(path, R_OK | W_OK) == 0 else {
      let mode = String(status.st_mode & 0o777, radix: 8)
      return Diagnosis(
        name: "FUSE", level: context.isRoot ? .warn : .fail,
        finding: "\(path) has mode 0\(mode), so only root can mount",
        advice: Requirements.adviceToOpen(path))
    }
    return Diagnosis(name: "FUSE", level: .ok, finding: "\(path) can be opened by all users")
  }

  private var helper: Diagnosis {
    let level: Diagnosis.Level = context.isRoot ? .warn : .fail
    guard let path = Requirements.find("fusermount3", context) else {
      return Diagnosis(
        name: "fusermount3", level: level, finding: "missing, so only root can mount",
        advice: "install it ('apt-get install fuse3')")
    }
    guard Requirements.isSetUserID(path) else {
      return Diagnosis(
        name: "fusermount3", level: level, finding: "\(path) is not setuid root, so only root can mount",
        advice: "run 'chmod u+s \(path)' as root")
    }
    return Diagnosis(name: "fusermount3", level: .ok, finding: "\(path), setuid root")
  }

  private var allowOther: Diagnosis {
    let lines = Self.text(of: "/etc/fuse.conf").parts(between: "\n")
    let isOn = lines.contains {
      $0.split(whereSeparator: { $0 == " " || $0 == "\t" }) == ["user_allow_other"]
    }
    return Diagnosis(
      name: "user_allow_other", level: .ok,
      finding: isOn
        ? "enabled in /etc/fuse.conf; not required"
        : "disabled in /etc/fuse.conf; not required: only its owner uses a user's store")
  }

  private var release: String {
    let text = Self.text(of: "/proc/sys/kernel/osrelease").parts(between: "\n")
    return text.first.map(String.init) ?? "unknown"
  }

  private var kernel: Diagnosis {
    guard KernelRelease(release) >= KernelRelease(5, 6) else {
      return Diagnosis(
        name: "kernel", level: .fail,
        finding: "Linux \(release) does not have openat2, which insula requires",
        advice: "use Linux 5.6 or later (6.9 or later for full speed)")
    }
    return Diagnosis(name: "kernel", level: .ok, finding: "Linux \(release)")
  }

  private var passthrough: Diagnosis {
    guard context.isRoot else {
      return Diagnosis(
        name: "passthrough", level: .warn,
        finding: "requires a daemon that runs as root; data goes through the daemon",
        advice: "this works; a store for all users ('sudo insula init') is faster")
    }
    return since(
      KernelRelease(6, 9), "passthrough",
      missing: "not supported by this kernel (requires 6.9); data goes through the daemon",
      advice: "use a newer kernel to read and write at full speed")
  }

  /// What this kernel can do from a release on.
  private func since(
    _ needed: KernelRelease, _ name: String, missing: String, advice: String,
    present: String = "supported by this kernel"
  ) -> Diagnosis {
    guard KernelRelease(release) >= needed else {
      return Diagnosis(name: name, level: .warn, finding: missing, advice: advice)
    }
    return Diagnosis(name: name, level: .ok, finding: present)
  }

  private var epochs: Diagnosis {
    since(
      KernelRelease(6, 16), "cache epochs", missing: "not supported by this kernel (requires 6.16)",
      advice: "this works; cached names are invalidated one by one, which is slower")
  }

  private var resending: Diagnosis {
    since(
      KernelRelease(6, 9), "survival",
      missing: "not supported by this kernel (requires 6.9): a mount ends when its daemon is killed",
      advice: "this works; a newer kernel lets another daemon go on, also for 'insula restart'",
      present: "this kernel lets a mount outlive its daemon")
  }

  private var descriptors: Diagnosis {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return Diagnosis(name: "open files", level: .warn, finding: "can't determine the limit")
    }
    guard limit.rlim_max >= 4096 else {
      return Diagnosis(
        name: "open files", level: .warn, finding: "at most \(limit.rlim_max)",
        advice: "raise the hard limit ('ulimit -Hn', /etc/security/limits.conf, LimitNOFILE= in the unit)")
    }
    return Diagnosis(name: "open files", level: .ok, finding: "at most \(limit.rlim_max)")
  }

  /// Tried with the very program: many things can stand in the way.
  private var sandbox: Diagnosis {
    guard let path = Requirements.find("bwrap", context) else {
      return Diagnosis(
        name: "sandbox", level: .warn, finding: "bubblewrap is missing, so 'insula run' does not work",
        advice: "install it ('apt-get install bubblewrap')")
    }
    let words = [
      "bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--disable-userns", "--ro-bind", "/", "/",
      "--",
      "/bin/true",
    ]
    let result = try? Subprocess.run(path, words, context)
    guard let result, result.end == .exited(0) else {
      let why = result?.output.parts(between: "\n").first.map(String.init) ?? "it does not start"
      let isOld = why.includes("Unknown option")
      return Diagnosis(
        name: "sandbox", level: .warn,
        finding: "bubblewrap can't create one, so 'insula run' does not work: \(why)",
        advice: isOld ? "use bubblewrap 0.8 or later" : Bubblewrap.advice)
    }
    return Diagnosis(name: "sandbox", level: .ok, finding: "\(path) works: apps can run")
  }

  private var neighbours: Diagnosis {
    since(
      KernelRelease(6, 12), "sandbox sockets",
      missing: "an app with network access can reach abstract sockets of other programs",
      advice: "use Linux 6.12 or later, or don't run apps with network access",
      present: "this kernel can keep apps from other programs' abstract sockets")
  }

  private static func text(of path: String) -> String { FD.text(of: path, limit: 1 << 16) ?? "" }
}
