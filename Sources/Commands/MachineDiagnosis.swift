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
    [device, helper, allowOther, kernel, passthrough, epochs, descriptors, sandbox, neighbours]
  }

  var device: Diagnosis {
    let path = devicePath
    var status = stat()
    guard stat(path, &status) == 0 else {
      return Diagnosis(
        name: "FUSE", level: .fail, finding: "there is no \(path)",
        advice: "'modprobe fuse' as root; in a container, pass the device in (--device /dev/fuse)")
    }
    // A user's mounts are opened by fusermount3, which is root.
    if context.isRoot, (try? FD.cwd.openFollowing(path, O_RDWR)) == nil {
      return Diagnosis(
        name: "FUSE", level: .fail, finding: "\(path) is there and can't be opened",
        advice: "in a container, allow the device (--device /dev/fuse --cap-add SYS_ADMIN)")
    }
    // An app's view of a user's own store is mounted by that user, without fusermount3.
    guard status.st_mode & 0o006 == 0o006 || !context.isRoot && access(path, R_OK | W_OK) == 0 else {
      let mode = String(status.st_mode & 0o777, radix: 8)
      return Diagnosis(
        name: "FUSE", level: .warn,
        finding: "\(path) has the mode 0\(mode), so apps of users' own stores don't run ('insula run')",
        advice: "'chmod 0666 \(path)' as root; so that it stays, a udev rule: "
          + "KERNEL==\"fuse\", MODE=\"0666\", as Debian's own is")
    }
    return Diagnosis(name: "FUSE", level: .ok, finding: "\(path) can be opened by all users")
  }

  private var helper: Diagnosis {
    let level: Diagnosis.Level = context.isRoot ? .warn : .fail
    guard let path = Requirements.find("fusermount3", context) else {
      return Diagnosis(
        name: "fusermount3", level: level, finding: "is missing, so only root can mount",
        advice: "'apt-get install fuse3'")
    }
    guard Requirements.isSetUserID(path) else {
      return Diagnosis(
        name: "fusermount3", level: level, finding: "\(path) is not setuid root, so only root can mount",
        advice: "'chmod u+s \(path)' as root")
    }
    return Diagnosis(name: "fusermount3", level: .ok, finding: "\(path), setuid root: users can mount")
  }

  private var allowOther: Diagnosis {
    let lines = Self.text(of: "/etc/fuse.conf").split(separator: "\n")
    let isOn = lines.contains {
      $0.split(whereSeparator: { $0 == " " || $0 == "\t" }) == ["user_allow_other"]
    }
    return Diagnosis(
      name: "user_allow_other", level: .ok,
      finding: isOn
        ? "on in /etc/fuse.conf; not needed"
        : "off in /etc/fuse.conf; not needed: a user's store is that user's alone")
  }

  /// Major and minor version of the running kernel.
  static func kernelVersion(_ release: String) -> (Int, Int) {
    let numbers = release.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
    return numbers.count == 2 ? (numbers[0], numbers[1]) : (0, 0)
  }

  private var release: String {
    let text = Self.text(of: "/proc/sys/kernel/osrelease").split(separator: "\n")
    return text.first.map(String.init) ?? "unknown"
  }

  private var kernel: Diagnosis {
    guard Self.kernelVersion(release) >= (5, 6) else {
      return Diagnosis(
        name: "kernel", level: .fail, finding: "Linux \(release) lacks openat2, which insula relies on",
        advice: "use Linux 5.6 or later; 6.9 for full speed")
    }
    return Diagnosis(name: "kernel", level: .ok, finding: "Linux \(release)")
  }

  private var passthrough: Diagnosis {
    guard context.isRoot else {
      return Diagnosis(
        name: "passthrough", level: .warn,
        finding: "only root's daemon may hand files to the kernel; data goes through the daemon",
        advice: "nothing is wrong; a store for the whole machine ('sudo insula init') is faster")
    }
    guard Self.kernelVersion(release) >= (6, 9) else {
      return Diagnosis(
        name: "passthrough", level: .warn,
        finding: "this kernel has none (6.9 and later do); data goes through the daemon",
        advice: "use a newer kernel for full speed of reading and writing")
    }
    return Diagnosis(name: "passthrough", level: .ok, finding: "this kernel has it")
  }

  private var epochs: Diagnosis {
    guard Self.kernelVersion(release) >= (6, 16) else {
      return Diagnosis(
        name: "cache epochs", level: .warn, finding: "this kernel has none (6.16 and later do)",
        advice: "nothing is wrong; what was cached is withdrawn name by name, which is slower")
    }
    return Diagnosis(name: "cache epochs", level: .ok, finding: "this kernel has them")
  }

  private var descriptors: Diagnosis {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return Diagnosis(name: "open files", level: .warn, finding: "the limit can't be read")
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
        name: "sandbox", level: .warn, finding: "bubblewrap is missing, so no app runs ('insula run')",
        advice: "'apt-get install bubblewrap'")
    }
    let words = [
      "bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--disable-userns", "--ro-bind", "/", "/",
      "--",
      "/bin/true",
    ]
    let result = try? Subprocess.run(path, words, context)
    guard let result, result.end == .exited(0) else {
      let why = result?.output.split(separator: "\n").first.map(String.init) ?? "it does not start"
      let isOld = why.contains("Unknown option")
      return Diagnosis(
        name: "sandbox", level: .warn, finding: "bubblewrap can't make one, so no app runs: \(why)",
        advice: isOld ? "use bubblewrap 0.8 or later" : Bubblewrap.advice)
    }
    return Diagnosis(name: "sandbox", level: .ok, finding: "\(path) makes sandboxes: apps can be run")
  }

  private var neighbours: Diagnosis {
    guard Self.kernelVersion(release) >= (6, 12) else {
      return Diagnosis(
        name: "sandbox sockets", level: .warn,
        finding:
          "an app with the network reaches other programs' sockets that have no place in the file tree",
        advice: "use Linux 6.12 or later, or give such apps no network")
    }
    return Diagnosis(
      name: "sandbox sockets", level: .ok, finding: "this kernel can keep apps among themselves")
  }

  private static func text(of path: String) -> String { FD.text(of: path, limit: 1 << 16) ?? "" }
}
