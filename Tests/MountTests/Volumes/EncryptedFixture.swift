// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A store in which users have encrypted volumes.
final class EncryptedFixture: VolumeFixture {
  let run: RunFixture
  /// Where the encrypted files are, which is the user's.
  let directory: String

  static let isPossible = MountedStore.isPossible && access("/usr/bin/gocryptfs", X_OK) == 0
  static let password = "correct horse battery staple"

  init(rootless: Bool = false, directory: String? = nil) throws {
    run = try RunFixture(
      rootless: rootless,
      entitlements: "<key>com.apple.security.files.user-selected.read-write</key><true/>")
    try run.mounted.temporary.makeDirectory("encrypted", mode: 0o777)
    self.directory = directory ?? run.mounted.temporary.appending("encrypted")
  }

  /// No program of a user goes on who is about to be no more.
  deinit { _ = try? run.mounted.run("volume", "lock", "--all", "--force", "--store", run.mounted.point) }

  var daemonLog: String? { run.mounted.daemonLog }

  /// `volume VERB...` is about this store, `$V` is where its volumes are, `$C` where encrypted files may lie.
  ///
  /// `create NAME [OPTION...]` and `unlock NAME` know the password.
  func shell(_ script: String, as account: Account?) throws -> ProgramResult {
    try run.shell(
      """
      volume() { verb=$1; shift; timeout 100 "$INSULA" volume "$verb" --store "$POINT" "$@"; }
      V="$POINT/Volumes"; C='\(directory)'; W='\(Self.password)'
      create() { n=$1; shift; echo "$W" | volume create "$n" --encrypted --in "$C/$n" "$@" >/dev/null; }
      unlock() { echo "$W" | volume unlock "$1" >/dev/null; }
      \(script)
      """, as: account)
  }

  func refuse(
    _ script: String, _ words: String, _ ending: Ending = .failed, as account: Account? = nil,
    location: SourceLocation = #_sourceLocation
  ) throws {
    let result = try shell(script, as: account)
    #expect(
      result.ending == ending && result.errors.includes(words), "\(script): \(result)",
      sourceLocation: location)
  }

  /// The processes that decrypt something of this fixture.
  func programs() throws -> [Int32] {
    let found = try Program.run(["pgrep", "-x", "gocryptfs"])
    return found.output.split(separator: "\n").compactMap { Int32($0) }.filter { pid in
      (0..<32).contains { number in
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/\(pid)/fd/\(number)", &buffer, buffer.count)
        return count > 0
          && String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            .hasPrefix(directory)
      }
    }
  }
}
