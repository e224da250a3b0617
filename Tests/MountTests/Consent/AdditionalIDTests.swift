// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// What runs under a number that `/etc/subuid` gives an account decides nothing: whoever asks the daemon is
/// told so.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct AdditionalIDTests {
  @Test func theirRequestsAreRefused() throws {
    // Before the daemon is started, which looks once a second at most whose an ID is.
    let other = try TemporaryAccount()
    guard let first = other.firstAdditionalID else { return }
    let fixture = try RunFixture()
    let app = RunFixture.identifier
    for id in [first, first + 7] {
      let additional = Account(name: "\(id)", uid: id, gid: 65534, home: "/")
      for command in [
        "consent deny \(app) photos", "consent allow \(app) photos", "grant \(app) $POINT/Applications",
      ] {
        let result = try fixture.shell("\"$INSULA\" \(command) --store \"$POINT\"", as: additional)
        #expect(result.status == 1, "\(command): \(result)")
        #expect(
          result.errors.contains("uid \(id) is an additional ID of \(other.account.name) "), "\(result)")
      }
    }
    let decided = try Program.run([
      "sqlite3", fixture.mounted.store + "/state/insula.db",
      "SELECT (SELECT count(*) FROM consents), (SELECT count(*) FROM grants)",
    ])
    #expect(decided.output == "0|0\n", "\(decided)")
  }
}
