// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Synchronization

/// How many requests there were of a kind, and how long the daemon served them.
package struct RequestTally: Codable, Equatable, Sendable {
  package var count: UInt64
  /// From the moment the daemon has read a request until it is done with it.
  package var nanoseconds: UInt64

  package init(count: UInt64, nanoseconds: UInt64) {
    self.count = count
    self.nanoseconds = nanoseconds
  }
}

/// What was requested while a process tree was traced, by the kernel's names.
package struct RequestReport: Codable, Equatable, Sendable {
  /// By the tree's processes.
  package var own: [String: RequestTally] = [:]
  /// By the kernel itself, which does not say for whom: releases, forgotten nodes, pages written back.
  package var kernels: [String: RequestTally] = [:]

  package init() {}
}

/// Counts the requests of process trees, as long as somebody wants to know.
///
/// Who asks is the root of the tree, so nobody learns of others' requests. Whether a thread belongs to it is
/// looked up when it sends a request: it waits for the answer, so it is still there. That holds for a moment
/// only, since its number may be another thread's later.
package final class RequestTraces: Sendable {
  private struct Member {
    let belongs: Bool
    let time: UInt64
  }

  private struct Trace {
    let user: UInt32
    let process: SharedFD
    var members: [Int32: Member] = [:]
    var report = RequestReport()

    /// Whether the process that asked for it is still there, so that its number is nobody else's.
    var isWanted: Bool {
      (try? process.use { (fd) throws(Errno) in try fd.waitUntilReadable(milliseconds: 0) }) == false
    }
  }

  /// At the same time, and of one user.
  private static let mostTraces = 8
  private static let mostOfOne = 2
  private static let mostMembers = 1 << 14
  /// In nanoseconds: no number of a thread comes round in that time.
  private static let memory: UInt64 = 100_000_000
  /// A chain of parents that is longer leads nowhere.
  private static let mostParents = 1 << 10

  private let traces = Mutex<[Int32: Trace]>([:])
  /// Whether there is anything to count; looked at for each request.
  private let isActive = Atomic<Bool>(false)

  /// Counts from now on what is requested by a process and all that it starts; EBUSY if too many are traced.
  package func begin(_ pid: Int32, of user: UInt32, _ process: SharedFD) throws(Errno) {
    try traces.withLock { (traces) throws(Errno) in
      removeEnded(&traces)
      let others = traces.filter { $0.key != pid }.values
      let own = others.count { $0.user == user }
      guard others.count < Self.mostTraces, own < Self.mostOfOne else { throw .EBUSY }
      traces[pid] = Trace(user: user, process: process)
      isActive.store(true, ordering: .relaxed)
    }
  }

  /// What has been counted for a process, of which no more is; nil if it was not traced.
  package func end(_ pid: Int32, of user: UInt32) -> RequestReport? {
    traces.withLock { traces in
      removeEnded(&traces)
      guard traces[pid]?.user == user else { return nil }
      let report = traces.removeValue(forKey: pid)?.report
      isActive.store(!traces.isEmpty, ordering: .relaxed)
      return report
    }
  }

  /// Serves a request, and counts it if there is anybody to count it for.
  ///
  /// `client` is the thread that waits for it, or 0 for the kernel.
  @inline(__always)
  func serve(_ opcode: UInt32, from client: UInt32, _ serve: () -> Void) {
    guard isActive.load(ordering: .relaxed) else { return serve() }
    count(opcode, from: Int32(truncatingIfNeeded: client), serve)
  }

  @inline(never)
  private func count(_ opcode: UInt32, from client: Int32, _ serve: () -> Void) {
    let counts = client == 0 ? \RequestReport.kernels : \.own
    let name = RequestCounts.name(of: opcode)
    // Before it is served: with the answer, the client may end, and its report be asked for.
    let roots = client == 0 ? traces.withLock { Array($0.keys) } : roots(of: client)
    add(RequestTally(count: 1, nanoseconds: 0), to: roots, counts, name)
    let start = monotonicNanoseconds()
    serve()
    let duration = monotonicNanoseconds() &- start
    add(RequestTally(count: 0, nanoseconds: duration), to: roots, counts, name)
  }

  private func add(
    _ tally: RequestTally, to roots: [Int32],
    _ counts: WritableKeyPath<RequestReport, [String: RequestTally]>, _ name: String
  ) {
    traces.withLock { traces in
      for root in roots {
        traces[root]?.report[keyPath: counts][name, default: RequestTally(count: 0, nanoseconds: 0)].add(
          tally)
      }
    }
  }

  /// The roots of the trees in which a thread is.
  private func roots(of thread: Int32) -> [Int32] {
    let now = monotonicNanoseconds()
    let known = traces.withLock { traces -> [Int32]? in
      var found: [Int32] = []
      for (root, trace) in traces {
        guard let member = trace.members[thread], now &- member.time < Self.memory else { return nil }
        if member.belongs { found.append(root) }
      }
      return found
    }
    if let known { return known }
    // Without the lock, which others wait for.
    let line = Self.ancestry(thread)
    return traces.withLock { traces in
      removeEnded(&traces)
      for root in traces.keys {
        if traces[root]?.members.count == Self.mostMembers { traces[root]?.members = [:] }
        traces[root]?.members[thread] = Member(belongs: line.contains(root), time: now)
      }
      return traces.keys.filter(line.contains)
    }
  }

  /// The process of a thread, its parent, and so on.
  private static func ancestry(_ thread: Int32) -> [Int32] {
    var found: [Int32] = []
    var next = ProcessID.field("Tgid", of: "\(thread)").flatMap { Int32($0) }
    while let process = next, process > 1, found.count < mostParents {
      found.append(process)
      next = ProcessID.field("PPid", of: "\(process)").flatMap { Int32($0) }
    }
    return found
  }

  /// Who has ended will not ask for its report.
  private func removeEnded(_ traces: inout [Int32: Trace]) {
    traces = traces.filter { $0.value.isWanted }
    if traces.isEmpty { isActive.store(false, ordering: .relaxed) }
  }
}

extension RequestTally {
  fileprivate mutating func add(_ other: Self) {
    count &+= other.count
    nanoseconds &+= other.nanoseconds
  }
}
