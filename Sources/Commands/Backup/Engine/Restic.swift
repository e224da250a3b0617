// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy

/// restic, the program that keeps the backups.
struct Restic {
  let repository: BackupRepository
  private let program: String
  private let context: Context

  /// How it ended, and the last that it complained of.
  struct Outcome {
    let end: Subprocess.End
    let complaints: [String]

    var isDone: Bool { end == .exited(0) }
  }

  /// A path as a pattern that stands for it alone.
  static func pattern(_ path: String) -> String {
    path.reduce(into: "") { text, character in
      if "*?[]\\".contains(character) { text.append("\\") }
      text.append(character)
    }
  }

  private static let lineLimit = 8 << 20
  private static let complaintLimit = 64 << 10

  init(_ repository: BackupRepository, _ context: Context) throws {
    guard let program = Requirements.find("restic", context) else {
      throw CommandFailure(
        .failed, "restic is missing, which keeps the backups; install it ('apt-get install restic')")
    }
    self.repository = repository
    self.program = program
    self.context = context
  }

  /// For a repository that is there already.
  static func opening(_ named: BackupRepository.Named, _ context: Context) throws -> Restic {
    let restic = try Restic(BackupRepository(named, context), context)
    try restic.repository.requireThere()
    return restic
  }

  /// Whether it brings back holes as holes; versions before 0.15 fill disks with them.
  func bringsBackHoles() throws -> Bool { try isSince(15) }

  /// Whether it keeps targets of links as they are; versions before 0.16 change what is not UTF-8.
  func keepsLinks() throws -> Bool { try isSince(16) }

  private func isSince(_ version: Int) throws -> Bool {
    let text = String(decoding: try text(["version"], doing: "ask restic for its version"), as: UTF8.self)
    let numbers = text.parts(between: " ").dropFirst().first?.parts(between: ".").compactMap { Int($0) } ?? []
    return numbers.count > 1 && (numbers[0] > 0 || numbers[1] >= version)
  }

  /// The path that a directory has for it which it is given.
  static let givenPath = "/dev/fd/\(givenNumber)"

  /// Runs it to its end; `line` gets each line that it prints, and `complaint` each of what it complains of.
  ///
  /// `directory` is one that it has at ``givenPath``. `message` gets all that restic writes at once when it
  /// complains, as it does of one thing: names of files can have line breaks in them.
  func run(
    _ words: [String], directory: FD? = nil, line: ([UInt8]) throws -> Void = { _ in },
    complaint: ([UInt8]) -> Void = { _ in }, message: (([UInt8]) -> Void)? = nil
  ) throws -> Outcome {
    let output = try pipe()
    let errors = try message == nil ? pipe() : Self.messages()
    let typed = try passwordPipe()
    var descriptors: [(from: FD, to: Int32)] = [
      (output.write.fd, STDOUT_FILENO), (errors.write.fd, STDERR_FILENO),
    ]
    if let typed { descriptors.append((FD(typed.number), Self.passwordNumber)) }
    if let directory { descriptors.append((directory, Self.givenNumber)) }
    // Who writes where we are to clear up must not go on; all others have a lock to take away.
    let command = HelperProcess.bound([program] + words, by: words.first == "restore" ? "KILL" : "INT")
    let environment = withEnvironment
    let pid: Int32
    do throws(Errno) {
      pid = try HelperProcess.start { () throws(Errno) in
        try Subprocess.spawn(command[0], command, environment, descriptors: descriptors)
      }
    } catch {
      throw CommandFailure(error, "can't start \(program): \(error.message)")
    }
    return try listen(to: pid, output.takeRead(), errors.takeRead(), line, complaint, message)
  }

  /// A pipe that keeps apart what was written at once.
  private static func messages() throws(Errno) -> PipeEnds {
    let ends = try Pairs.messages()
    return PipeEnds(read: OwnedFD(owning: ends.mine.raw), write: OwnedFD(owning: ends.theirs.raw))
  }

  /// Takes what it prints, until it has ended.
  private func listen(
    to pid: Int32, _ printed: consuming OwnedFD, _ complained: consuming OwnedFD,
    _ line: ([UInt8]) throws -> Void, _ complaint: ([UInt8]) -> Void, _ message: (([UInt8]) -> Void)?
  ) throws -> Outcome {
    var lines = LineSplitter(limit: Self.lineLimit)
    var complaintLines = LineSplitter(limit: Self.complaintLimit)
    var complaints: [UInt8] = []
    var failure: (any Error)?
    var isOpen = (true, true)
    while isOpen.0 || isOpen.1 {
      let waiting = [isOpen.0 ? printed.fd : FD(-1), isOpen.1 ? complained.fd : FD(-1)]
      let ready = try waitForAny(of: waiting, milliseconds: -1)
      if isOpen.0, ready[0] {
        let bytes = try printed.fd.readAvailable(limit: 1 << 16)
        isOpen.0 = bytes != nil
        do {
          for text in lines.take(bytes) where failure == nil { try line(text) }
        } catch {
          failure = error
          // By another signal it would leave its lock.
          kill(pid, SIGINT)
        }
      }
      if isOpen.1, ready[1] {
        let bytes = try complained.fd.readAvailable(limit: 1 << 16)
        isOpen.1 = bytes != nil
        complaintLines.take(bytes).forEach(complaint)
        if let bytes { message?(bytes) }
        // The last ones say why it failed.
        complaints = Array((complaints + (bytes ?? [])).suffix(Self.complaintLimit))
      }
    }
    let end = try HelperProcess.wait(for: pid)
    if let failure { throw failure }
    return Outcome(end: end, complaints: Self.lines(complaints))
  }

  /// Takes away the locks of runs here that have ended without doing that, as when the machine is switched
  /// off.
  ///
  /// Those of runs that go on, and of other machines for half an hour, stay.
  func removeLeftLocks() throws { _ = try text(["unlock"], doing: "take away what ended runs have locked") }

  /// What was typed, for restic to read.
  private func passwordPipe() throws -> SharedFD? {
    guard case .typed(let password) = repository.password else { return nil }
    let ends = try pipe()
    // It fits into the pipe, so this does not wait.
    try ends.write.fd.writeAll(Array("\(password)\n".utf8))
    return SharedFD(ends.takeRead())
  }

  /// Runs it, and reads what it prints as one value.
  func read<Value: Decodable>(_ words: [String], as type: Value.Type, doing: String) throws -> Value {
    let printed = try text(words, doing: doing)
    do {
      return try JSONText.decode(type, from: printed)
    } catch {
      throw CommandFailure(.failed, "can't \(doing): restic printed something that can't be understood")
    }
  }

  /// Runs it, and gives all that it prints.
  func text(_ words: [String], doing: String) throws -> [UInt8] {
    var printed: [UInt8] = []
    let outcome = try run(words) { line in
      printed += line + [10]
      guard printed.count <= JSONText.sizeLimit else {
        throw CommandFailure(.failed, "can't \(doing): restic printed more than \(JSONText.sizeLimit) bytes")
      }
    }
    guard outcome.isDone else { throw failure(doing, outcome) }
    return printed
  }

  private static let passwordNumber: Int32 = 3
  private static let givenNumber: Int32 = 4

  private var withEnvironment: Context {
    var copy = context
    if let address = repository.address {
      copy.environment["RESTIC_REPOSITORY"] = address
      copy.environment["RESTIC_REPOSITORY_FILE"] = nil
    }
    let variable: (name: String, value: String)? =
      switch repository.password {
      case .environment: nil
      case .file(let path): ("RESTIC_PASSWORD_FILE", path)
      case .command(let command): ("RESTIC_PASSWORD_COMMAND", command)
      case .typed: ("RESTIC_PASSWORD_FILE", "/dev/fd/\(Self.passwordNumber)")
      }
    if let variable {
      for name in ["RESTIC_PASSWORD", "RESTIC_PASSWORD_FILE", "RESTIC_PASSWORD_COMMAND"] {
        copy.environment[name] = nil
      }
      copy.environment[variable.name] = variable.value
    }
    // As often as a person wants to see it.
    copy.environment["RESTIC_PROGRESS_FPS"] = "5"
    return copy
  }

  private static func lines(_ bytes: [UInt8]) -> [String] {
    bytes.split(separator: 10).map { String(decoding: $0, as: UTF8.self).sanitized }
  }

  // MARK: Why it failed

  /// Says what failed, what restic says of that, and what to do.
  func failure(_ doing: String, _ outcome: Outcome) -> CommandFailure {
    let reason = Reason(outcome)
    let message = reason?.message(repository.shown)
    var lines = outcome.complaints.filter { !$0.isEmpty }.suffix(5).map { "  restic: \($0)" }
    if lines.isEmpty { lines = ["  restic: \(outcome.end.words)"] }
    return CommandFailure(
      reason?.code ?? .failed, "can't \(doing)\(message.map { ": \($0)" } ?? "")", lines: lines)
  }

  /// The same, where it is known what to do; nil otherwise.
  func knownFailure(_ doing: String, _ outcome: Outcome) -> CommandFailure? {
    Reason(outcome) == nil ? nil : failure(doing, outcome)
  }

  func hasWrongPassword(_ outcome: Outcome) -> Bool { Reason(outcome) == .wrongPassword }

  /// What restic can't do anything about.
  private enum Reason: CaseIterable {
    case noRepository, wrongPassword, locked, full

    init?(_ outcome: Outcome) {
      // From 0.17 on it has numbers for these; before there are only its words.
      let found = Self.allCases.first { reason in
        reason.number.map { outcome.end == .exited($0) } == true
          || outcome.complaints.contains { line in reason.phrases.contains { line.includes($0) } }
      }
      guard let found else { return nil }
      self = found
    }

    private var number: Int32? {
      switch self {
      case .noRepository: 10
      case .locked: 11
      case .wrongPassword: 12
      case .full: nil
      }
    }

    private var phrases: [String] {
      switch self {
      case .noRepository: ["Is there a repository at the following location", "unable to open config file"]
      case .wrongPassword: ["wrong password or no key found"]
      case .locked: ["already locked"]
      case .full: ["no space left on device", "disk quota exceeded"]
      }
    }

    var code: ExitCode { self == .locked ? .busy : .failed }

    func message(_ repository: String) -> String {
      switch self {
      case .noRepository:
        "there is no repository at \(repository); mount the disk that it is on, or create one with "
          + "'insula backup init'"
      case .wrongPassword:
        "the password is not that of \(repository); '--password-file' or '--password-command' gives another"
      case .locked:
        "\(repository) is in use by another backup; if none runs any more, 'restic unlock' ends its claim"
      case .full:
        "a disk is full, that of \(repository) or of the place that is written to; free some room: 'insula "
          + "backup forget' deletes old backups"
      }
    }
  }
}

extension Subprocess.End {
  /// For messages.
  var words: String {
    switch self {
    case .exited(let status): "ended with status \(status)"
    case .signalled(let number): "was ended by signal \(number)"
    }
  }
}

/// Lines of what arrives piece by piece.
private struct LineSplitter {
  private var rest: [UInt8] = []
  private let limit: Int

  init(limit: Int) { self.limit = limit }

  /// Nil is the end, after which what is left is a line too; one that is too long is cut.
  mutating func take(_ bytes: [UInt8]?) -> [[UInt8]] {
    guard let bytes else {
      defer { rest = [] }
      return rest.isEmpty ? [] : [rest]
    }
    var lines: [[UInt8]] = []
    for part in bytes.split(separator: 10, omittingEmptySubsequences: false).enumerated() {
      if part.offset > 0 {
        lines.append(rest)
        rest = []
      }
      if rest.count < limit { rest += part.element }
    }
    return lines
  }
}
