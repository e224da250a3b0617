// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
@testable internal import Commands
internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Bundles that lie in a mount are bundles like all others.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct MountedBundleTests {
  @Test(arguments: [false, true])
  func bundlesInAMountAreSignedAndVerified(asNobody: Bool) throws {
    let nobody = Account(name: "nobody", uid: 65534, gid: 65534, home: "/")
    let mounted = try MountedStore.mounted(owner: asNobody ? nobody : nil)
    let home = try mounted.temporary.makeDirectory("home", mode: 0o777)
    let directory = URL(fileURLWithPath: Program.insula).deletingLastPathComponent().path
    let environment = ["HOME": home, "XDG_CONFIG_HOME": "", "PATH": "\(directory):/usr/bin:/bin"]
    func run(_ script: String) throws -> ProgramResult {
      let words = ["sh", "-c", "cd '\(mounted.path("Users/Shared"))' && \(script)"]
      return asNobody
        ? try Program.runAsNobody(words, environment: environment)
        : try Program.run(words, environment: environment)
    }
    let made = try run(
      """
      insula new-app Note && insula identity new me && insula identity export me | insula trust add - &&
      insula sign Note.app --entitlements Note.entitlements && insula verify Note.app
      """)
    #expect(made.status == 0, "\(made.errors)")
    #expect(made.output.contains("Note.app: org.example.note 1, signed by 'me'"))
    let changed = try run("echo more >> Note.app/Contents/Resources/Welcome.txt; insula verify Note.app")
    #expect(changed.status == BundleProblem(.changed).number, "\(changed.errors)")
    // The new signature takes the old one's place by exchange.
    let again = try run("insula sign --force Note.app && insula verify Note.app && ls -A Note.app/Contents")
    #expect(again.status == 0 && !again.output.contains(".CodeSignature"), "\(again.errors)")
    // A copy is as good, wherever it lies.
    #expect(try run("cp -a Note.app '\(home)/Copy.app' && insula verify '\(home)/Copy.app'").status == 0)
  }
}
