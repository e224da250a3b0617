// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Store

/// A worker that has ended but for some threads, which are still in the kernel.
///
/// They come back from their calls at most: none of them runs anything of the program any more.
struct DyingWorker {
  let process: Int32
  private static let device = "/dev/fuse"

  /// Nil if that worker lives, or has ended.
  init?(_ process: Int32) {
    guard ProcessID.field("State", of: "\(process)")?.hasPrefix("Z") == true else { return nil }
    self.process = process
  }

  /// What waitpid(2) will say of it; nil if nobody can see that.
  var status: Int32? {
    FD.text(of: "/proc/\(process)/stat", limit: 4096)?
      .parts(between: "\n").first?.parts(between: " ").last.flatMap { Int32($0) }
  }

  /// Whether all of them tell the kernel that a file has changed; false if that can't be seen.
  ///
  /// There they wait for reads and writes of that file, which the next worker has to answer: no other process
  /// can, and they do nothing else any more.
  var onlyNotifies: Bool { all(Self.isNotification) }

  /// Whether all of them do that, change nothing, or change something on one of these disks, which does not
  /// answer.
  ///
  /// Such a thread ends when its call does: the change is made then, or not, as if it had come just before
  /// its worker was killed. Whoever ends there what was begun waits for that (`FormerWorkers`).
  ///
  /// The result is those that are waited for; nil if there is something else.
  func disks(amongAll devices: Set<UInt64>) -> Set<UInt64>? {
    guard !devices.isEmpty else { return nil }
    var waitedFor: Set<UInt64> = []
    let areAll = all { call in
      if Self.isNotification(call) { return true }
      guard let device = Self.device(of: call), devices.contains(device) else {
        return Self.changesNothing(call)
      }
      waitedFor.insert(device)
      return true
    }
    return areAll && !waitedFor.isEmpty ? waitedFor : nil
  }

  /// Whether none of them waits for one of these filesystems; false if that can't be seen.
  func isElsewhere(than devices: Set<UInt64>) -> Bool {
    // The links to descriptors lead anywhere.
    guard let links = try? FD.cwd.openFollowing("/proc/self/fd", O_RDONLY | O_DIRECTORY),
      let others = try? links.fd.statusInMemory()
    else { return false }
    return all { call in
      Self.device(of: call).map { !devices.contains($0) && $0 != UInt64(others.st_dev) } ?? false
    }
  }

  /// Whether none of them can change anything any more; false if that can't be seen.
  ///
  /// A user may pass a file or directory of a filesystem that never answers: neither a signal nor a timeout
  /// ends what a thread asks it.
  var onlyLooks: Bool { all { Self.isNotification($0) || Self.changesNothing($0) } }

  /// Whether none of them changes what is the daemon's alone; false if that can't be seen.
  ///
  /// What they wait for may be a lock of the kernel's that a user holds for as long as they like (see
  /// `StalledUsers`). A change of anything else is made at once, or not yet: what others see comes before or
  /// after it. It may be made after the next worker has ended what was begun: a copy of a bundle may then be
  /// at its place that no app is noted for. `insula check` finds that; a tree that nobody serves is worse.
  /// But the registry is changed in many steps, which no other process may take meanwhile.
  ///
  /// By objects: the owner and the mode of a file say nothing about whose it is.
  func leaves(_ own: Set<StoreIdentity>) -> Bool {
    all { call in
      guard let (arguments, changed) = Self.changes(of: call) else { return false }
      if changed == 0 || Self.isNotification(call) { return true }
      return changed & CLX_CHANGES_NAMED == 0
        && arguments.indices.allSatisfy { index in
          guard changed >> Int32(index) & 1 != 0 else { return true }
          let object = Int32(truncatingIfNeeded: arguments[index])
          // Without asking a filesystem that may not answer.
          guard object >= 0, let status = try? FD(object).statusInMemory() else { return false }
          return !own.contains(StoreIdentity(status))
        }
    }
  }

  /// Whether something is so of the calls of all threads that have not ended, of which there are some.
  private func all(_ isSo: (_ call: String) -> Bool) -> Bool {
    let path = "/proc/\(process)/task"
    var isOne = false
    for thread in ProcessID.numbers(in: path) {
      // It may end meanwhile, as the first one has.
      let state = ProcessID.field("State", of: "\(process)/task/\(thread)")?.utf8.first
      guard state == UInt8(ascii: "D") || state == UInt8(ascii: "R") else { continue }
      guard let call = FD.text(of: "\(path)/\(thread)/syscall", limit: 256), isSo(call)
      else { return false }
      isOne = true
    }
    return isOne
  }

  /// Whether the first argument is a connection to the kernel, which nothing waits for in a killed thread but
  /// a notification.
  ///
  /// Workers and the keeper have one table of descriptors.
  private static func isNotification(_ call: String) -> Bool {
    guard let descriptor = descriptor(of: call) else { return false }
    // Not by what keeps a descriptor for that: the keeper's would be closed by the next worker.
    var path = [CChar](repeating: 0, count: 64)
    guard readlink("/proc/self/fd/\(descriptor)", &path, path.count) == Self.device.utf8.count else {
      return false
    }
    return path.starts(with: Self.device.utf8.map { CChar(bitPattern: $0) })
  }

  /// The device that the first argument is on.
  private static func device(of call: String) -> UInt64? {
    guard let descriptor = descriptor(of: call), let status = try? FD(descriptor).statusInMemory() else {
      return nil
    }
    return UInt64(status.st_dev)
  }

  private static func changesNothing(_ call: String) -> Bool { changes(of: call)?.changed == 0 }

  /// The arguments of a call, and what it changes (`clx_call_changes`); nil where that is not known.
  private static func changes(of call: String) -> (arguments: [UInt64], changed: Int32)? {
    let words = call.parts(between: " ")
    guard let number = words.first.flatMap({ Int(String($0)) }) else { return nil }
    var arguments = words.dropFirst().prefix(6).map { UInt64($0.dropFirst(2), radix: 16) ?? .max }
    // Outside of calls there are none.
    if number < 0 { arguments = Array(repeating: 0, count: 6) }
    guard arguments.count == 6 else { return nil }
    let changed = clx_call_changes(number, arguments)
    return changed < 0 ? nil : (arguments, changed)
  }

  private static func descriptor(of call: String) -> Int32? {
    let words = call.parts(between: " ")
    return words.count > 1 ? Int32(words[1].dropFirst(2), radix: 16) : nil
  }
}
