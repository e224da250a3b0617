// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// `fcntl(2)` with a lock from `start`; a length of 0 means to the end.
func lock(_ fd: Int32, _ command: Int32, _ type: Int32, _ start: off_t, _ length: off_t) -> Int32 {
  var lock = Glibc.flock()
  lock.l_type = Int16(type)
  lock.l_whence = Int16(SEEK_SET)
  lock.l_start = start
  lock.l_len = length
  return clx_fcntl_lock(fd, command, &lock)
}

/// Sends this process a signal whose handler does nothing, again and again from a tenth of a second on.
func interruptSoon() {
  var action = sigaction()
  action.__sigaction_handler.sa_handler = { _ in }
  sigaction(SIGALRM, &action, nil)
  var timer = itimerval(
    it_interval: timeval(tv_sec: 0, tv_usec: 100_000), it_value: timeval(tv_sec: 0, tv_usec: 100_000))
  setitimer(__itimer_which_t(ITIMER_REAL.rawValue), &timer, nil)
}

extension Trial {
  /// What stands against a lock: its type, start and length; the type is F_UNLCK if nothing does.
  func conflict(
    _ fd: Int32, _ type: Int32, _ start: off_t, _ length: off_t, command: Int32 = F_GETLK,
    file: StaticString = #fileID, line: UInt = #line
  ) throws -> Glibc.flock {
    var lock = Glibc.flock()
    lock.l_type = Int16(type)
    lock.l_start = start
    lock.l_len = length
    try ok(clx_fcntl_lock(fd, command, &lock), file: file, line: line)
    return lock
  }

  /// States from another process which bytes of `file` are free for writing.
  func free(
    _ expected: [Bool], file: StaticString = #fileID, line: UInt = #line
  ) throws {
    try inChild {
      let fd = try open("file", O_RDWR)
      let seen = try expected.indices.map {
        try conflict(fd, F_WRLCK, off_t($0), 1).l_type == Int16(F_UNLCK)
      }
      try equal(seen, expected, "free bytes", file: file, line: line)
    }
  }
}

func recordLocks(_ check: inout Checks) {
  check("lock.write-keeps-other-processes-out") { t in
    try t.make("file")
    try t.ok(lock(try t.open("file", O_RDWR), F_SETLK, F_WRLCK, 0, 0))
    try t.inChild {
      let fd = try t.open("file", O_RDWR)
      try t.fails(oneOf: [EAGAIN, EACCES], lock(fd, F_SETLK, F_WRLCK, 0, 1))
      try t.fails(oneOf: [EAGAIN, EACCES], lock(fd, F_SETLK, F_RDLCK, 1 << 40, 1))
    }
  }
  check("lock.read-lets-readers-in") { t in
    try t.make("file")
    try t.ok(lock(try t.open("file", O_RDWR), F_SETLK, F_RDLCK, 0, 0))
    try t.inChild {
      let fd = try t.open("file", O_RDWR)
      try t.ok(lock(fd, F_SETLK, F_RDLCK, 0, 10))
      try t.fails(oneOf: [EAGAIN, EACCES], lock(fd, F_SETLK, F_WRLCK, 0, 10))
    }
  }
  check("lock.ranges-do-not-meet") { t in
    try t.make("file")
    try t.ok(lock(try t.open("file", O_RDWR), F_SETLK, F_WRLCK, 2, 3))
    try t.free([true, true, false, false, false, true])
  }
  check("lock.unlocking-the-middle-splits") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, F_SETLK, F_WRLCK, 0, 9))
    try t.ok(lock(fd, F_SETLK, F_UNLCK, 3, 3))
    try t.free([false, false, false, true, true, true, false, false, false, true])
  }
  check("lock.neighbours-merge") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, F_SETLK, F_WRLCK, 0, 10))
    try t.ok(lock(fd, F_SETLK, F_WRLCK, 10, 10))
    try t.inChild {
      let found = try t.conflict(try t.open("file", O_RDWR), F_WRLCK, 5, 1)
      try t.equal(found.l_start, 0, "start")
      try t.equal(found.l_len, 20, "length")
    }
  }
  check("lock.changing-the-type-of-a-part") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, F_SETLK, F_WRLCK, 0, 30))
    try t.ok(lock(fd, F_SETLK, F_RDLCK, 10, 10))
    try t.inChild {
      let other = try t.open("file", O_RDWR)
      try t.ok(lock(other, F_SETLK, F_RDLCK, 10, 10))
      try t.fails(oneOf: [EAGAIN, EACCES], lock(other, F_SETLK, F_RDLCK, 9, 2))
      try t.fails(oneOf: [EAGAIN, EACCES], lock(other, F_SETLK, F_RDLCK, 20, 1))
    }
  }
  check("lock.getlk-tells-who-and-where") { t in
    try t.make("file")
    let me = getpid()
    try t.ok(lock(try t.open("file", O_RDWR), F_SETLK, F_RDLCK, 100, 50))
    try t.inChild {
      let fd = try t.open("file", O_RDWR)
      let found = try t.conflict(fd, F_WRLCK, 0, 0)
      try t.equal(found.l_type, Int16(F_RDLCK), "type")
      try t.equal(found.l_start, 100, "start")
      try t.equal(found.l_len, 50, "length")
      try t.equal(found.l_pid, me, "pid")
      try t.equal(try t.conflict(fd, F_RDLCK, 0, 0).l_type, Int16(F_UNLCK), "type for a reader")
      try t.equal(try t.conflict(fd, F_WRLCK, 0, 100).l_type, Int16(F_UNLCK), "type before the lock")
    }
  }
  check("lock.to-the-end-of-the-file") { t in
    try t.make("file", "0123456789")
    try t.ok(lock(try t.open("file", O_RDWR), F_SETLK, F_WRLCK, 5, 0))
    try t.inChild {
      let fd = try t.open("file", O_RDWR)
      try t.equal(try t.conflict(fd, F_WRLCK, 1 << 50, 1).l_type, Int16(F_WRLCK), "type far out")
      try t.equal(try t.conflict(fd, F_WRLCK, 1 << 50, 1).l_len, 0, "length")
      try t.ok(lock(fd, F_SETLK, F_WRLCK, 0, 5))
    }
  }
  check("lock.relative-to-offset-and-end") { t in
    try t.make("file", "0123456789")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lseek(fd, 4, SEEK_SET))
    var request = Glibc.flock()
    request.l_type = Int16(F_WRLCK)
    request.l_whence = Int16(SEEK_CUR)
    request.l_len = 1
    try t.ok(clx_fcntl_lock(fd, F_SETLK, &request))
    request.l_whence = Int16(SEEK_END)
    request.l_start = -2
    try t.ok(clx_fcntl_lock(fd, F_SETLK, &request))
    request.l_whence = Int16(SEEK_SET)
    request.l_start = 2
    request.l_len = -2
    try t.ok(clx_fcntl_lock(fd, F_SETLK, &request))
    try t.free([false, false, true, true, false, true, true, true, false, true])
  }
  check("lock.own-locks-never-conflict") { t in
    try t.make("file")
    let (one, two) = (try t.open("file", O_RDWR), try t.open("file", O_RDWR))
    try t.ok(lock(one, F_SETLK, F_WRLCK, 0, 10))
    try t.ok(lock(two, F_SETLK, F_WRLCK, 5, 10))
    try t.equal(try t.conflict(two, F_WRLCK, 0, 0).l_type, Int16(F_UNLCK), "type")
  }
  check("lock.any-close-releases-all") { t in
    try t.make("file")
    let (one, two) = (try t.open("file", O_RDWR), try t.open("file", O_RDONLY))
    try t.ok(lock(one, F_SETLK, F_WRLCK, 0, 3))
    try t.free([false, false, false, true])
    try t.ok(close(two))
    try t.free([true, true, true, true])
  }
  check("lock.is-not-inherited-by-fork") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, F_SETLK, F_WRLCK, 0, 1))
    try t.inChild { try t.fails(oneOf: [EAGAIN, EACCES], lock(fd, F_SETLK, F_WRLCK, 0, 1)) }
    try t.inChild { try t.ok(close(fd)) }
    try t.free([false, true])
  }
  check("lock.released-by-the-death-of-its-holder") { t in
    try t.make("file")
    let ready = try Gate()
    let holder = try Actor.start {
      try t.ok(lock(try t.open("file", O_RDWR), F_SETLK, F_WRLCK, 0, 0))
      ready.pass()
      sleep(30)
    }
    try ready.wait(for: holder)
    let fd = try t.open("file", O_RDWR)
    try t.fails(oneOf: [EAGAIN, EACCES], lock(fd, F_SETLK, F_WRLCK, 0, 1))
    kill(holder.pid, SIGKILL)
    holder.reap()
    try t.ok(lock(fd, F_SETLK, F_WRLCK, 0, 1))
  }
  check("lock.errors") { t in
    try t.make("file")
    try t.fails(EBADF, lock(try t.open("file", O_RDONLY), F_SETLK, F_WRLCK, 0, 1))
    try t.fails(EBADF, lock(try t.open("file", O_WRONLY), F_SETLK, F_RDLCK, 0, 1))
    try t.fails(EBADF, lock(999, F_SETLK, F_WRLCK, 0, 1))
    let fd = try t.open("file", O_RDWR)
    try t.fails(EINVAL, lock(fd, F_SETLK, 99, 0, 1))
    try t.fails(EINVAL, lock(fd, F_SETLK, F_WRLCK, -1, 1))
    try t.fails(EOVERFLOW, lock(fd, F_SETLK, F_WRLCK, off_t.max, 2))
    try t.fails(EINVAL, lock(fd, F_GETLK, F_UNLCK, 0, 1))
  }
}
