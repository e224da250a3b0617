// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// Waits a moment for another process to get stuck in a lock.
///
/// Whether it does is not to be seen from here, and a check holds either way.
func lingering() { usleep(100_000) }

func wholeFileLocks(_ check: inout Checks) {
  check("flock.exclusive-keeps-others-out") { t in
    try t.make("file")
    let (one, two) = (try t.open("file", O_RDWR), try t.open("file", O_RDWR))
    try t.ok(flock(one, LOCK_EX))
    try t.fails(EWOULDBLOCK, flock(two, LOCK_EX | LOCK_NB))
    try t.fails(EWOULDBLOCK, flock(two, LOCK_SH | LOCK_NB))
    try t.ok(flock(one, LOCK_UN))
    try t.ok(flock(two, LOCK_EX | LOCK_NB))
  }
  check("flock.shared-lets-shared-in") { t in
    try t.make("file")
    let (one, two) = (try t.open("file", O_RDONLY), try t.open("file", O_RDONLY))
    try t.ok(flock(one, LOCK_SH | LOCK_NB))
    try t.ok(flock(two, LOCK_SH | LOCK_NB))
    try t.fails(EWOULDBLOCK, flock(two, LOCK_EX | LOCK_NB))
    try t.ok(flock(one, LOCK_UN))
    try t.ok(flock(two, LOCK_EX | LOCK_NB))
  }
  check("flock.converts-up-and-down") { t in
    try t.make("file")
    let (one, two) = (try t.open("file", O_RDWR), try t.open("file", O_RDWR))
    try t.ok(flock(one, LOCK_SH))
    try t.ok(flock(one, LOCK_EX | LOCK_NB))
    try t.fails(EWOULDBLOCK, flock(two, LOCK_SH | LOCK_NB))
    try t.ok(flock(one, LOCK_SH))
    try t.ok(flock(two, LOCK_SH | LOCK_NB))
  }
  check("flock.of-another-process") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(flock(fd, LOCK_EX))
    try t.inChild { try t.fails(EWOULDBLOCK, flock(try t.open("file", O_RDWR), LOCK_EX | LOCK_NB)) }
  }
  check("flock.fork-and-dup-share-it") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    let twin = try t.ok(dup(fd))
    try t.ok(flock(fd, LOCK_EX))
    try t.ok(flock(twin, LOCK_EX | LOCK_NB))
    try t.inChild { try t.ok(flock(fd, LOCK_EX | LOCK_NB)) }
    let other = try t.open("file", O_RDWR)
    try t.fails(EWOULDBLOCK, flock(other, LOCK_EX | LOCK_NB))
    try t.inChild { try t.ok(flock(fd, LOCK_UN)) }
    try t.ok(flock(other, LOCK_EX | LOCK_NB))
  }
  check("flock.released-by-the-last-close") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    let twin = try t.ok(dup(fd))
    try t.ok(flock(fd, LOCK_EX))
    try t.ok(close(fd))
    let other = try t.open("file", O_RDWR)
    try t.fails(EWOULDBLOCK, flock(other, LOCK_EX | LOCK_NB))
    try t.ok(close(twin))
    try t.ok(flock(other, LOCK_EX | LOCK_NB))
  }
  check("flock.released-by-the-death-of-its-holder") { t in
    try t.make("file")
    let ready = try Gate()
    let holder = try Actor.start {
      try t.ok(flock(try t.open("file", O_RDWR), LOCK_EX))
      ready.pass()
      sleep(30)
    }
    try ready.wait(for: holder)
    let fd = try t.open("file", O_RDWR)
    try t.fails(EWOULDBLOCK, flock(fd, LOCK_EX | LOCK_NB))
    kill(holder.pid, SIGKILL)
    holder.reap()
    try t.ok(flock(fd, LOCK_EX | LOCK_NB))
  }
  check("flock.a-waiter-is-woken") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(flock(fd, LOCK_EX))
    let waiter = try Actor.start {
      try t.ok(flock(try t.open("file", O_RDWR), LOCK_EX))
      try t.equal(try t.text("file"), "done", "content under the lock")
    }
    lingering()
    try t.put(fd, "done")
    try t.ok(flock(fd, LOCK_UN))
    try waiter.finish()
  }
  check("flock.a-waiter-is-interrupted") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDWR)
    try t.ok(flock(fd, LOCK_EX))
    try t.inChild {
      let other = try t.open("file", O_RDWR)
      interruptSoon()
      try t.fails(EINTR, flock(other, LOCK_EX))
    }
    try t.ok(flock(fd, LOCK_UN))
    try t.ok(flock(try t.open("file", O_RDWR), LOCK_EX | LOCK_NB))
  }
  check("flock.on-a-directory-and-a-read-only-file") { t in
    try t.make("file", mode: 0o444)
    try t.dir("dir")
    for name in ["file", "dir"] {
      let (one, two) = (try t.open(name, O_RDONLY), try t.open(name, O_RDONLY))
      try t.ok(flock(one, LOCK_EX))
      try t.fails(EWOULDBLOCK, flock(two, LOCK_SH | LOCK_NB))
    }
  }
  check("flock.through-two-hard-links-is-one-lock") { t in
    try t.make("a")
    try t.ok(link("a", "b"))
    try t.ok(flock(try t.open("a", O_RDWR), LOCK_EX))
    try t.fails(EWOULDBLOCK, flock(try t.open("b", O_RDWR), LOCK_EX | LOCK_NB))
  }
  check("flock.does-not-meet-posix-locks") { t in
    try t.make("file")
    try t.ok(flock(try t.open("file", O_RDWR), LOCK_EX))
    try t.inChild { try t.ok(lock(try t.open("file", O_RDWR), F_SETLK, F_WRLCK, 0, 0)) }
  }
  check("flock.errors") { t in
    try t.make("file")
    try t.fails(EBADF, flock(999, LOCK_EX))
    try t.fails(EINVAL, flock(try t.open("file", O_RDWR), 0))
    try t.fails(EBADF, flock(try t.open("file", CLX_O_PATH), LOCK_EX))
  }
}
