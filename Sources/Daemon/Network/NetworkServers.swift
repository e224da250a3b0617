// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

// Who is in /Network/Servers:
//
//  1. Those that the machine's administrator has named in a file (`NetworkFile`), and those that announce
//     themselves (`ServiceAnnouncement`); of one name the administrator's is meant.
//  2. The file and the network are looked at when the tree is mounted, and when somebody looks into that
//     directory, at most once in ten seconds. Nobody waits for it.
//  3. Each computer has a directory, which is the daemon's. What it shares has no object before it is
//     mounted, which is done when somebody first looks for it (`VolumeService`).

/// Knows the computers of the network, and what they share.
final class NetworkServers: Sendable {
  private static let paceNanoseconds: UInt64 = 10_000_000_000
  private static let patienceMilliseconds = 12_000

  private struct State {
    var shares: [NetworkShare] = []
    var problems: [String] = []
    var looked: UInt64 = 0
    var isLooking = false
    var announced: [NetworkShare] = []
    var listened: UInt64 = 0
    var isListening = false
  }
  private let state = Condition(State())
  private let volume: Volume
  private let file: String?
  private let helper: MountHelper
  private let isReadOnly: Bool
  private let changed = Mutex<(@Sendable () -> Void)?>(nil)

  init(_ volume: Volume, file: String?, _ helper: MountHelper, isReadOnly: Bool) {
    (self.volume, self.file, self.helper, self.isReadOnly) = (volume, file, helper, isReadOnly)
  }

  var shares: [NetworkShare] { state.withLock { $0.shares } }

  /// What the file says that was not understood.
  var problems: [String] { state.withLock { $0.problems } }

  func share(_ name: [UInt8], of host: String) -> NetworkShare? {
    shares.first { $0.host == host && $0.name.utf8.elementsEqual(name) }
  }

  /// Looks for the first time, and has `changed` called whenever others are there than before.
  func begin(_ changed: @escaping @Sendable () -> Void) {
    self.changed.withLock { $0 = changed }
    volume.attached.serversAreLookedAt { [weak self] in self?.look() }
    guard !isReadOnly else { return }
    // What the file says is there from the beginning; who announces themselves may come later.
    take(readFile())
    look()
  }

  /// Looks again, unless that was done just now; nobody waits for it.
  func look() {
    let now = monotonicNanoseconds()
    let isDue = state.withLock { state in
      guard !isReadOnly, !state.isLooking, now &- state.looked >= Self.paceNanoseconds || state.looked == 0
      else { return false }
      state.isLooking = true
      state.looked = now
      return true
    }
    guard isDue else { return }
    let thread = try? JoinableThread(name: "network") { [self] in lookNow() }
    if let thread { thread.detach() } else { state.withLock { $0.isLooking = false } }
  }

  /// Looks now: at the file in any case, and at the network unless that was done just now.
  func lookNow() {
    let now = monotonicNanoseconds()
    let isDue = state.withLock { state in
      guard !state.isListening, now &- state.listened >= Self.paceNanoseconds || state.listened == 0 else {
        return false
      }
      state.isListening = true
      return true
    }
    // Whoever does not answer now is no less there than before.
    let heard = isDue ? helper.announcements().map { NetworkShare.announced(in: $0) } : nil
    if isDue {
      state.change { state in
        if let heard { state.announced = heard }
        state.listened = monotonicNanoseconds()
        state.isListening = false
      }
    } else {
      _ = state.wait(milliseconds: Self.patienceMilliseconds) { !$0.isListening }
    }
    take(readFile())
    state.change { $0.isLooking = false }
  }

  private func take(_ file: NetworkFile) {
    let announced = state.withLock { $0.announced }
    let shares = NetworkShare.known(file, announced)
    let hosts = Set(shares.map(\.host))
    let isOther = state.withLock { state in
      defer { (state.shares, state.problems) = (shares, file.problems) }
      for problem in file.problems where !state.problems.contains(problem) {
        DaemonLog.write("\(self.file ?? ""): \(problem)")
      }
      return state.shares != shares || state.looked == 0
    }
    guard isOther else { return }
    setDirectories(hosts)
    changed.withLock { $0 }?()
  }

  // MARK: The file

  private func readFile() -> NetworkFile {
    guard let file else { return NetworkFile("") }
    do throws(Errno) {
      let opened = try FD.cwd.openWithoutLinks(file, O_RDONLY | O_NONBLOCK | O_NOCTTY)
      let status = try opened.fd.status()
      // Servers are chosen for all users by it.
      guard status.isRegular, status.st_uid == 0 || status.st_uid == ProcessID.user,
        status.st_mode & 0o022 == 0
      else {
        return problem("does not count: it must be a regular file of root's that nobody else can write to")
      }
      let bytes = try opened.fd.readToEnd(limit: NetworkFile.sizeLimit + 1)
      guard bytes.count <= NetworkFile.sizeLimit, let text = String(validating: bytes, as: UTF8.self) else {
        return problem("does not count: it is longer than \(NetworkFile.sizeLimit) bytes, or no text")
      }
      return NetworkFile(text)
    } catch {
      if error == .ENOENT || error == .ENOTDIR { return NetworkFile("") }
      return problem("can't be read: \(error.messageAboutPath)")
    }
  }

  private func problem(_ words: String) -> NetworkFile { NetworkFile(problem: words) }

  // MARK: Directories

  private func setDirectories(_ hosts: Set<String>) {
    guard let servers = try? volume.tree.openDirectory(at: DomainTree.servers.path),
      let status = try? servers.fd.status()
    else { return }
    let hosts = Set(hosts.map(ExactText.init))
    let there = Set(
      ((try? servers.fd.entries()) ?? []).map { ExactText(String(decoding: $0.name, as: UTF8.self)) })
    let used = Set(
      volume.attached.all.compactMap {
        if case .server(let host) = $0.record.place { ExactText(host) } else { nil }
      })
    let missing = hosts.subtracting(there)
    let excess = there.subtracting(hosts).subtracting(used)
    guard !missing.isEmpty || !excess.isEmpty else { return }
    try? volume.changeNames(in: servers.fd) { () throws(Errno) in
      for host in missing {
        try? StoreLayout.makeDirectory(
          host.text, in: servers.fd, mode: 0o755, uid: status.st_uid, gid: status.st_gid)
      }
      // What somebody else has put there is not empty, and stays.
      for host in excess {
        try? host.text.withName { (name) throws(Errno) in try servers.fd.remove(name, directory: true) }
      }
    }
  }
}
