// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

// A process mounts one filesystem for the daemon, and looks after the program that serves it.
//
//  1. Root's works in a mount namespace of its own, which the program shares: nobody else sees the mount. The
//     daemon gets a descriptor of its root, by which the mount lives on.
//  2. The program has no rights to mount. Its mount(2) is answered here: the filesystem is made for it, with
//     nosuid and nodev, whatever it has asked for, and served over a connection of ours that takes the place
//     of the one that it has opened. So it runs as a user, or as nobody.
//  3. An ordinary user's daemon has no such rights either: there `fusermount3` mounts, and the mount is taken
//     out of the file tree as soon as the daemon has it.
//  4. Two who change a disk would destroy it. So its image is locked (flock(2)) for as long as anybody has
//     it, which may be longer than this process lives, and no loop device of others is made of it. A block
//     device of a program's is claimed (O_EXCL); mount(8) claims by itself, and may have one twice, as one
//     filesystem.
//  5. The daemon holds the other end of a socket. When it lets go of that, the program is to end; when the
//     program ends, the socket is closed here.

/// See the rules above.
struct EngineSupervisor {
  let order: EngineOrder
  let isSystem: Bool
  let daemon: FD

  func run() -> Never {
    do throws(EngineFailure) {
      try serve()
    } catch {
      send(EngineReport(error.error, error.reason))
      _exit(1)
    }
    _exit(0)
  }

  private func serve() throws(EngineFailure) {
    let place = try preparePlace()
    defer { if !isSystem { _ = rmdir(place) } }
    switch order.source {
    case .kernel(let disk): try serveByKernel(disk, at: place)
    case .program(let disk): try serve(disk, at: place)
    case .server(let address): try serve(address, at: place)
    case .encrypted(let hasDisk): try serveEncrypted(hasDisk: hasDisk, at: place)
    case .ownDisk(let newSize): try serveOwnDisk(newSize: newSize, at: place)
    }
  }

  private func serveByKernel(_ disk: String, at place: String) throws(EngineFailure) {
    guard isSystem, order.user == 0 else {
      throw EngineFailure(.EPERM, "only root can have the kernel mount a disk, and in the machine's store")
    }
    let found = try examine(disk)
    let isReadOnly = order.isReadOnly || found.format.kind.isReadOnly
    let lent = try lend(found, to: EngineUser(of: 0, 0), isReadOnly: isReadOnly, in: place)
    defer { withExtendedLifetime((found.disk, lent.held)) {} }
    let mountPoint = mountPoint(in: place)
    try makeMountPoint(mountPoint, lent.user)
    let program = try EngineProgram(
      mounting: found.format.kind, at: lent.path, isReadOnly: isReadOnly, at: mountPoint)
    try mountByKernel(program, at: mountPoint, report(program, found.format))
  }

  private func serve(_ disk: String, at place: String) throws(EngineFailure) {
    let found = try examine(disk)
    let isReadOnly = order.isReadOnly || found.format.kind.isReadOnly
    let lent = try lend(found, isReadOnly: isReadOnly, in: place)
    defer { withExtendedLifetime((found.disk, lent.held)) {} }
    let mountPoint = mountPoint(in: place)
    let program = try EngineProgram(
      serving: found.format.kind, at: lent.path, isReadOnly: isReadOnly, at: mountPoint)
    try run(
      program, as: lent.user, at: mountPoint, report(program, found.format),
      holding: try claim(found, lent, isReadOnly: isReadOnly))
  }

  private func serve(_ address: ServerAddress, at place: String) throws(EngineFailure) {
    guard address.isByProgram else {
      guard isSystem, order.user == 0 else {
        let what = "volumes of \(address.scheme.rawValue)"
        throw EngineFailure(.EPERM, "only root can have \(what), and in the machine's store")
      }
      let program = try EngineProgram(
        address, for: EngineUser.own, isReadOnly: order.isReadOnly, at: place)
      return try mountByKernel(program, at: place, report(program, nil))
    }
    let mountPoint = mountPoint(in: place)
    let user = isSystem ? EngineUser(of: order.user, order.group) : EngineUser.own
    let program = try EngineProgram(address, for: user, isReadOnly: order.isReadOnly, at: mountPoint)
    let cache = try program.uploads.map { (cache) throws(EngineFailure) in try open(cache, of: user) } ?? nil
    defer { withExtendedLifetime(cache) {} }
    try run(program, as: user, at: mountPoint, report(program, nil))
  }

  /// One that can't be there is not used either.
  private func open(_ cache: UploadCache, of user: EngineUser) throws(EngineFailure) -> SharedFD? {
    do throws(Errno) {
      return try ThreadIdentity.with(uid: user.uid, gid: user.gid, lasting: false) { () throws(Errno) in
        SharedFD(try cache.open(milliseconds: 20_000) { isGivenUp })
      }
    } catch .EBUSY {
      throw EngineFailure(.EBUSY, "what was written there before is still being uploaded; try again later")
    } catch {
      return nil
    }
  }

  private func serveEncrypted(hasDisk: Bool, at place: String) throws(EngineFailure) {
    let input = EngineInput(
      directory: try takeHanded(), password: try takeHanded(),
      configuration: hasDisk ? try takeHanded() : nil)
    let mountPoint = mountPoint(in: place)
    let program = try EngineProgram(
      decryptingAt: mountPoint, hasDisk: hasDisk, isReadOnly: order.isReadOnly)
    let user = isSystem ? EngineUser(of: order.user, order.group) : EngineUser.own
    try run(program, as: user, at: mountPoint, report(program, nil), input)
  }

  /// What the daemon hands over after its order.
  func takeHanded() throws(EngineFailure) -> SharedFD {
    try attempt({ "the daemon has not said what to decrypt: \($0.message)" }) { () throws(Errno) in
      guard try daemon.waitUntilReadable(milliseconds: 10_000),
        let handed = try LocalSocket.receive(from: daemon, limit: 1)?.descriptor
      else { throw .EPIPE }
      return SharedFD(OwnedFD(owning: handed.raw))
    }
  }

  func mountPoint(in place: String) -> String { isSystem ? place + "/volume" : place }

  func report(_ program: EngineProgram, _ format: DiskFormat?) -> EngineReport {
    var report = EngineReport()
    report.engine = program.name
    report.identity = format?.identity ?? []
    // What a kernel's network filesystem and a cluster's client have is the server's own.
    report.keepsOwners = format?.kind.keepsOwners ?? ["nfs", "glusterfs"].contains(program.name)
    report.isReadOnly = order.isReadOnly || format?.kind.isReadOnly == true
    report.uploadsLater = program.uploads != nil
    return report
  }

  func send(_ report: EngineReport, with root: FD? = nil) {
    // Whoever does not listen any more needs no answer.
    _ = try? LocalSocket.send(report.bytes[...], with: root, to: daemon)
  }

  /// Does something, and says what has failed if it does.
  func attempt<Result: ~Copyable>(
    _ saying: (Errno) -> String, _ body: () throws(Errno) -> Result
  ) throws(EngineFailure) -> Result {
    do throws(Errno) { return try body() } catch { throw EngineFailure(error, saying(error)) }
  }
}
