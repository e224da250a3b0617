// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

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
