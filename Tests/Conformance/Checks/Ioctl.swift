// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

func controls(_ check: inout Checks) {
  check("ioctl.getflags-answers-or-is-ENOTTY") { t in
    try t.make("file")
    let fd = try t.open("file", O_RDONLY)
    // The kernel writes an int although the request's number says long.
    var flags = 0
    if clx_ioctl(fd, CLX_FS_IOC_GETFLAGS, &flags) == -1 {
      try t.expect(errno == ENOTTY || errno == EOPNOTSUPP, "ENOTTY or EOPNOTSUPP, saw \(errnoName(errno)):")
    }
  }
  check("ioctl.unknown-request-is-ENOTTY") { t in
    try t.make("file")
    var argument = 0
    try t.fails(ENOTTY, clx_ioctl(try t.open("file", O_RDONLY), 0x7a7a, &argument))
    try t.fails(ENOTTY, clx_ioctl(try t.open(".", O_RDONLY), 0x7a7a, &argument))
  }
  check("ioctl.fionread-tells-what-is-left") { t in
    try t.make("file", "0123456789")
    let fd = try t.open("file", O_RDONLY)
    _ = try t.get(fd, 4)
    var left: Int32 = 0
    try t.ok(clx_ioctl(fd, UInt(FIONREAD), &left))
    try t.equal(left, 6, "bytes")
  }
}
