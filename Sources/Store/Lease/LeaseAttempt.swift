// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
package import Policy

/// An attempt to have a lease, one look after the other.
///
/// What one look has found is kept for the next, however much later that is: so those who do not wait for a
/// machine that is gone have the lease, too, when they look once more.
package struct LeaseAttempt: Sendable {
  /// What came of a look.
  package enum Outcome: Sendable {
    case had(StoreLease)
    /// Nothing new was seen, and not for long enough.
    case silent(host: String?)
    /// Another machine has renewed or taken it since the last look.
    case renewed(host: String?)
  }

  private let times: LeaseTimes
  private var acquisition: LeaseAcquisition

  package init(_ times: LeaseTimes = .usual) {
    self.times = times
    acquisition = LeaseAcquisition(times)
  }

  /// Looks once, and takes the lease if it is free; one that has thrown makes no further look.
  ///
  /// Its loss `endsProcess`, unless somebody else waits for its deadline.
  package mutating func look(
    at state: FD, path: String, endsProcess: Bool
  ) throws(StoreError) -> Outcome {
    guard let process = ProcessIdentity(running: ProcessID.own) else {
      throw .failed(doing: "look at this process for the lease of", path: path, errno: .ENOSYS)
    }
    var record = LeaseRecord(
      holder: UUIDText.random(), host: hostName() ?? "a machine without a name", process)
    let files = try explaining("open the lease of", path) { () throws(Errno) in try LeaseFiles(in: state) }
    var step = LeaseAcquisition.Step.look
    var found: LeaseRecord?
    var made: OwnedFD?
    while true {
      switch step {
      case .look:
        let asked = bootNanoseconds()
        let top = try explaining("read the lease of", path) { () throws(Errno) in try files.top() }
        found = top.record
        step = acquisition.looked(top.top, asked: asked, answered: bootNanoseconds())
      case .pause: return .silent(host: found?.host)
      case .take(let number):
        let begun = bootNanoseconds()
        record.renewedAt = begun
        made = try explaining("take the lease of", path) { () throws(Errno) in
          try files.make(number, record)
        }
        step = acquisition.took(made != nil, begun: begun, done: bootNanoseconds())
      case .use(let number, let term):
        guard let file = made.take() else { throw .leased(path: path, host: record.host) }
        files.removeOld(before: number)
        do throws(Errno) {
          return .had(try StoreLease(state, file, number, record, term, times, endsProcess: endsProcess))
        } catch {
          throw StoreError(error, doing: "keep the lease of", path: path)
        }
      case .giveUp: return .renewed(host: found?.host)
      }
    }
  }
}
