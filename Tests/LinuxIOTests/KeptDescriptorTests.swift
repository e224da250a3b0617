// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Nobody gets a descriptor for something else than what it is.
struct KeptDescriptorTests {
  @Test func whatIsNotedWronglyIsNotThere() throws {
    let temporary = try TemporaryDirectory()
    try temporary.write("text", to: "file")
    let file = try FD.cwd.open(temporary.appending("file"), O_RDWR)
    let process = try ProcessID.open(ProcessID.own)
    let memory = try SharedMemory("test", size: 4096)
    let socket = OwnedFD(owning: try check(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)))
    let null = try FD.cwd.open("/dev/null", O_RDWR)
    let right: [KeptState.Kind: FD] = [
      .viewMemory: memory.fd, .volumeMemory: memory.fd, .appLaunch: memory.fd, .appProcess: process.fd,
      .listener: socket.fd,
    ]
    for kind in [KeptState.Kind.connection, .viewMemory, .appProcess, .appLaunch, .volumeMemory, .listener] {
      for fd in [file.fd, process.fd, memory.fd, socket.fd, null.fd, FD(1_000_000), FD(0), FD(-1)] {
        let kept = try KeptState(layout: 1)
        kept.keep(fd, as: kind, view: 3)
        #expect(kept.descriptor(kind, view: 3)?.raw == (right[kind]?.raw == fd.raw ? fd.raw : nil))
      }
    }
  }
}
