// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// What is said of a program that does not start.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunStartTests {
  /// Runs an app whose executable is this script.
  private func run(script: String, in fixture: RunFixture, _ name: String) throws -> ProgramResult {
    let source = try fixture.mounted.temporary.write(script, to: "store/\(name)")
    // No app is made of such a script, so it is put into a bundle that is there.
    try fixture.install(name, executable: source)
    return try start(name, in: fixture)
  }

  private func start(_ name: String, in fixture: RunFixture) throws -> ProgramResult {
    try fixture.shell("\"$INSULA\" run --store \"$POINT\" \(name)")
  }

  @Test func whatAScriptLacksIsSaid() throws {
    let fixture = try RunFixture()
    for (name, script, status, said) in [
      ("Missing", "#!/opt/none/python3 -u\n", 127, "'/opt/none/python3'"),
      ("Wanted", "#!/usr/bin/env no-such-language\n", 127, "'no-such-language', which is not installed"),
      ("Windows", "#!/bin/sh\r\necho hello\r\n", 127, "carriage return"),
    ] {
      let result = try run(script: script, in: fixture, name)
      #expect(Int(result.status) == status && result.errors.contains(said), "\(name): \(result)")
    }
    // A program's own status is nothing to explain.
    let own = try run(script: "#!/bin/sh\nexit 127\n", in: fixture, "Own")
    #expect(own.status == 127 && own.errors.isEmpty, "\(own)")
  }

  @Test func whatAProgramLacksIsSaid() throws {
    let fixture = try RunFixture()
    let directory = fixture.mounted.temporary.appending("store")
    let build = """
      cd '\(directory)'
      echo 'int f(void) { return 0; }' > f.c
      echo 'int f(void); int main(void) { return f(); }' > m.c
      cc -shared -fPIC -o libnowhere.so f.c
      cc -o Library m.c -L. -lnowhere
      cc -o Loader m.c -L. -lnowhere -Wl,--dynamic-linker=/opt/none/ld.so
      cp Library Processor
      printf '\\363' | dd of=Processor bs=1 seek=18 conv=notrunc status=none
      """
    let built = try fixture.shell(build, as: RunFixture.root)
    try #require(built.status == 0, "\(built)")
    for (name, said) in [
      ("Library", "needs the library 'libnowhere.so'"), ("Loader", "needs the loader '/opt/none/ld.so'"),
      ("Processor", "another kind of processor"),
    ] {
      try fixture.install(name, executable: "\(directory)/\(name)")
      let result = try start(name, in: fixture)
      // A shell reads what the kernel can't run, and does not understand it.
      let ending: Ending = name == "Processor" ? .seriousTrouble : .notFound
      #expect(result.ending == ending && result.errors.contains(said), "\(name): \(result)")
    }
  }

  @Test(arguments: [false, true])
  func whatTheAppWroteIsNotRun(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let result = try fixture.shell("run true; cp /bin/true $DATA/Documents/own; run Documents/own")
    #expect(result.status == 126 && result.errors.contains("disable-library-validation"), "\(result)")
    let there = try fixture.shell("run no-such-program; run sh -c 'exit 126'")
    #expect(there.status == 126 && !there.errors.contains("insula:"), "\(there)")
  }
}
