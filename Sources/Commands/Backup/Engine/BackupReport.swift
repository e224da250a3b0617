// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy
internal import Synchronization

/// What comes of a backup while it is made, and what is told of it: a line on a terminal that goes along,
/// now and then a line in a log.
final class BackupReport: Sendable {
  private struct State {
    var last: ResticMessage?
    var summary: ResticMessage?
    var unread: [String] = []
    var unreadCount = 0
    /// Those that were not there any more when they were to be read.
    var gone = Sample()
    var dispensableCount = 0
    var told: UInt64 = 0
    /// How far it was when it last got on, and when that was, or was missed.
    var reached: [Int64?] = []
    var gotOn: UInt64 = 0

    mutating func addUnread(_ words: @autoclosure () -> String) {
      unreadCount += 1
      if unread.count < BackupReport.mostNames { unread.append(words()) }
    }
  }

  /// How many files that can't be read are named.
  private static let mostNames = 20
  private static let pauseInLog: UInt64 = 60_000_000_000
  private static let patience: UInt64 = 3_600_000_000_000
  /// restic says so where it could not read what an attribute contains, and goes on without that.
  private static let lostAttribute = Array("can not obtain extended attribute ".utf8)

  private let console: Console
  private let now: @Sendable () -> UInt64
  private let began: UInt64
  private let state = Mutex(State())
  /// What may be missing.
  private let dispensable: Set<String>

  init(
    _ console: Console, dispensable: Set<String>, now: @escaping @Sendable () -> UInt64 = monotonicNanoseconds
  ) {
    self.console = console
    self.dispensable = dispensable
    self.now = now
    began = now()
  }

  /// Does it, and shows meanwhile how far it is.
  func show<Result>(_ body: () throws -> Result) rethrows -> Result {
    try ProgressLine.show(console, { self.text }, while: body)
  }

  /// Takes a line of restic's.
  func take(_ line: [UInt8]) {
    guard let message = try? JSONText.decode(ResticMessage.self, from: line) else {
      if line.starts(with: Self.lostAttribute) {
        // Without its ACL it might be open to all when it is restored.
        state.withLock { $0.addUnread(String(decoding: line, as: UTF8.self).sanitized) }
      }
      return
    }
    let now = now()
    if message.kind == .status, hasStood(message, now) {
      let file = message.currentFiles?.first?.sanitized ?? "its end"
      console.note("restic has not got on for an hour; it stands at \(file)")
    }
    let isTold = state.withLock { state in
      switch message.kind {
      case .status: state.last = message
      case .summary: state.summary = message
      case .error where message.isOfScan: break
      case .error where message.item.map(dispensable.contains) == true: state.dispensableCount += 1
      case .error where message.error?.isOfNoFile == true: state.gone.add(message.item ?? "?")
      case .error:
        state.addUnread([message.item, Self.reason(message)].compactMap { $0 }.joined(separator: ": "))
      case nil: break
      }
      guard now - max(state.told, began) >= Self.pauseInLog else { return false }
      state.told = now
      return true
    }
    if isTold, !console.showsProgress { console.inform(text) }
  }

  private static func reason(_ message: ResticMessage) -> String? {
    let known = message.error?.message ?? message.error?.number.map { Errno($0).message }
    let hasTooMany = message.error?.isOfTooManyNames == true || known == nil && hasTooManyNames(message.item)
    guard hasTooMany else { return known }
    return "it has more names, with what is above it, than this machine has memory for in a backup"
  }

  /// The same where restic does not say why, as versions before 0.17 often don't.
  private static func hasTooManyNames(_ path: String?) -> Bool {
    do throws(Errno) {
      guard let path else { return false }
      let directory = try FD.cwd.openWithoutLinks(path, O_RDONLY | O_DIRECTORY)
      let page = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 12, alignment: 16)
      defer { page.deallocate() }
      _ = try directory.fd.readDirectory(into: page)
      return false
    } catch { return error == .EOVERFLOW }
  }

  /// What could not be read, and why.
  var unread: [String] { state.withLock { $0.unread } }

  /// Whether it has not got on for an hour, which is asked again after another one.
  private func hasStood(_ message: ResticMessage, _ now: UInt64) -> Bool {
    state.withLock { state in
      let reached = [message.filesDone, message.bytesDone]
      if reached != state.reached {
        (state.reached, state.gotOn) = (reached, now)
        return false
      }
      guard now - max(state.gotOn, began) >= Self.patience else { return false }
      state.gotOn = now
      return true
    }
  }

  /// How far it is, with the rate and the time that is left.
  private var text: String {
    guard let last = state.withLock({ $0.last }) else {
      return "backing up: reading what was backed up before"
    }
    let bytes = max(0, last.bytesDone ?? 0)
    let share = min(max(last.done ?? 0, 0), 1)
    let filled = Int(share * Double(Self.barWidth))
    let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: Self.barWidth - filled)
    let elapsed = Double(now() - began) / 1e9
    let rate = Int(clamping: Int64(clampingDouble: Double(bytes) / max(elapsed, 0.001)))
    let left = last.secondsLeft.map { ", \(Self.time($0)) left" } ?? ""
    let file = last.currentFiles?.first.map { ", \($0.splitAtName.name.prefix(30))" } ?? ""
    return "[\(bar)] \(Int(share * 100)) %, \(last.filesDone ?? 0) files, \(Int(clamping: bytes).asSize), "
      + "\(rate.asSize)/s\(left)\(file)"
  }

  private static let barWidth = 20

  private static func time(_ seconds: Int64) -> String {
    let seconds = min(max(seconds, 0), 359_999)
    let digits = [seconds / 60 % 60, seconds % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }
    return ([seconds >= 3600 ? "\(seconds / 3600)" : nil] + digits).compactMap { $0 }.joined(separator: ":")
  }

  // MARK: The end

  /// What came of it, for programs.
  private struct Told: Encodable {
    let snapshot: String?
    let filesNew: Int64
    let filesChanged: Int64
    let filesUnmodified: Int64
    let files: Int64
    let bytes: Int64
    let bytesAdded: Int64
    let seconds: Double
    let filesNotRead: Int
  }

  /// Tells what came of it.
  func end(
    _ restic: Restic, _ outcome: Restic.Outcome, isDryRun: Bool, json: Bool
  ) throws -> ExitCode {
    let state = state.withLock { $0 }
    // With 3 restic says that some of it could not be read, or was not there any more; the rest is kept.
    guard outcome.isDone || outcome.end == .exited(3), let summary = state.summary else {
      throw restic.failure("make the backup", outcome)
    }
    if state.unreadCount > 0 {
      console.note(
        "\(state.unreadCount) \(state.unreadCount == 1 ? "file" : "files") could not be read and "
          + "\(state.unreadCount == 1 ? "is" : "are") not in the backup:",
        state.unread.map { "  \($0)" })
    }
    // Who owns a directory may rename what others have in it, and back.
    if state.gone.count > 0 {
      console.note(
        "\(state.gone.count == 1 ? "this was" : "these were") removed or renamed while the backup was made, "
          + "and may not be in it: \(state.gone.words.sanitized)")
    }
    if json {
      console.print(
        json: Told(
          snapshot: isDryRun ? nil : summary.snapshot, filesNew: summary.filesNew ?? 0,
          filesChanged: summary.filesChanged ?? 0, filesUnmodified: summary.filesUnmodified ?? 0,
          files: summary.filesProcessed ?? 0, bytes: summary.bytesProcessed ?? 0,
          bytesAdded: summary.added ?? 0, seconds: summary.seconds ?? 0, filesNotRead: state.unreadCount))
    } else {
      console.say(Self.sentence(summary, isDryRun: isDryRun))
    }
    let isComplete =
      state.unreadCount == 0 && (outcome.isDone || state.gone.count > 0 || state.dispensableCount > 0)
    return isComplete ? .ok : .failed
  }

  private static func sentence(_ summary: ResticMessage, isDryRun: Bool) -> String {
    let size = Int(clamping: summary.bytesProcessed ?? 0).asSize
    let added = Int(clamping: summary.added ?? 0).asSize
    let changes = "\(summary.filesNew ?? 0) new, \(summary.filesChanged ?? 0) changed"
    let files = "\(summary.filesProcessed ?? 0) files (\(changes)), \(size)"
    if isDryRun { return "This would back up \(files); \(added) would be added to the repository." }
    let id = summary.snapshot.map { String($0.prefix(8)) } ?? ""
    return "Backup \(id): \(files); \(added) were added to the repository."
  }
}

extension Int64 {
  fileprivate init(clampingDouble value: Double) {
    self = value.isFinite ? Int64(Swift.min(Swift.max(value, 0), 9e18)) : 0
  }
}
