// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

/// Daemons are known by the directory of their store, and by nothing that a copy of it has as well.
@Suite struct StoreCopyTests {
  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), arguments: [false, true])
  func copyOfAMountedStoreIsAnotherStore(asNobody: Bool) throws {
    let mounted = try MountedStore(asNobody: asNobody)
    try mounted.mount()
    let copy = mounted.temporary.appending("copy")
    let other = try mounted.temporary.makeDirectory("other", mode: 0o777)
    #expect(try Program.run(["cp", "-a", mounted.store, copy]).status == 0)
    let mount = try mounted.run("mount", copy, other)
    #expect(
      mount.status == 0 && mount.errors.contains("check --repair \(copy)") != asNobody, "\(mount.errors)")
    func field(_ name: String, _ place: String) throws -> String {
      let status = try mounted.run("status", place, "--json")
      let fields = try JSONSerialization.jsonObject(with: Data(status.output.utf8)) as? [String: Any]
      return "\(fields?[name] ?? status.errors)"
    }
    let (pid, copyPID) = (try field("pid", mounted.store), try field("pid", copy))
    #expect(pid != copyPID)
    #expect(try field("uuid", mounted.store) == field("uuid", copy))
    // By its store, its mount, and a link to either.
    for (name, place, expected) in [
      ("a", mounted.point, pid), ("b", other, copyPID), ("c", mounted.store, pid), ("d", copy, copyPID),
    ] {
      let link = mounted.temporary.appending("link-\(name)")
      #expect(symlink(place, link) == 0)
      for path in [place, link] { #expect(try field("pid", path) == expected, "\(path)") }
    }
    // Taking one away leaves the other, whichever was there first.
    #expect(try mounted.run("unmount", other).status == 0)
    #expect(mounted.isMounted)
    #expect(try field("pid", mounted.store) == pid)
    #expect(try mounted.run("check", copy, "--repair").output.contains("repaired") != asNobody)
    #expect(try mounted.run("check", copy).output.contains("UUID") == false)
    #expect((try field("uuid", copy) != field("uuid", mounted.store)) != asNobody)
    #expect(try mounted.unmount().status == 0)
  }

  /// A daemon of no tree, under a name of the test's.
  private func daemon(
    _ name: String, in directory: FD, store: String, identity: StoreIdentity?
  ) throws -> ControlServer {
    var status = DaemonStatus(
      pid: 1, store: store, uuid: "U", mode: "system", mountPoint: store + "-mount", counts: [:])
    status.identity = identity
    let server = try ControlServer(in: directory, name: name, mode: 0o600) { [status] _ in
      .reply(.status(status))
    }
    try server.start()
    return server
  }

  @Test func daemonOfAnEarlierVersionIsFoundAndNotForACopy() throws {
    let temporary = try TemporaryDirectory()
    let store = try temporary.makeDirectory("store")
    let copy = try temporary.makeDirectory("copy")
    _ = try temporary.makeDirectory("insula")
    let directory = try TemporaryDirectory.open(temporary.appending("insula"))
    let server = try daemon("U.sock", in: directory.fd, store: store, identity: nil)
    defer { server.stop() }
    let place = ControlPlace(uid: 5, runtimeDirectory: temporary.path)
    let search = DaemonSearch(place)
    #expect(search.daemon(at: [store]) != nil)
    #expect(search.daemon(at: [copy]) == nil)
  }

  @Test func whoLiesAboutTheirStoreIsNotBelieved() throws {
    let temporary = try TemporaryDirectory()
    let store = try temporary.makeDirectory("store")
    let copy = try temporary.makeDirectory("copy")
    _ = try temporary.makeDirectory("insula")
    let directory = try TemporaryDirectory.open(temporary.appending("insula"))
    let (ours, others) = (try #require(StoreIdentity(at: store)), try #require(StoreIdentity(at: copy)))
    // The name says one store, and the daemon another.
    let server = try daemon(ours.text + ".sock", in: directory.fd, store: store, identity: others)
    defer { server.stop() }
    #expect(DaemonSearch(ControlPlace(uid: 5, runtimeDirectory: temporary.path)).daemon(at: [store]) == nil)
  }

  /// What is left of one that was killed listens, and takes nobody in; its queue may be full.
  @Test(arguments: [4096, 0]) func whoTakesNoQuestionIsNotWaitedFor(places: Int32) throws {
    let temporary = try TemporaryDirectory()
    _ = try temporary.makeDirectory("insula")
    let directory = try TemporaryDirectory.open(temporary.appending("insula"))
    let left = try LocalSocket.listen(in: directory.fd, name: "left.sock", mode: 0o600)
    #expect(listen(left.fd.raw, places) == 0)
    let waiting = try LocalSocket.connect(in: directory.fd, name: "left.sock")
    let server = try daemon("U.sock", in: directory.fd, store: "/store", identity: nil)
    defer { server.stop() }
    let place = ControlPlace(only: temporary.appending("insula"))
    #expect(place.daemons(patience: .max).map(\.status.store) == ["/store"])
    try #require(try waiting.fd.waitUntilReadable(milliseconds: 0) == false)
  }

  @Test func liveNameIsRefused() throws {
    let temporary = try TemporaryDirectory()
    let directory = try temporary.open()
    let first = try daemon("s", in: directory.fd, store: "/first", identity: nil)
    defer { first.stop() }
    #expect(throws: Errno.EADDRINUSE) {
      try ControlServer(in: directory.fd, name: "s", mode: 0o600) { _ in .reply(.done) }
    }
    let client = try ControlClient(in: directory.fd, name: "s")
    guard case .status(let status) = try client.ask(.status, milliseconds: patience) else {
      Issue.record("no status")
      return
    }
    #expect(status.store == "/first")
  }

  /// A place that others could put sockets in, or that leads elsewhere, is none.
  @Test(arguments: ["0777", "0775", "another's", "link", "file"])
  func runtimeDirectoryMustBeOursAlone(kind: String) throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.appending("insula")
    let elsewhere = try temporary.makeDirectory("elsewhere")
    switch kind {
    case "link": #expect(symlink(elsewhere, path) == 0)
    case "file": try temporary.write("", to: "insula")
    default:
      _ = try temporary.makeDirectory("insula")
      #expect(chmod(path, kind == "0777" ? 0o777 : kind == "0775" ? 0o775 : 0o755) == 0)
      if kind == "another's" {
        guard Program.isRoot else { return }
        #expect(chown(path, 65534, 65534) == 0)
      }
    }
    let store = temporary.appending("store")
    try Store.create(at: store, StoreDescription(mode: .rootless, adminGroup: .init(name: "x", gid: 0)))
    let opened = try Store(opening: store, .exclusive)
    let place = ControlPlace(uid: 5, runtimeDirectory: temporary.path)
    let budget = Budget(Budget.Limits(descriptors: 0))
    let listening = try place.listen(for: opened, budget: budget) { _ in .reply(.done) }
    defer { listening.close() }
    #expect(try temporary.names(in: "store/state").contains("control.sock"))
    #expect(try temporary.names(in: "elsewhere") == [])
    if kind != "file" { #expect(try temporary.names(in: "insula") == []) }
  }

  /// An ordinary user without a store of their own.
  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func whoHasNoStoreMeansTheMachines() throws {
    let mounted = try MountedStore()
    let shell = try Shell()
    func run(_ words: String...) -> Shell.Result { shell.run(words, as: 65534, machineStore: mounted.store) }
    for command in [["status"], ["user", "list"]] {
      let result = shell.run(command, as: 65534, machineStore: mounted.store)
      #expect(result.code == .notMounted && result.errors.contains("sudo insula mount"), "\(result.errors)")
    }
    try mounted.mount()
    #expect(try mounted.run("user", "add", "nobody", "--store", mounted.store).status == 0)
    let status = run("status")
    #expect(
      status.code == .ok && status.output.contains("is mounted at \(mounted.point)"), "\(status.errors)")
    let homes = run("user", "list")
    #expect(homes.code == .ok && homes.output.contains("nobody"), "\(homes.errors)")
    let check = run("check")
    #expect(check.code == .notPermitted && check.errors.contains("sudo insula check"), "\(check.errors)")
    #expect(!check.errors.contains("init"))
    // Who has one means that.
    #expect(mkdir(shell.temporary.appending("data"), 0o755) == 0)
    #expect(try Program.run([Program.insula, "init", shell.temporary.appending("data/insula")]).status == 0)
    #expect(run("status").output.contains(shell.temporary.appending("data/insula")))
    #expect(try mounted.unmount().status == 0)
  }
}
