// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// A clock that only goes forward, also while the machine sleeps.
package func bootNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_BOOTTIME, &time)
  return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// A process of a machine, so that another one can tell later whether it is gone.
///
/// Numbers of processes mean something in their namespace only, and only until the machine begins anew.
package struct ProcessIdentity: Equatable, Sendable {
  package let boot: String
  package let namespace: String
  package let pid: Int32
  /// When it began, in ticks of this boot.
  package let began: String

  package init(boot: String, namespace: String, pid: Int32, began: String) {
    self.boot = boot
    self.namespace = namespace
    self.pid = pid
    self.began = began
  }

  /// A process that runs here; nil if it can't be looked at.
  package init?(running pid: Int32) {
    guard let boot = Self.boot, let namespace = Self.namespace, let began = Self.began(pid)
    else { return nil }
    self.init(boot: boot, namespace: namespace, pid: pid, began: began)
  }

  /// Whether it is certain that the process has ended: it was one of this boot and this namespace.
  package var hasEnded: Bool {
    guard boot == Self.boot, namespace == Self.namespace else { return false }
    return Self.began(pid) != began
  }

  private static var boot: String? {
    FD.text(of: "/proc/sys/kernel/random/boot_id", limit: 64).map { String($0.prefix { $0 != "\n" }) }
  }

  private static var namespace: String? {
    var buffer = [CChar](repeating: 0, count: 64)
    let count = readlink("/proc/self/ns/pid", &buffer, buffer.count - 1)
    guard count > 0 else { return nil }
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func began(_ pid: Int32) -> String? {
    guard let process = ProcessTable.entry(pid), !process.hasEnded else { return nil }
    return String(process.started)
  }
}
