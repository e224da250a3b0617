// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// Asks avahi, where the machine has that, which computers of the network announce what.
///
/// The answer is made of what strangers send, and is read by a program without rights.
struct ServiceBrowser {
  let isSystem: Bool

  private static let program = "avahi-browse"
  private static let nobody: UInt32 = 65_534
  private static let words = ["--all", "--parsable", "--resolve", "--terminate", "--no-db-lookup"]
  /// A machine has one where avahi's daemon listens; the bus alone is asked in vain.
  private static let patienceMilliseconds: UInt64 = 4000

  /// What it prints; the empty text if there is no such program, or nobody answers.
  ///
  /// The process has one thread, and is nothing else's.
  func run() -> [UInt8] {
    guard let found = try? EngineProgram.find(Self.program, in: "avahi-utils") else { return [] }
    // The bus turns away whom the machine does not know.
    let user = isSystem ? EngineUser(of: Self.nobody, Self.nobody) : EngineUser.own
    guard
      let process = try? EngineProcess(
        EngineProgram(path: found, words: Self.words, name: Self.program), as: user, nil, becomes: isSystem,
        intercepting: nil)
    else { return [] }
    let bytes = output(of: process)
    process.end(isHurried: true)
    process.endAll()
    return bytes
  }

  private func output(of process: EngineProcess) -> [UInt8] {
    let start = monotonicNanoseconds()
    var bytes: [UInt8] = []
    _ = try? process.words.use { (words) throws(Errno) in
      while bytes.count < MountHelper.mostAnnounced {
        let passed = (monotonicNanoseconds() &- start) / 1_000_000
        guard passed < Self.patienceMilliseconds,
          try words.waitUntilReadable(milliseconds: Int32(Self.patienceMilliseconds - passed)),
          let more = try words.readAvailable(limit: 1 << 14)
        else { return }
        bytes += more
      }
    }
    return Array(bytes.prefix(MountHelper.mostAnnounced))
  }
}

extension MountHelper {
  /// No more of what is announced is read: as much as a pipe holds.
  static let mostAnnounced = 1 << 16

  /// What the computers of the network announce, as avahi-browse prints it: empty where there is no avahi,
  /// nil if that could not be found out.
  ///
  /// It takes some seconds.
  package func announcements() -> String? {
    guard let answer = try? ask(.browse), let passed = answer.descriptor else { return nil }
    let file = OwnedFD(owning: passed.raw)
    let bytes = (try? file.fd.readToEnd(limit: Self.mostAnnounced)) ?? []
    return String(decoding: bytes, as: UTF8.self)
  }
}
