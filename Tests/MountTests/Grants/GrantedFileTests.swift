// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A file that both its user and an app write to, on real mounts.
@Suite(.serialized, .enabled(if: Program.isRoot, "mounting takes root"))
struct GrantedFileTests {
  /// Another view's having changed it is noted of a file, and that it is shared memory of a database: neither
  /// may pass for the other.
  @Test(arguments: [false, true]) func bothWriteInTurn(rootless: Bool) throws {
    let fixture = try GrantedMounts(rootless: rootless)
    try fixture.makeDirectories("a")
    try fixture.write("0", to: fixture.all("a/letter"))
    try fixture.grant("a/letter")
    for turn in 1...4 {
      try fixture.write("\(turn) of the user", to: fixture.all("a/letter"))
      try fixture.write("\(turn) of the app", to: fixture.own("a/letter"))
      #expect(fixture.text(fixture.all("a/letter")) == "\(turn) of the app")
      #expect(fixture.text(fixture.own("a/letter")) == "\(turn) of the app")
    }
  }

  @Test func sharedMemoryStaysRefusedWhenOthersHaveChangedIt() throws {
    let fixture = try GrantedMounts()
    try fixture.makeDirectories("a")
    try fixture.write("0", to: fixture.all("a/db-shm"))
    try fixture.grant("a")
    let path = fixture.own("a/db-shm")
    for _ in 0..<3 {
      // A map of the app's would not show what the user's database writes, so it can't read it meanwhile.
      let user = open(fixture.all("a/db-shm"), O_WRONLY | O_TRUNC | O_CLOEXEC)
      try #require(user >= 0 && write(user, "more", 4) == 4)
      #expect(open(path, O_RDONLY | O_CLOEXEC) == -1 && Errno.last == .EPERM)
      close(user)
      // The kernel tells the daemon of a close some time after that has returned.
      #expect(eventually { fixture.text(path) == "more" })
      #expect(open(path, O_RDWR | O_CLOEXEC) == -1 && Errno.last == .EPERM)
      // Whoever is refused has not emptied it either.
      #expect(open(path, O_RDWR | O_TRUNC | O_CLOEXEC) == -1 && Errno.last == .EPERM)
      #expect(fixture.text(fixture.all("a/db-shm")) == "more")
    }
  }

  /// The kernel connects those who use one view; another view's fifo or socket of that name is another one.
  @Test func meetingPointsAreOfOneView() throws {
    let fixture = try GrantedMounts()
    try fixture.makeDirectories("a")
    try fixture.grant("a")
    #expect(mkfifo(fixture.all("a/pipe"), 0o666) == 0)
    let reader = open(fixture.own("a/pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    try #require(reader >= 0)
    defer { close(reader) }
    #expect(open(fixture.all("a/pipe"), O_WRONLY | O_NONBLOCK | O_CLOEXEC) == -1 && Errno.last == .ENXIO)
    let writer = open(fixture.own("a/pipe"), O_WRONLY | O_NONBLOCK | O_CLOEXEC)
    #expect(writer >= 0)
    close(writer)

    let outside = try TemporaryDirectory.open(fixture.all("a"))
    let inside = try TemporaryDirectory.open(fixture.own("a"))
    let server = try LocalSocket.listen(in: outside.fd, name: "socket", mode: 0o666)
    #expect(throws: Never.self) { _ = try LocalSocket.connect(in: outside.fd, name: "socket") }
    #expect(throws: Errno.ECONNREFUSED) { _ = try LocalSocket.connect(in: inside.fd, name: "socket") }
    withExtendedLifetime(server) {}
  }
}
