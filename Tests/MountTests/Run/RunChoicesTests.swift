// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// What a person chooses for an app that they run: arguments, variables, a directory.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunChoicesTests {
  @Test func choicesReachTheApp() throws {
    let fixture = try RunFixture()
    let data = fixture.container + "/Data"
    let variables = try fixture.shell("insula run $APP --env 'A=b = c' --env LANG=xx --env A=d -- env")
    let lines = Set(variables.output.split(separator: "\n").map(String.init))
    #expect(lines.contains("A=d") && lines.contains("LANG=xx") && lines.contains("HOME=\(data)"))
    #expect(try fixture.shell("insula run $APP --args --user -x").status == 0)
    #expect(try fixture.shell("insula run nOTES -- pwd").output == data + "\n")
    let named = try fixture.shell("insula info Notes; insula path Notes home; insula grants notes")
    #expect(named.status == 0 && named.output.contains(data + "\n"), "\(named.errors)")
    #expect(try fixture.shell("insula run 'No such' -- pwd").errors.contains("no app is called 'No such'"))
    for user in [nil, RunFixture.root] {
      let whose = user == nil ? "" : "--user \(fixture.user.name)"
      let result = try fixture.shell(
        "insula run notes \(whose) --env 'A=b c' --cwd Documents -- sh -c 'pwd; echo $PWD; echo $A'", as: user
      )
      #expect(result.output == "\(data)/Documents\n\(data)/Documents\nb c\n", "\(result.errors)")
    }
  }

  /// A path is the app's: neither '..' nor a link leads out of what it sees.
  @Test func directoryIsOneThatTheAppSees() throws {
    let fixture = try RunFixture()
    let data = fixture.container + "/Data"
    #expect(try fixture.shell("insula run $APP --cwd /usr -- pwd").output == "/usr\n")
    let hidden = fixture.mounted.path("Users/\(fixture.user.name)/Documents")
    #expect(try fixture.inside("ln -s ../Library Documents/link; ln -s \(hidden) Documents/out").status == 0)
    #expect(
      try fixture.shell("insula run $APP --cwd Documents/link -- pwd -P").output == data + "/Library\n")
    #expect(
      try fixture.shell("insula run $APP --cwd Documents/../.. -- pwd -P").output == fixture.container + "\n")
    #expect(
      try fixture.shell("insula run $APP --cwd /../../../../.. -- ls -d root home opt 2>&1").output.contains(
        "No such file"))
    for path in [
      "nothing", "Documents/out", "/root", fixture.mounted.store, "../../../../Documents",
      hidden, "Documents/../../../../../Desktop", "-x",
    ] {
      let refused = try fixture.shell("insula run $APP --cwd='\(path)' -- pwd")
      #expect(
        refused.status == 125 && refused.errors.contains("cannot change directory") && refused.output.isEmpty,
        "\(path): \(refused.status) \(refused.output)\(refused.errors)")
    }
    #expect(try fixture.shell("insula run $APP --cwd '' -- pwd").status == 2)
    #expect(try fixture.shell("cd $DATA; ls Documents").output.contains("link"), "\(data)")
  }
}
