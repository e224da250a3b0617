// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// How many `SIGIO` this process has been sent; by default one would have ended it.
private let signalsOfLeases = Atomic<Int>(0)

@Suite struct WritersTests {
  private let temporary: TemporaryDirectory
  private let path: String

  init() throws {
    temporary = try TemporaryDirectory()
    path = temporary.appending("file")
    try temporary.write("text", to: "file")
  }

  private func open(_ flags: Int32) throws -> OwnedFD {
    try path.withName { (name) throws(Errno) in try FD.cwd.openFollowing(name, flags) }
  }

  @Test func descriptorsAndMapsForWritingAreFound() throws {
    let reader = try open(O_RDONLY)
    #expect(!reader.fd.isOpenForWriting())
    var writer: OwnedFD? = try open(O_RDWR)
    #expect(reader.fd.isOpenForWriting())
    let raw = try #require(writer?.fd.raw)
    let map = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, raw, 0)
    writer = nil
    #expect(reader.fd.isOpenForWriting())
    munmap(map, 4096)
    #expect(!reader.fd.isOpenForWriting())
  }

  @Test func opensThatComeBetweenSendNoSignalThatEndsAProcess() throws {
    let previous = signal(SIGIO) { _ in signalsOfLeases.add(1, ordering: .relaxed) }
    defer { _ = signal(SIGIO, previous) }
    let path = path
    let reader = try open(O_RDONLY)
    // A thread of its own: Swift's may all be busy with other tests.
    let broken = Counter()
    let writer = try JoinableThread(name: "writer") {
      let end = ContinuousClock.now + .seconds(60)
      while broken.value.load(ordering: .relaxed) < 100, ContinuousClock.now < end {
        // EAGAIN: the lease was there.
        let raw = Glibc.open(path, O_WRONLY | O_NONBLOCK)
        if raw >= 0 { _ = close(raw) } else if errno == EAGAIN { broken.value.add(1, ordering: .relaxed) }
      }
      broken.isOver.store(true, ordering: .releasing)
    }
    while !broken.isOver.load(ordering: .acquiring) { _ = reader.fd.isOpenForWriting() }
    writer.join()
    #expect(broken.value.load(ordering: .relaxed) >= 100)
    #expect(signalsOfLeases.load(ordering: .relaxed) == 0)
  }

  private final class Counter: Sendable {
    let value = Atomic<Int>(0)
    let isOver = Atomic<Bool>(false)
  }
}
