// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
package import Policy
internal import Synchronization

/// The lease on a store that lies on a server, where the lock of one machine may say nothing to another.
///
/// The rules are in `Policy/Lease`. A process that finds its lease over ends at once: its threads must not
/// write any more, and of those that are in a call nobody knows when that will be done.
package final class StoreLease: Sendable {
  /// What came of a renewal.
  package enum Renewal: Sendable {
    case done
    /// It could not be written now; there may be time for another attempt.
    case failed(Errno)
    /// It is another machine's, or came too late.
    case lost
    /// We have given it back ourselves.
    case released
  }

  private struct State {
    var record: LeaseRecord
    var term: LeaseTerm
  }

  private let directory: OwnedFD
  private let file: OwnedFD
  private let number: UInt64
  private let times: LeaseTimes
  private let state: Mutex<State>
  /// Who renews it.
  private let renewal = Mutex<LeaseRenewal?>(nil)
  /// When this process must have stopped.
  package let deadline: Deadline

  /// What is done with a store when its lease is over: a command and a daemon say so in their own ways.
  private static let ending = Mutex<@Sendable () -> Never>({ abort() })
  /// Is told who has it while that is waited for, and for how many seconds that may take.
  private static let waiting = Mutex<@Sendable (String, Int) -> Void>({ _, _ in })

  /// Says how this process ends when it has no lease any more, and what it says while it waits for one.
  package static func whenLost(_ end: @escaping @Sendable () -> Never) { ending.withLock { $0 = end } }
  package static func whenWaiting(_ tell: @escaping @Sendable (String, Int) -> Void) {
    waiting.withLock { $0 = tell }
  }

  init(
    _ state: FD, _ file: consuming OwnedFD, _ number: UInt64, _ record: LeaseRecord, _ term: LeaseTerm,
    _ times: LeaseTimes, endsProcess: Bool
  ) throws(Errno) {
    directory = try state.duplicated()
    self.file = file
    self.number = number
    self.times = times
    self.state = Mutex(State(record: record, term: term))
    deadline = Deadline(term.end)
    if endsProcess { deadline.whenOver { Self.ending.withLock { $0 }() } }
  }

  /// What came of a look: the lease, or who has it, and whether that one has renewed it since the last look.
  package typealias Look = (lease: StoreLease?, host: String?, isRenewed: Bool)

  /// Looks once, and takes the lease if it is free.
  ///
  /// What was seen is kept for the next look, however much later that is: so those who do not wait for a
  /// machine that is gone have the lease, too, when they look once more. After an error nobody looks again.
  /// Its loss `endsProcess`, unless somebody else waits for its deadline.
  package static func look(
    at state: FD, path: String, _ acquisition: inout LeaseAcquisition, endsProcess: Bool
  ) throws(StoreError) -> Look {
    guard let process = ProcessIdentity(running: ProcessID.own) else {
      throw .failed(doing: "look at this process for the lease of", path: path, errno: .ENOSYS)
    }
    var record = LeaseRecord(
      holder: UUIDText.random(), host: hostName() ?? "a machine without a name", process)
    var host: String?
    do throws(Errno) {
      let files = try LeaseFiles(in: state)
      var made: OwnedFD?
      var step = LeaseAcquisition.Step.look
      while true {
        switch step {
        case .look:
          let asked = bootNanoseconds()
          let top = try files.top()
          host = top.record?.host
          step = acquisition.looked(top.top, asked: asked, answered: bootNanoseconds())
        case .pause: return (nil, host, false)
        case .take(let number):
          let begun = bootNanoseconds()
          record.renewedAt = begun
          made = try files.make(number, record)
          step = acquisition.took(made != nil, begun: begun, done: bootNanoseconds())
        case .use(let number, let term):
          guard let file = made.take() else { throw .ESTALE }
          files.removeOld(before: number)
          let times = acquisition.times
          return (
            try StoreLease(state, file, number, record, term, times, endsProcess: endsProcess), nil, false
          )
        case .giveUp: return (nil, host, true)
        }
      }
    } catch {
      throw StoreError(error, doing: "take the lease of", path: path)
    }
  }

  /// Waits until it has the lease, or throws if another machine renews it.
  package static func acquire(
    _ state: FD, path: String, times: LeaseTimes = .usual
  ) throws(StoreError) -> StoreLease {
    var acquisition = LeaseAcquisition(times)
    var isToldOf = false
    while true {
      let look = try look(at: state, path: path, &acquisition, endsProcess: true)
      if let lease = look.lease { return lease }
      if look.isRenewed { throw .leased(path: path, host: look.host) }
      if !isToldOf {
        isToldOf = true
        let tell = waiting.withLock { $0 }
        tell(look.host ?? "another machine", Int(times.silence / 1_000_000_000))
      }
      // Nothing tells of what another machine does.
      pauseThread(milliseconds: Int(times.renewal / 5_000_000))
    }
  }

  /// Whether anybody has the lease, as far as that is known at the first look.
  package static func isHeld(at path: String, in directory: FD) throws(Errno) -> Bool {
    do throws(Errno) {
      let state = try directory.openDirectory(at: path)
      guard case .held = try LeaseFiles(lookingIn: state.fd).top().top else { return false }
      return true
    } catch .ENOENT {
      return false
    }
  }

  /// Goes on with the lease of a process of this machine that has left us the store's lock.
  package convenience init(
    resuming state: FD, path: String, times: LeaseTimes = .usual, endsProcess: Bool = true
  ) throws(StoreError) {
    guard let process = ProcessIdentity(running: ProcessID.own) else {
      throw .failed(doing: "look at this process for the lease of", path: path, errno: .ENOSYS)
    }
    let files = try explaining("read the lease of", path) { () throws(Errno) in try LeaseFiles(in: state) }
    let (top, record) = try explaining("read the lease of", path) { () throws(Errno) in try files.top() }
    guard let record, !record.isReleased, record.boot == process.boot,
      record.process == process || record.process.hasEnded
    else { throw .leased(path: path, host: record?.host) }
    let term = LeaseTerm(begun: record.renewedAt, times)
    do throws(Errno) {
      let file = try files.open(top.number)
      try self.init(state, file, top.number, record.with(process), term, times, endsProcess: endsProcess)
    } catch {
      throw StoreError(error, doing: "keep the lease of", path: path)
    }
    guard case .done = renew() else { throw .leased(path: path, host: nil) }
  }

  /// Goes on in another process of the same program, which knows only how it began.
  package func continueHere() -> Renewal {
    do throws(Errno) {
      let text = try file.fd.contents(limit: 4096)
      guard let record = LeaseRecord(text) else { return .lost }
      return state.withLock { state in
        guard record.holder == state.record.holder, !record.isReleased else { return .lost }
        state.record = record
        state.term = LeaseTerm(begun: record.renewedAt, times)
        return renew(&state)
      }
    } catch {
      return .failed(error)
    }
  }

  /// Says once more that it is ours.
  package func renew() -> Renewal { state.withLock { renew(&$0) } }

  private func renew(_ state: inout State) -> Renewal {
    let begun = bootNanoseconds()
    guard !state.record.isReleased else { return .released }
    guard !state.term.isOver(at: begun) else { return .lost }
    do throws(Errno) {
      guard try LeaseFiles(in: directory.fd).highest() == number else { return .lost }
      state.record.renewals &+= 1
      state.record.renewedAt = begun
      try LeaseFiles.write(state.record.encoded(), to: file.fd)
    } catch {
      return state.term.isOver(at: bootNanoseconds()) ? .lost : .failed(error)
    }
    guard state.term.renew(begun: begun, done: bootNanoseconds(), times) else { return .lost }
    deadline.putOff(to: state.term.end)
    return .done
  }

  /// Lets another machine have it at once.
  ///
  /// After everything is written.
  package func release() {
    defer { renewal.withLock { $0.take() }?.remove(self) }
    state.withLock { state in
      guard !state.term.isOver(at: bootNanoseconds()), !state.record.isReleased else { return }
      state.record.isReleased = true
      guard let text = try? state.record.encoded() else { return }
      try? LeaseFiles.write(text, to: file.fd)
      deadline.putOff(to: .max)
    }
  }

  // MARK: Keeping it

  /// Renews it from now on, and sees to it that it is noticed when it is over, until it is released.
  package func startRenewing(_ say: @escaping @Sendable (String) -> Void) throws(Errno) {
    _ = try LeaseRenewal(self, say)
  }

  func isRenewed(by renewal: LeaseRenewal) { self.renewal.withLock { $0 = renewal } }

  /// How often it is renewed.
  var milliseconds: Int { Int(times.renewal / 1_000_000) }
}
