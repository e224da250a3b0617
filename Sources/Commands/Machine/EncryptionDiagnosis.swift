// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// Whether the keys of locked volumes are gone, and where those of unlocked ones may get to.
struct EncryptionDiagnosis {
  let found: DaemonSearch.Found

  /// Nothing where no volume is encrypted: then no program has a key.
  var all: [Diagnosis] {
    var daemon = RunningDaemon(found.client, found.status)
    let volumes = (try? daemon.volumes(.list))?.filter { $0.kind == "encrypted" } ?? []
    guard !volumes.isEmpty else { return [] }
    return volumes.map(keys) + [swap]
  }

  private func keys(of volume: VolumeDescription) -> Diagnosis {
    let name = "volume \(volume.name.sanitized)"
    let (processes, hidden) = MountUsers.processes(of: "gocryptfs", using: volume.path)
    let numbers = processes.map { "\($0)" }.joined(separator: ", ")
    guard volume.filesystem == nil else {
      return Diagnosis(
        name: name, level: .ok,
        finding:
          "unlocked: its keys are in the memory of gocryptfs\(numbers.isEmpty ? "" : " (pid \(numbers))")")
    }
    guard processes.isEmpty else {
      return Diagnosis(
        name: name, level: .warn,
        finding: "locked, but gocryptfs (pid \(numbers)) still has its files open, and so its keys",
        advice: "end it: 'kill \(processes.map { "\($0)" }.joined(separator: " "))'")
    }
    guard hidden.isEmpty else {
      return Diagnosis(
        name: name, level: .warn,
        finding: "locked: no process that can be looked at has its keys; "
          + hidden.prefix(5).map { MountUsers.words(ofHidden: $0).sanitized }.joined(separator: "; "))
    }
    return Diagnosis(name: name, level: .ok, finding: "locked: no process has its keys")
  }

  /// gocryptfs does not keep its memory from being swapped, and nothing else can for it.
  private var swap: Diagnosis {
    let name = "keys and swap"
    let lines = (FD.text(of: "/proc/swaps", limit: 1 << 16) ?? "").parts(between: "\n").dropFirst()
    let open = lines.compactMap { $0.parts(between: " ").first.map(String.init) }.filter {
      !Self.isSafe($0)
    }
    guard !open.isEmpty else {
      return Diagnosis(name: name, level: .ok, finding: "no memory is swapped to a disk in plain")
    }
    return Diagnosis(
      name: name, level: .warn,
      finding:
        "keys of unlocked volumes may be swapped to \(open.joined(separator: ", ").sanitized) in plain",
      advice: "encrypt swap ('swap' in /etc/crypttab), use zram, or turn it off ('swapoff -a')")
  }

  /// Whether what is swapped there stays in memory, or is encrypted.
  private static func isSafe(_ device: String) -> Bool {
    let name = device.parts(between: "/").last.map(String.init) ?? ""
    return name.hasPrefix("zram")
      || FD.text(of: "/sys/block/\(name)/dm/uuid", limit: 256)?.hasPrefix("CRYPT-") == true
  }
}
