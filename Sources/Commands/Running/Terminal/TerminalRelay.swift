// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// Stands between the person's terminal and the app's.
///
/// While the app has the person's terminal, every byte is passed on as it is typed, and it is the app's
/// terminal that knows what ^C and ^Z mean. It gets it at the start if it reads and writes there, and
/// otherwise when it first asks for it: until then it is in the background of its own terminal, and stopped
/// by the kernel when it reads.
struct TerminalRelay {
  let outer: FD
  /// What is typed and shown at the app's terminal; nil when there is nothing to come.
  private(set) var master: FD?
  let keeping: FD
  private let keeper: Int32
  /// A word of the person's own choosing, for questions.
  let word: String?
  /// Where questions come from; nil when there are none to come.
  var prompts: FD?
  /// What the person is being asked; what the app shows, and what is typed for it, waits.
  var prompt: RelayedPrompt?
  /// How the person's terminal was before the app had it; nil while it has not.
  private(set) var attributes: termios?
  private var wasTaken = false
  private(set) var hasHungUp = false
  private var isAskedToStop = false
  var typed: [UInt8] = []
  var shown: [UInt8] = []
  private var status: Int32?

  init(outer: FD, master: FD, keeping: FD, prompts: FD, keeper: Int32, word: String?) {
    self.outer = outer
    self.master = master
    self.keeping = keeping
    self.prompts = prompts
    self.keeper = keeper
    self.word = word
  }

  /// Relays until all has ended; the exit status.
  ///
  /// The signals are blocked.
  mutating func run(takesTerminal: Bool, signals: [Int32]) throws(Errno) -> Int32 {
    var set = signals.signalSet
    let arriving = OwnedFD(owning: try check(signalfd(-1, &set, Int32(SFD_CLOEXEC) | Int32(SFD_NONBLOCK))))
    defer { giveBack() }
    if takesTerminal { take() }
    while true {
      if let status, master == nil || hasHungUp, shown.isEmpty || hasHungUp { return status }
      try wait(arriving.fd)
    }
  }

  private mutating func wait(_ arriving: FD) throws(Errno) {
    func watch(_ fd: FD?, _ events: Int32) -> pollfd {
      pollfd(fd: fd?.raw ?? -1, events: Int16(events), revents: 0)
    }
    let isAsking = prompt != nil
    let reads =
      isAsking ? outer.isInForeground : attributes != nil && typed.isEmpty && master != nil
    let isHeld = isAskedByAnother
    let outerEvents = (reads ? POLLIN : 0) | (shown.isEmpty || isHeld ? 0 : POLLOUT)
    let masterEvents = (shown.isEmpty && !isAsking && !isHeld ? POLLIN : 0) | (typed.isEmpty ? 0 : POLLOUT)
    var watched = [
      watch(arriving, POLLIN), watch(status == nil ? keeping : nil, POLLIN),
      watch(hasHungUp ? nil : outer, outerEvents), watch(masterEvents == 0 ? nil : master, masterEvents),
      watch(prompts, POLLIN),
    ]
    // What still has the terminal when the keeper has gone is not waited for.
    let wait = [isHeld ? Self.holding : nil, prompt?.wait, status == nil ? nil : 1000].compactMap(\.self)
    let count = try retrying { poll(&watched, nfds_t(watched.count), wait.min() ?? -1) }
    if isAsking, reads, watched[2].revents == 0 { noteSilence() }
    if count == 0, status != nil, !isHeld { return end(showing: true) }
    if watched[4].revents != 0 { hearPrompts() }
    if watched[3].revents != 0 { exchange(Int32(watched[3].revents)) }
    if watched[2].revents != 0 { exchangeOuter(Int32(watched[2].revents)) }
    if watched[1].revents != 0 { hear() }
    if watched[0].revents != 0 { try obey(arriving) }
  }

  /// How often to look whether another process has ended its question.
  private static let holding: Int32 = 100

  // MARK: Bytes

  private static let most = 16384

  private mutating func exchange(_ events: Int32) {
    guard let master else { return }
    if events & POLLOUT != 0 { Self.write(&typed, to: master) }
    guard events & (POLLIN | POLLHUP | POLLERR) != 0, shown.isEmpty else { return }
    guard let bytes = Self.read(from: master) else { return end(showing: true) }
    shown += bytes
    Self.write(&shown, to: outer)
  }

  private mutating func exchangeOuter(_ events: Int32) {
    if events & POLLOUT != 0 { Self.write(&shown, to: outer) }
    if events & (POLLHUP | POLLERR) != 0 { return hangUp() }
    guard events & POLLIN != 0, attributes != nil || prompt != nil, outer.isInForeground else { return }
    guard let bytes = Self.read(from: outer) else { return hangUp() }
    if prompt != nil { return take(answer: bytes) }
    typed += bytes
    if let master { Self.write(&typed, to: master) }
  }

  /// Nil at the end; nothing while there is nothing.
  static func read(from fd: FD) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: most)
    do throws(Errno) {
      let count = try retrying { Glibc.read(fd.raw, &bytes, bytes.count) }
      return count == 0 ? nil : Array(bytes[..<count])
    } catch {
      return error == .EAGAIN ? [] : nil
    }
  }

  static func write(_ bytes: inout [UInt8], to fd: FD) {
    do throws(Errno) {
      while !bytes.isEmpty {
        let count = try retrying { Glibc.write(fd.raw, bytes, bytes.count) }
        bytes.removeFirst(min(count, bytes.count))
      }
    } catch {
      if error != .EAGAIN { bytes = [] }
    }
  }

  private mutating func end(showing: Bool) {
    if !showing { shown = [] }
    if let master { _ = close(master.raw) }
    master = nil
  }

  /// The person's terminal has gone, and the app's goes with it.
  private mutating func hangUp() {
    guard !hasHungUp else { return }
    hasHungUp = true
    attributes = nil
    closePrompts()
    TerminalMessage.signalAll(SIGHUP).send(to: keeping)
    TerminalMessage.goOn(inForeground: true).send(to: keeping)
    end(showing: false)
  }

  // MARK: The person's terminal

  /// Lets the app have it, as it is.
  private mutating func take() {
    guard attributes == nil, let before = prompt?.attributes ?? (try? outer.terminalAttributes()) else {
      return
    }
    if !wasTaken { try? master?.set(terminalAttributes: before) }
    wasTaken = true
    guard (try? outer.set(terminalAttributes: before.passingEverything)) != nil else { return }
    attributes = before
  }

  /// Makes it what it was.
  private mutating func giveBack() {
    if let attributes = attributes ?? prompt?.attributes, outer.isInForeground {
      try? outer.set(terminalAttributes: attributes)
    }
    attributes = nil
  }

  // MARK: Stopping and going on

  private mutating func hear() {
    guard TerminalMessage.receive(from: keeping) == .stopped else { return }
    let hadIt = attributes != nil
    if !hadIt, !isAskedToStop, !hasHungUp, outer.isInForeground {
      // It was stopped because it asked for the terminal.
      take()
      return TerminalMessage.goOn(inForeground: true).send(to: keeping)
    }
    let asksForIt = !hadIt && !isAskedToStop
    isAskedToStop = false
    showWhatIsThere()
    giveBack()
    let wasStopped = stop(by: asksForIt ? SIGTTIN : SIGTSTP)
    // Nobody could have us go on: then there is no terminal for it.
    if asksForIt, !wasStopped { return hangUp() }
    if hadIt || asksForIt, outer.isInForeground { take() }
    askAgain()
    try? master?.setTerminalSize(like: outer)
    TerminalMessage.goOn(inForeground: attributes != nil).send(to: keeping)
  }

  /// The app may still be about to leave the screen as it should be.
  private mutating func showWhatIsThere() {
    guard prompt == nil else { return }
    while let master, shown.isEmpty, (try? master.waitUntilReadable(milliseconds: 20)) == true,
      let bytes = Self.read(from: master), !bytes.isEmpty
    {
      shown = bytes
      Self.write(&shown, to: outer)
    }
  }

  /// Stops us, and all who are a job with us, as the terminal would have; whether that was so.
  private func stop(by number: Int32) -> Bool {
    var (stopping, going) = ([number].signalSet, [SIGCONT].signalSet)
    var none = timespec()
    _ = sigtimedwait(&going, nil, &none)
    kill(0, number)
    sigprocmask(SIG_UNBLOCK, &stopping, nil)
    sigprocmask(SIG_BLOCK, &stopping, nil)
    return sigtimedwait(&going, nil, &none) == SIGCONT
  }

  private mutating func obey(_ arriving: FD) throws(Errno) {
    var information = signalfd_siginfo()
    let size = MemoryLayout<signalfd_siginfo>.size
    while Glibc.read(arriving.raw, &information, size) == size {
      let number = Int32(truncatingIfNeeded: information.ssi_signo)
      // Those of the kernel's are the terminal's.
      let isTerminals = information.ssi_code > 0
      switch number {
      case SIGCHLD: if case .ended(let status) = ChildEnd.next(of: keeper) { self.status = status }
      case SIGWINCH: try? master?.setTerminalSize(like: outer)
      case SIGTTIN, SIGTTOU: break
      case SIGTSTP:
        isAskedToStop = true
        TerminalMessage.signalAll(SIGTSTP).send(to: keeping)
      case SIGCONT: goOn()
      default:
        if status != nil { end(showing: false) }
        TerminalMessage(number, isTerminals).send(to: keeping)
      }
    }
  }

  /// We were stopped by something that can't be caught, and whoever has let us go on may have changed the
  /// terminal.
  private mutating func goOn() {
    if attributes != nil {
      if outer.isInForeground, let attributes {
        try? outer.set(terminalAttributes: attributes.passingEverything)
      } else {
        attributes = nil
      }
    }
    askAgain()
    TerminalMessage.signalAll(SIGCONT).send(to: keeping)
  }
}

extension TerminalMessage {
  fileprivate init(_ number: Int32, _ isTerminals: Bool) {
    self = isTerminals ? .signalAll(number) : .signal(number)
  }
}
