// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

private let canTrace = (try? Program.run(["strace", "-V"]).status) == 0

/// In which order an installer asks the kernel for things: a machine that stops keeps what has reached the
/// disk, in any order that was not asked for.
@Suite(.enabled(if: canTrace, "it takes strace")) struct CallOrderTests {
  private let fixture: AppFixture

  init() throws {
    fixture = try AppFixture(isShared: true)
    try fixture.bundle { $0.groups = ["group.one"] }
  }

  /// The calls that a piece of work makes, with the paths of their descriptors.
  private func calls(_ words: [String]) throws -> [String] {
    let program = String(Program.insula.dropLast("insula".count)) + "insula-stopped"
    let trace = fixture.temporary.appending("trace")
    let result = try Program.run(
      [
        "strace", "-f", "-y", "-qq", "-o", trace, "-e",
        "trace=fsync,fdatasync,syncfs,renameat2,unlink,unlinkat",
      ]
        + [program, "0"] + words)
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    let text = try String(contentsOfFile: trace, encoding: .utf8)
    return text.split(separator: "\n").map(String.init)
  }

  /// The rename that changes the tree is on disk before the registry says so, in its database.
  private func expectSynchronized(_ calls: [String], _ words: String) throws {
    let applications = "\(fixture.tree)/\(fixture.home)/Applications>"
    let renamed = calls.firstIndex { $0.contains("renameat2(") && $0.contains(applications) }
    let rename = try #require(renamed, "\(words): \(calls)")
    let synchronized = calls[rename...].firstIndex { $0.contains("fsync(") && $0.contains(applications) }
    let sync = try #require(synchronized, "\(words): the directory is not forced to disk")
    let noted = calls[rename...].firstIndex { $0.contains("sync(") && $0.contains("insula.db>") }
    let note = try #require(noted, "\(words): the registry notes nothing")
    #expect(sync < note, "\(words)")
  }

  @Test func treeIsOnDiskBeforeTheRegistrySaysSo() throws {
    let bundle = fixture.temporary.appending("Editor.app")
    let store = fixture.temporary.appending("store")
    mkdir("\(fixture.tree)/\(fixture.home)/Applications", 0o755)
    let install = try calls(["install-app", store, fixture.account.name, bundle])
    try expectSynchronized(install, "install")
    // What was copied is there before anybody can find it.
    let copied = try #require(install.firstIndex { $0.contains("syncfs(") })
    let renamed = try #require(install.firstIndex { $0.contains("renameat2(") && $0.contains("Editor.app") })
    #expect(copied < renamed)
    for containers in ["Containers>", "Group Containers>"] {
      let place = "\(fixture.tree)/\(fixture.home)/Library/\(containers)"
      let put = try #require(install.firstIndex { $0.contains("renameat2(") && $0.contains(place) })
      #expect(install[put...].contains { $0.contains("fsync(") && $0.contains(place) }, "\(place)")
    }
    try fixture.bundle {
      $0.version = "2"; $0.groups = ["group.one"]
    }
    try expectSynchronized(calls(["update-app", store, fixture.account.name, bundle]), "update")
    try expectSynchronized(
      calls(["uninstall-app", store, fixture.account.name, "org.example.editor"]), "uninstall")
  }
}
