// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// Runs checks one by one, each in a process and a directory of its own.
package struct Runner {
  /// The directory to judge, as an open descriptor and as the path that was given.
  let place: Int32
  let user: Person
  let peer: Person
  let inheritsGroup: Bool
  let lacksNothing: Bool
  /// How long a check may take before it counts as hung.
  let patience: Int32 = 30_000
  private var count = 0

  /// A runner for the directory at `path`; nil with errno set if it can't be opened.
  package init?(path: String, user: Person, peer: Person, inheritsGroup: Bool, lacksNothing: Bool) {
    place = clx_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    guard place != -1 else { return nil }
    self.user = user
    self.peer = peer
    self.inheritsGroup = inheritsGroup
    self.lacksNothing = lacksNothing
  }

  /// Tries one check and cleans up after it.
  package mutating func run(_ check: Check) -> Verdict {
    let isRoot = geteuid() == 0
    if !isRoot && (check.cast == .several || check.cast == .root) {
      return .skipped(check.cast == .root ? "needs root" : "needs root, to act as several users")
    }
    if let absent = check.tools.first(where: { tool($0) == nil }) {
      return .skipped("there is no program \(absent)")
    }
    count += 1
    let name = "conformance-\(getpid())-\(count)"
    guard mkdirat(place, name, 0o755) == 0 else {
      return .failed("can't make the directory: \(errnoName(errno))")
    }
    let verdict = supervise { try self.play(check, in: name, isRoot: isRoot) }
    let place = place
    let cleanup = supervise { try removeTree(place, name) }
    return verdict == .passed ? cleanup : verdict
  }

  /// The child's part: the directory, its owner, the credentials, the body.
  private func play(_ check: Check, in name: String, isRoot: Bool) throws {
    let owner =
      isRoot && (check.cast == .user || check.cast == .several)
      ? user : Person(uid: geteuid(), gid: getegid())
    guard fchdir(place) == 0, chdir(name) == 0, chown(".", owner.uid, owner.gid) == 0, chmod(".", 0o755) == 0
    else { throw Failure(text: "can't set up the directory: \(errnoName(errno))") }
    umask(0o022)
    if isRoot && check.cast == .user { try owner.assume() }
    try check.body(Trial(user: user, peer: peer, inheritsGroup: inheritsGroup, lacksNothing: lacksNothing))
  }

  /// Runs `body` in a child that leads a process group, so that all it leaves behind can be ended.
  private func supervise(_ body: () throws -> Void) -> Verdict {
    let start = Result {
      try Actor.start {
        setpgid(0, 0)
        // A runner that is killed takes its check along.
        clx_prctl(1, UInt(SIGKILL))  // PR_SET_PDEATHSIG
        try body()
      }
    }
    guard case .success(let actor) = start else { return .failed("can't start a process") }
    setpgid(actor.pid, actor.pid)
    let message = listen(to: actor)
    close(actor.pipe)
    // Only what this run started: the child's own group.
    kill(-actor.pid, SIGKILL)
    kill(actor.pid, SIGKILL)
    guard let status = reap(actor.pid) else {
      return .failed("hung, and not to be ended: stuck in the kernel")
    }
    guard let message else { return .failed("hung: no verdict within \(patience / 1000) s") }
    if let verdict = Actor.verdict(from: message) { return verdict }
    return .failed("expected a verdict, saw \(ending(status))")
  }

  /// Reads the verdict; nil on a time-out.
  ///
  /// A process that dies silently closes its end, or, where a grandchild still holds the pipe, shows on the
  /// pidfd.
  private func listen(to actor: Actor) -> [UInt8]? {
    var message: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    let process = clx_pidfd_open(actor.pid, 0)
    defer { close(process) }
    let end = now() + Int(patience)
    while Actor.verdict(from: message) == nil {
      let left = end - now()
      guard left > 0 else { return nil }
      var watched = [
        pollfd(fd: actor.pipe, events: Int16(POLLIN), revents: 0),
        pollfd(fd: process, events: Int16(POLLIN), revents: 0),
      ]
      guard poll(&watched, 2, Int32(left)) > 0 else { continue }
      guard watched[0].revents != 0 else { return message }
      let got = read(actor.pipe, &buffer, buffer.count)
      guard got > 0 else { return message }
      message += buffer.prefix(got)
    }
    return message
  }

  /// The status of a process that was killed; nil if it does not go within five seconds, as one does that
  /// waits uninterruptibly for a filesystem that no longer answers.
  private func reap(_ pid: pid_t) -> Int32? {
    var status: Int32 = 0
    for _ in 0..<5000 {
      if waitpid(pid, &status, WNOHANG) == pid { return status }
      usleep(1000)
    }
    return nil
  }

  private func now() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
  }
}
