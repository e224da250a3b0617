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
  fileprivate func conflict(
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
  fileprivate func free(
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
    ready.wait()
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

func waitingForLocks(_ check: inout Checks) {
  check("lock.wait.woken-by-unlock") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, F_SETLK, F_WRLCK, 0, 0))
    let waiter = try Actor.start {
      try t.ok(lock(try t.open("file", O_RDWR), F_SETLKW, F_WRLCK, 0, 0))
      try t.equal(try t.text("file"), "done", "content under the lock")
    }
    lingering()
    try t.put(fd, "done")
    try t.ok(lock(fd, F_SETLK, F_UNLCK, 0, 0))
    try waiter.finish()
  }
  check("lock.wait.woken-by-the-holders-death") { t in
    try t.make("file")
    let ready = try Gate()
    let holder = try Actor.start {
      try t.ok(lock(try t.open("file", O_RDWR), F_SETLK, F_WRLCK, 0, 0))
      ready.pass()
      sleep(30)
    }
    ready.wait()
    let waiter = try Actor.start { try t.ok(lock(try t.open("file", O_RDWR), F_SETLKW, F_WRLCK, 0, 0)) }
    lingering()
    kill(holder.pid, SIGKILL)
    try waiter.finish()
    holder.reap()
  }
  check("lock.wait.interrupted-is-EINTR") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, F_SETLK, F_WRLCK, 0, 0))
    try t.inChild {
      let other = try t.open("file", O_RDWR)
      interruptSoon()
      try t.fails(EINTR, lock(other, F_SETLKW, F_WRLCK, 0, 0))
    }
    try t.ok(lock(fd, F_SETLK, F_UNLCK, 0, 0))
    try t.free([true])
  }
  check("lock.wait.a-killed-waiter-leaves-nothing") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, F_SETLK, F_WRLCK, 0, 0))
    let waiter = try Actor.start { try t.ok(lock(try t.open("file", O_RDWR), F_SETLKW, F_WRLCK, 0, 0)) }
    lingering()
    kill(waiter.pid, SIGKILL)
    try t.equal(clx_term_signal(waiter.reap()), SIGKILL, "signal")
    try t.ok(lock(fd, F_SETLK, F_UNLCK, 0, 0))
    try t.free([true])
  }
  check("lock.wait.deadlock-is-EDEADLK") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, F_SETLK, F_WRLCK, 0, 1))
    let ready = try Gate()
    let other = try Actor.start {
      let fd = try t.open("file", O_RDWR)
      try t.ok(lock(fd, F_SETLK, F_WRLCK, 1, 1))
      ready.pass()
      let result = lock(fd, F_SETLKW, F_WRLCK, 0, 1)
      try t.expect(result == 0 || errno == EDEADLK, "the lock or EDEADLK")
    }
    ready.wait()
    lingering()
    // Whoever comes second gets EDEADLK. Either way both end, since the loser lets go.
    let result = lock(fd, F_SETLKW, F_WRLCK, 1, 1)
    try t.expect(result == 0 || errno == EDEADLK, "the lock or EDEADLK")
    try t.expect(result == -1, "that the second to wait is the loser")
    try t.ok(lock(fd, F_SETLK, F_UNLCK, 0, 0))
    try other.finish()
  }
  check("lock.wait.other-calls-go-on-meanwhile") { t in
    // A blocked lock must not hold up a filesystem that has few threads.
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, F_SETLK, F_WRLCK, 0, 0))
    let waiters = try (0..<12).map { _ in
      try Actor.start { try t.ok(lock(try t.open("file", O_RDWR), F_SETLKW, F_WRLCK, 0, 0)) }
    }
    lingering()
    for index in 0..<50 {
      try t.make("f\(index)", "text")
      try t.equal(try t.text("f\(index)"), "text", "content")
    }
    try t.ok(lock(fd, F_SETLK, F_UNLCK, 0, 0))
    for waiter in waiters { try waiter.finish() }
  }
  check("lock.wait.counter-under-a-lock-loses-nothing") { t in
    try t.make("file", "0")
    let actors = try (0..<4).map { _ in
      try Actor.start {
        let fd = try t.open("file", O_RDWR)
        for _ in 0..<50 {
          try t.ok(lock(fd, F_SETLKW, F_WRLCK, 0, 0))
          let value = Int(String(decoding: try t.bytes(fd, 20, at: 0), as: UTF8.self)) ?? 0
          let next = String(value + 1)
          try t.ok(pwrite(fd, next, next.utf8.count, 0))
          try t.ok(lock(fd, F_SETLK, F_UNLCK, 0, 0))
        }
      }
    }
    for actor in actors { try actor.finish() }
    try t.equal(try t.text("file"), "200", "counter")
  }
}

func openFileLocks(_ check: inout Checks) {
  check("ofd.conflicts-within-one-process") { t in
    try t.make("file")
    let (one, two) = (try t.open("file", O_RDWR), try t.open("file", O_RDWR))
    try t.ok(lock(one, CLX_F_OFD_SETLK, F_WRLCK, 0, 10))
    try t.fails(EAGAIN, lock(two, CLX_F_OFD_SETLK, F_WRLCK, 5, 1))
    try t.ok(lock(two, CLX_F_OFD_SETLK, F_WRLCK, 10, 1))
    try t.ok(lock(one, CLX_F_OFD_SETLK, F_UNLCK, 0, 10))
    try t.ok(lock(two, CLX_F_OFD_SETLK, F_WRLCK, 5, 1))
  }
  check("ofd.conflicts-with-posix-locks-of-the-same-process") { t in
    try t.make("file")
    let (one, two) = (try t.open("file", O_RDWR), try t.open("file", O_RDWR))
    try t.ok(lock(one, F_SETLK, F_WRLCK, 0, 1))
    try t.fails(EAGAIN, lock(two, CLX_F_OFD_SETLK, F_WRLCK, 0, 1))
    try t.ok(lock(two, CLX_F_OFD_SETLK, F_WRLCK, 1, 1))
    try t.fails(oneOf: [EAGAIN, EACCES], lock(one, F_SETLK, F_WRLCK, 1, 1))
  }
  check("ofd.getlk-finds-it") { t in
    try t.make("file")
    let (one, two) = (try t.open("file", O_RDWR), try t.open("file", O_RDWR))
    try t.ok(lock(one, CLX_F_OFD_SETLK, F_RDLCK, 7, 3))
    let found = try t.conflict(two, F_WRLCK, 0, 0, command: CLX_F_OFD_GETLK)
    try t.equal(found.l_type, Int16(F_RDLCK), "type")
    try t.equal(found.l_start, 7, "start")
    try t.equal(found.l_len, 3, "length")
    try t.equal(
      try t.conflict(one, F_WRLCK, 0, 0, command: CLX_F_OFD_GETLK).l_type, Int16(F_UNLCK),
      "type for its holder")
  }
  check("ofd.getlk-shows-pid-minus-one") { t in
    try t.make("file")
    let (one, two) = (try t.open("file", O_RDWR), try t.open("file", O_RDWR))
    try t.ok(lock(one, CLX_F_OFD_SETLK, F_WRLCK, 0, 0))
    try t.equal(try t.conflict(two, F_WRLCK, 0, 0, command: CLX_F_OFD_GETLK).l_pid, -1, "pid")
  }
  check("ofd.fork-and-dup-share-it") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, CLX_F_OFD_SETLK, F_WRLCK, 0, 0))
    try t.ok(lock(try t.ok(dup(fd)), CLX_F_OFD_SETLK, F_WRLCK, 0, 0))
    try t.inChild { try t.ok(lock(fd, CLX_F_OFD_SETLK, F_WRLCK, 0, 0)) }
    try t.free([false])
  }
  check("ofd.survives-other-closes-and-ends-with-the-last") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    let twin = try t.ok(dup(fd))
    try t.ok(lock(fd, CLX_F_OFD_SETLK, F_WRLCK, 0, 1))
    try t.ok(close(try t.open("file", O_RDWR)))
    try t.free([false, true])
    try t.ok(close(fd))
    try t.free([false, true])
    try t.ok(close(twin))
    try t.free([true, true])
  }
  check("ofd.a-waiter-is-woken") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, CLX_F_OFD_SETLK, F_WRLCK, 0, 0))
    let waiter = try Actor.start {
      try t.ok(lock(try t.open("file", O_RDWR), CLX_F_OFD_SETLKW, F_WRLCK, 0, 0))
      try t.equal(try t.text("file"), "done", "content under the lock")
    }
    lingering()
    try t.put(fd, "done")
    try t.ok(lock(fd, CLX_F_OFD_SETLK, F_UNLCK, 0, 0))
    try waiter.finish()
  }
  check("ofd.a-waiter-is-interrupted") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(lock(fd, CLX_F_OFD_SETLK, F_WRLCK, 0, 0))
    try t.inChild {
      let other = try t.open("file", O_RDWR)
      interruptSoon()
      try t.fails(EINTR, lock(other, CLX_F_OFD_SETLKW, F_WRLCK, 0, 0))
    }
  }
  check("ofd.a-pid-in-the-request-is-EINVAL") { t in
    try t.make("file")
    var request = Glibc.flock()
    request.l_type = Int16(F_WRLCK)
    request.l_pid = 1
    try t.fails(EINVAL, clx_fcntl_lock(try t.open("file", O_RDWR), CLX_F_OFD_SETLK, &request))
  }
}
