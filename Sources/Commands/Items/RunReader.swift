// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO

/// Has what the app of `insula run` wants to be told read for it: between the daemon, which has made sure
/// that it may be told, and the process that reads.
///
/// Nothing in it waits, but for a daemon that is about to answer: the app is waited for beside it.
final class RunReader {
  private let conversation: AgentConversation
  private let process: ItemReaderProcess
  /// What is being read, and until when.
  private var task: (number: Int64, isAdding: Bool, end: UInt64)?
  private var failures = 0
  private var lastFailure: UInt64 = 0
  private var isOver = false

  /// How often in a row the daemon may not be there: one that is being replaced is there again at once, since
  /// its socket waits for the next one.
  private static let attempts = 10
  private static let row: UInt64 = 1_000_000_000
  /// Shorter than what the daemon allows, in milliseconds.
  private static let longest: Int32 = 25_000

  init(_ conversation: AgentConversation, _ process: ItemReaderProcess) {
    self.conversation = conversation
    self.process = process
  }

  /// What has something to read when ``look(_:)`` is to be called.
  var watched: [FD] { isOver ? [] : [conversation.fd, process.fd].compactMap { $0 } }

  /// After so many milliseconds, too; -1 for never.
  var patience: Int32 {
    guard !isOver, let task else { return -1 }
    let now = monotonicNanoseconds()
    return task.end <= now ? 0 : Int32(clamping: (task.end - now) / 1_000_000 + 1)
  }

  /// Begins; the app runs by then.
  func begin() { goOn() }

  private func goOn() {
    while !isOver, failures <= Self.attempts {
      do throws(Errno) { return try conversation.goOn() } catch { noteFailure() }
    }
    end()
  }

  private func noteFailure() {
    let now = monotonicNanoseconds()
    if now &- lastFailure > Self.row { failures = 0 }
    failures += 1
    lastFailure = now
  }

  /// Reads no more.
  func end() {
    isOver = true
    conversation.close()
    process.end()
  }

  /// Does what there is to do, by which descriptors can be read.
  func look(_ isReady: (FD) -> Bool) {
    guard !isOver else { return }
    // What is read first is no longer expected when the daemon says that nobody wants it.
    if let fd = process.fd, isReady(fd) { hearProcess() }
    if !isOver, let fd = conversation.fd, isReady(fd) { hearDaemon() }
    if patience == 0 { giveUp("it took too long") }
  }

  private func giveUp(_ reason: String) {
    process.end()
    answer(.unreadable(reason))
  }

  private func hearDaemon() {
    do throws(Errno) {
      switch try conversation.take() {
      case .task(let task): read(task)
      // Somebody else may want something all the same: what is read now is answered to nobody. But whoever
      // was told that nothing is added, it is not.
      case .takenBack: if task?.isAdding == true { giveUp("nobody waits for it any more") }
      case .nothing: break
      case .refused: end()
      }
    } catch {
      noteFailure()
      // Another daemon does not know what this one wanted, and must not be told that for something else.
      if task != nil { process.end() }
      task = nil
      goOn()
    }
  }

  private func read(_ next: AgentTask) {
    let isAdding = if case .add = next.question { true } else { false }
    task = (next.number, isAdding, monotonicNanoseconds() &+ UInt64(Self.longest) * 1_000_000)
    switch next.question {
    case .read, .add: break
    case .consent, .panel: return answer(.dismiss)
    }
    do throws(Errno) {
      try process.send(next.question)
    } catch {
      answer(.unreadable("can't start the process that reads for apps: \(error.message)"))
    }
  }

  private func hearProcess() {
    let answer = process.take() ?? .unreadable("the process that reads for apps has ended")
    if answer == .copied { confirm() } else { self.answer(answer) }
  }

  /// Asks whether what was copied is still wanted.
  private func confirm() {
    guard let number = task?.number else { return process.end() }
    let outcome: TerminalDialog.Outcome
    do throws(Errno) {
      outcome = try conversation.answer(number, .copied)
    } catch {
      noteFailure()
      // Another daemon does not know who wanted it.
      return forget()
    }
    switch outcome {
    case .taken:
      do throws(Errno) { try process.confirm() } catch {
        giveUp("the process that reads for apps has ended")
      }
    case .refused(let why): giveUp(why)
    // Who wanted it was told that it is not added.
    case .tooLate: forget()
    }
  }

  private func forget() {
    process.end()
    task = nil
    goOn()
  }

  private func answer(_ answer: AgentAnswer) {
    guard let number = task?.number else { return }
    task = nil
    do throws(Errno) { _ = try conversation.answer(number, answer) } catch { noteFailure() }
    goOn()
  }
}
