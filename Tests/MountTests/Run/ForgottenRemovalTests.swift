// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// A file that is removed through one view gives its room back though other views have seen it.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ForgottenRemovalTests {
  private static let isKnownToKernel: Bool = {
    if KernelRelease.own >= KernelRelease(6, 18) { return true }
    print("skipped: before Linux 6.18 no kernel can be told to forget one object")
    return false
  }()

  @Test(arguments: [false, true]) func whatAnAppRemovesIsFreedThoughItWasListed(rootless: Bool) throws {
    guard Self.isKnownToKernel else { return }
    let fixture = try RunFixture(rootless: rootless)
    try expectNothingKept(fixture) { number in
      """
      run sh -c 'echo text >Documents/file-\(number); echo text >Documents/other'
      ls -l "$DATA/Documents" >/dev/null
      run sh -c 'mv Documents/other Documents/file-\(number); rm Documents/file-\(number)'
      """
    }
  }

  /// The copy of a delivered file was made under another name.
  @Test(arguments: [false, true]) func whatIsDeliveredIsFreedWhenItIsRemoved(rootless: Bool) throws {
    guard Self.isKnownToKernel else { return }
    let fixture = try RunFixture(rootless: rootless)
    try expectNothingKept(fixture) { number in
      """
      note="$POINT/Users/$(id -un)/Documents/note-\(number)"
      echo text >"$note" && rm "$(insula deliver "$APP" "$note")" "$note"
      """
    }
  }

  private func expectNothingKept(_ fixture: RunFixture, _ script: (_ number: Int) -> String) throws {
    func round(_ number: Int) throws {
      let result = try fixture.shell("set -e; " + script(number))
      try #require(result.status == 0, "\(result)")
    }
    // All directories on the way are known after the first.
    try round(0)
    let before = try fixture.mounted.count("descriptors")
    for number in 1...5 { try round(number) }
    #expect(try eventually { try fixture.mounted.count("descriptors") <= before })
    let daemon = try #require(try fixture.mounted.daemon())
    let open = try Program.run(["sh", "-c", "ls -l /proc/\(daemon)/fd | grep -c '/tree/.*(deleted)'"])
    #expect(open.output == "0\n", "\(open)")
  }
}
