// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Store
internal import Synchronization

/// A directory of this user's alone, for what is unpacked; it goes at the end, and also if a signal ends the
/// process before.
///
/// What a process has left that was killed, the next one of the same user removes.
final class UnpackingPlace: Sendable {
  private let base: String
  private let parent: OwnedFD
  private let name: String
  private let made: OwnedFD
  private let signals: EndingSignals
  /// Held while something is made there; whoever removes it because of a signal holds it for ever.
  private let changing = Mutex(())
  /// Those that are in use: which of their watchers learns of a signal is the kernel's choice.
  private static let current = Mutex<[UnpackingPlace]>([])

  /// Where things are made.
  var directory: FD { made.fd }

  /// Its path, for programs that are to write there.
  var path: String { "\(base == "/" ? "" : base)/\(name)" }

  /// `use` is what it is for, as a part of its name.
  init(_ context: Context, for use: String = "unpack") throws(CommandFailure) {
    base = context.unpackingDirectory
    do throws(Errno) {
      parent = try FD.cwd.openFollowing(base, O_RDONLY | O_DIRECTORY)
      let workshop = Workshop(directory: parent.fd, prefix: "insula-\(use)-")
      try? workshop.clear { (directory, name) throws(Errno) in
        guard try directory.status(of: name).st_uid == ProcessID.user else { return }
        try directory.removeTree(name)
      }
      name = workshop.newName()
      // Before the directory, so that no signal comes in between.
      signals = try EndingSignals()
      let directory = parent.fd
      made = try directory.makeAndOpenDirectory(name)
    } catch {
      throw CommandFailure(
        error, "can't \(use) in \(base): \(error.message); TMPDIR can name another directory for it")
    }
  }

  /// Does something, and removes all of it afterwards.
  func use<Result>(_ body: () throws -> Result) throws -> Result {
    Self.current.withLock { $0.append(self) }
    defer {
      Self.current.withLock { $0.removeAll { $0 === self } }
      try? parent.fd.remove(held: made.fd, named: name)
    }
    return try signals.watch(
      { number in
        HelperProcess.end {
          Self.current.withLock { Self.remove($0[...]) { EndingSignals.end(by: number) } }
        }
      }, while: body)
  }

  private static func remove(_ places: ArraySlice<UnpackingPlace>, then body: () -> Void) {
    guard let place = places.last else { return body() }
    place.changing.withLock { _ in
      try? place.parent.fd.remove(held: place.made.fd, named: place.name)
      remove(places.dropLast(), then: body)
    }
  }

  /// Changes what is there; once a signal has come, nobody does.
  func change(_ body: () throws(ArchiveFailure) -> Void) throws(ArchiveFailure) {
    try changing.withLock { (_) throws(ArchiveFailure) in try body() }
  }

  /// What to do about a failure, for messages.
  func advice(on failure: ArchiveFailure) -> [String] {
    guard case .failed(_, .ENOSPC) = failure.reason else { return [] }
    return ["it is unpacked in \(base); TMPDIR can name a directory with more room"]
  }
}

extension Context {
  /// Where there is room for what is unpacked or fetched: not in memory, where /tmp may be.
  var unpackingDirectory: String {
    let chosen = environment["TMPDIR"] ?? ""
    return chosen.begins(with: "/") ? chosen : "/var/tmp"
  }
}
