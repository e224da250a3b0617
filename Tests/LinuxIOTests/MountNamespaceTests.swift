// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import TestSupport
internal import Testing
@testable internal import LinuxIO

/// Whose mount namespaces are, and who has them looked at.
@Suite struct MountNamespaceTests {
  /// A process in a mount namespace of its own, until it is asked to end.
  private final class Sleeper {
    let process: Int32
    private let thread: JoinableThread

    init(_ before: [String], _ temporary: TemporaryDirectory) throws {
      let ready = temporary.appending("ready-\(monotonicNanoseconds())")
      let words = before + ["sh", "-c", "echo $$ >&3; exec sleep 300"]
      let script = "exec 3>\"$0\"; exec timeout 200 \"$@\""
      thread = try JoinableThread(name: "sleeper") {
        _ = try? Program.run(["sh", "-c", script, ready] + words)
      }
      try #require(eventually { FD.text(of: ready, limit: 16)?.hasSuffix("\n") == true })
      process = FD.text(of: ready, limit: 16)?.split(separator: "\n").first.flatMap { Int32($0) } ?? 0
      try #require(process > 0)
    }

    deinit {
      kill(process, SIGKILL)
      thread.join()
    }
  }

  private static func become(_ uid: UInt32) -> [String] {
    ["setpriv", "--reuid=\(uid)", "--regid=\(uid)", "--clear-groups"]
  }

  @Test(.enabled(if: Program.isRoot, "becoming others needs root"))
  func outermostUserNamespaceSaysWhoseItIs() throws {
    let temporary = try TemporaryDirectory()
    let machine = try Sleeper(["unshare", "-m"], temporary)
    let one = try Sleeper(Self.become(7001) + ["unshare", "-Urm"], temporary)
    // In it, anybody can be root, and have user namespaces of root's.
    let two = try Sleeper(Self.become(7002) + ["unshare", "-Urm", "unshare", "-Urm"], temporary)
    let roots = try Sleeper(["unshare", "-Urm"], temporary)
    let all = [machine, one, two, roots].map(\.process)
    #expect(
      all.map { MountNamespace.owner(ofProcess: $0) } == [.machine, .user(7001), .user(7002), .machine])
    let found = MountNamespace.others()
    for (process, owner) in zip(
      all, [.machine, .user(7001), .user(7002), .machine] as [MountNamespace.Owner])
    {
      #expect(found.filter { $0.processes.contains(process) }.map(\.owner) == [owner])
    }
    #expect(!found.contains { $0.processes.contains(ProcessID.own) })
    #expect(MountNamespace.owner(ofProcess: .max) == nil)
  }

  /// Whoever makes theirs too large has used up their own time; what could not be looked at is named.
  @Test func eachUserHasAShareOfTheTime() throws {
    let parent = getppid()
    let place = MountTable.Place(device: DeviceNumber(major: 0, minor: 0), path: "/nowhere")
    let namespaces = [
      MountNamespace(owner: .user(7001), processes: [ProcessID.own]),
      MountNamespace(owner: .machine, processes: [parent]),
    ]
    for (user, hidden) in [(Int(patience), []), (0, [ProcessID.own])] as [(Int, [Int32])] {
      var found = MountsEverywhere()
      let limits = ProcessLook.Limits(all: Int(patience), one: Int(patience), user: user)
      found.look(at: namespaces, in: place, of: nil, limits)
      #expect(found.hidden == hidden && found.binding.isEmpty && found.others.isEmpty)
    }
  }

  /// What is the owner's counts, whatever a stranger has mounted at the same place.
  @Test func ownersMountsComeBeforeStrangers() throws {
    let table = try MountTable.current()
    let proc = try #require(table.entries.first { $0.mountPoint == "/proc" })
    let below = try #require(table.entries.first { $0.id == proc.parent })
    try #require(below.mountPoint == "/")
    let place = MountTable.Place(device: below.device, path: (below.root == "/" ? "" : below.root) + "/proc")
    let namespaces = [
      MountNamespace(owner: .user(7001), processes: [ProcessID.own]),
      MountNamespace(owner: .user(7002), processes: [getppid()]),
    ]
    for owner in [7001, 7002] as [UInt32] {
      var found = MountsEverywhere()
      let limits = ProcessLook.Limits(all: Int(patience), one: Int(patience), user: Int(patience))
      found.look(at: namespaces, in: place, of: owner, limits)
      let process = owner == 7001 ? ProcessID.own : getppid()
      #expect(found.binding.contains(MountTable.Found(mountPoint: "/proc", process: process)), "\(found)")
      #expect(!found.others.contains { $0.mountPoint == "/proc" })
      found = MountsEverywhere()
      found.look(at: namespaces, in: place, of: nil, limits)
      #expect(found.binding.isEmpty && found.others.contains { $0.mountPoint == "/proc" })
    }
  }
}
