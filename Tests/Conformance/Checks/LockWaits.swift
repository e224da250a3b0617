// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

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
    try ready.wait(for: holder)
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
    try ready.wait(for: other)
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
