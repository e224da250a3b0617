// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// The conversation of an agent with the daemon: as long as it is open, the agent is there.
final class AgentConversation {
  enum Event {
    case task(AgentTask)
    /// What was to be asked is settled otherwise.
    case takenBack
    /// The daemon has nothing for this agent, ever.
    case refused(ControlFailure)
    case nothing
  }

  private let address: ControlAddress
  private let user: UInt32
  /// What is asked for.
  private let request: ControlRequest
  private var client: ControlClient?
  /// Whether the next reply is the next task.
  private var isWaiting = false

  /// By the request it is an agent for a user or for one app, or reads for that app and asks nobody.
  init(_ address: ControlAddress, user: UInt32, _ request: ControlRequest) {
    self.address = address
    self.user = user
    self.request = request
  }

  /// A daemon that takes an answer, or begins to send one, does that at once.
  private static let patience: Int32 = 30_000

  /// Has something to read when ``take()`` is to be called.
  var fd: FD? { client?.fd }

  /// Wants the next task, over a new connection if there is none.
  func goOn() throws(Errno) {
    do throws(Errno) {
      if client == nil { client = try address.connect() }
      guard let client, !isWaiting else { return }
      try client.send(request)
      isWaiting = true
    } catch {
      close()
      throw error
    }
  }

  func close() {
    client = nil
    isWaiting = false
  }

  /// What the daemon has sent.
  ///
  /// It may send ESTALE by itself, as soon as what it has given us is settled otherwise; that may cross
  /// an answer of ours.
  func take() throws(Errno) -> Event {
    do throws(Errno) {
      guard let client else { throw .ENOTCONN }
      switch try client.awaitReply(milliseconds: Self.patience) {
      case .task(let task):
        isWaiting = false
        return .task(task)
      case .failure(let failure) where failure.cause == .errno(.ESTALE):
        return isWaiting ? .nothing : .takenBack
      // Others of this user must be served first.
      case .failure(let failure) where failure.cause == .crowded: throw .EAGAIN
      case .failure(let failure): return .refused(failure)
      default: throw .EIO
      }
    } catch {
      close()
      throw error
    }
  }

  /// Answers, and says how the daemon takes it.
  func answer(_ number: Int64, _ answer: AgentAnswer) throws(Errno) -> TerminalDialog.Outcome {
    do throws(Errno) {
      guard let client else { throw .ENOTCONN }
      switch try client.ask(.answerTask(number, answer), milliseconds: Self.patience) {
      case .done: return .taken
      case .failure(let failure) where failure.cause == .errno(.ESTALE): return .tooLate
      case .failure(let failure): return .refused(failure.message)
      default: throw .EIO
      }
    } catch {
      close()
      throw error
    }
  }

  /// Looks whether a question is settled while a person thinks about it.
  func watch(_ question: AgentQuestion) -> TaskWatch {
    TaskWatch(question, address, user: user, fd: client?.fd)
  }
}

/// Looks whether a question still waits for its answer.
final class TaskWatch {
  private let question: AgentQuestion
  private let address: ControlAddress
  private let user: UInt32
  private var client: ControlClient?
  /// Has something to read when it does not.
  let fd: FD?

  fileprivate init(_ question: AgentQuestion, _ address: ControlAddress, user: UInt32, fd: FD?) {
    self.question = question
    self.address = address
    self.user = user
    self.fd = fd
  }

  /// Whether the daemon has said so, or has gone.
  var isTold: Bool { (try? fd?.waitUntilReadable(milliseconds: 0)) ?? true }

  /// How often it is worth looking.
  static let interval: Int32 = 1000
  private static let patience: Int32 = 500

  /// Whether somebody has decided by a command: of that the daemon may tell nobody.
  func isDecided() -> Bool {
    guard case .consent(let service, _) = question.kind else { return false }
    do throws(Errno) {
      if client == nil { client = try address.connect() }
      guard let client else { return false }
      let reply = try client.ask(
        .consent(.list(app: question.identifier, user: user)), milliseconds: Self.patience)
      guard case .consents(let states) = reply else { return false }
      return states.contains {
        $0.service == service && $0.user == user && $0.state != .notDetermined
      }
    } catch {
      client = nil
      return false
    }
  }
}
