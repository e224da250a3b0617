// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula run`: an app in its view, as if it had been called directly.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunTests {
  @Test(arguments: [false, true])
  func appRunsInItsViewAndContainer(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let ran = try fixture.shell("insula run $APP")
    #expect(ran.status == 0 && ran.errors.isEmpty, "\(ran.errors)")
    #expect(ran.output.contains("Hello from Notes.\nMy bundle:    \(fixture.bundle)\n"))
    #expect(ran.output.contains("My container: \(fixture.container)/Data\n"))
    // What takes consent is there by its name, and asks whoever looks into it.
    let asking = "-name Music -o -name Pictures -o -name AddressBook -o -name Calendars -o -name Reminders"
    let places = try fixture.inside(
      "find \(fixture.mounted.point) \\( \(asking) \\) -prune -o -print | sort")
    #expect(places.status == 0, "\(places.errors)")
    let found = places.output.split(separator: "\n").map(String.init)
    let support = fixture.mounted.path("Users/\(fixture.user.name)/Library/Application Support")
    let shared = ["System", "Library/Frameworks"].map { fixture.mounted.path($0) }
    let mine = [fixture.bundle, fixture.container, support] + shared
    for path in found {
      #expect(mine.contains { path.hasPrefix($0) || ($0 + "/").hasPrefix(path + "/") }, "\(path)")
    }
    #expect(found.contains(fixture.container + "/Data/Documents/starts.txt"))
    // What it writes is there outside, its owner's.
    #expect(try fixture.inside("echo words > $HOME/Documents/text").status == 0)
    #expect(try fixture.shell("cat $DATA/Documents/text").output == "words\n")
  }

  @Test(arguments: [false, true])
  func environmentIsTheAppsOwn(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let data = fixture.container + "/Data"
    let result = try fixture.shell("TERM=vt100 LC_ALL=C.UTF-8 DISPLAY=:0 SSH_AUTH_SOCK=/x run env")
    let variables = Set(result.output.split(separator: "\n").map(String.init))
    for expected in [
      "HOME=\(data)", "PWD=\(data)", "CFFIXED_USER_HOME=\(data)", "TMPDIR=\(data)/tmp",
      "XDG_CACHE_HOME=\(data)/Library/Caches", "XDG_CONFIG_HOME=\(data)/Library/Preferences",
      "XDG_DATA_HOME=\(data)/Library/Application Support",
      "XDG_STATE_HOME=\(data)/Library/Application Support", "XDG_RUNTIME_DIR=\(data)/tmp",
      "USER=\(fixture.user.name)", "LOGNAME=\(fixture.user.name)", "TERM=vt100", "LC_ALL=C.UTF-8",
      "APP_SANDBOX_CONTAINER_ID=\(RunFixture.identifier)",
    ] {
      #expect(variables.contains(expected), "\(expected)")
    }
    for name in ["SECRET", "DISPLAY", "SSH_AUTH_SOCK", "INSULA"] {
      #expect(!variables.contains { $0.hasPrefix(name + "=") }, "\(name)")
    }
    let who = try fixture.inside("pwd; id -un; id -u; id -g; echo ~; touch /dev/shm/x $TMPDIR/y /var/tmp/z")
    #expect(
      who.output == "\(data)\n\(fixture.user.name)\n\(fixture.user.uid)\n\(fixture.user.gid)\n\(data)\n",
      "\(who.errors)")
    #expect(try fixture.shell("ls $DATA/tmp").output == "CACHEDIR.TAG\ny\nz\n")
  }

  @Test func wordsAndStreamsAndStatusPassThrough() throws {
    let fixture = try RunFixture()
    let words = try fixture.shell("run printf '[%s]' '' 'a b' '--store' '$HOME' '-h' \"it's\"")
    #expect(words.output == "[][a b][--store][$HOME][-h][it's]")
    let streams = try fixture.shell("echo from here | run sh -c 'cat; echo other >&2'")
    #expect(streams.output == "from here\n" && streams.errors == "other\n")
    for (script, status) in [
      ("run sh -c 'exit 7'", 7), ("run sh -c 'exit 255'", 255), ("run sh -c 'kill -TERM $$'", 143),
      ("run sh -c 'kill -KILL $$'", 137), ("run no-such-program", 127), ("run /etc/passwd", 126),
    ] {
      #expect(try fixture.shell(script).status == status, "\(script)")
    }
    // What looks like a variable is a program's name all the same.
    let odd = try fixture.shell(
      "cp /bin/true $DATA/Documents/a=b; run $DATA/Documents/a=b; "
        + "echo $?; run sh -c 'exec \"$HOME/Documents/a=b\"'"
    )
    #expect(odd.output == "126\n", "\(odd.output)\(odd.errors)")
    // And what looks like an option.
    for name in ["--version", "-i", "--", "-u=x", "--help"] {
      let result = try fixture.shell("run \(name) word")
      #expect(result.status == 127 && result.output.isEmpty, "\(name): \(result.status) \(result.output)")
    }
  }

  /// Unless the store says otherwise, or it is granted.
  @Test(arguments: [nil, "022"]) func whatAppsMakeIsTheirUsersAlone(umask: String?) throws {
    let fixture = try RunFixture(
      entitlements: "<key>com.apple.security.files.user-selected.read-write</key><true/>",
      initOptions: umask.map { ["--app-umask", $0] } ?? [])
    let shared = umask == nil ? "600 700 600 644 666" : "644 755 644 644 666"
    let result = try fixture.shell(
      """
      set -e; folder="$POINT/Users/$(id -un)/Documents/Shared"; mkdir "$folder"
      insula grant "$APP" "$folder" >/dev/null
      export FOLDER="$folder"; umask 022
      run sh -c 'cd ~/Documents; umask 022; echo x >file; mkdir directory
        mkfifo pipe; echo x >changed; chmod 644 changed
        umask 0; echo x >"$1/granted"
        stat -c %a file directory pipe changed "$1/granted" | xargs echo' - "$folder"
      """)
    #expect(result.output == shared + "\n", "\(result.output)\(result.errors)")
  }

  @Test func limitsAndDescriptorsAreThoseOfTheCaller() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      "ulimit -n 77; ulimit -f 8; umask 027; exec 7</etc/hostname; "
        + "run sh -c 'ulimit -n; ulimit -f; umask; ls /proc/self/fd | tr \"\\n\" \" \"'")
    // The last one is the listing's own.
    #expect(result.output == "77\n8\n0027\n0 1 2 3 ", "\(result.errors)")
    #expect(try fixture.shell("run cat 2>&1 <&-; echo; run true >&-").status == 0)
  }

  @Test func rootRunsItAsSomeone() throws {
    let fixture = try RunFixture()
    let ran = try fixture.shell("insula run $APP --user \(fixture.user.name) -- id -u", as: RunFixture.root)
    #expect(ran.output == "\(fixture.user.uid)\n", "\(ran.errors)")
    let written = try fixture.shell(
      "insula run $APP --user \(fixture.user.name) -- sh -c 'touch Documents/new; stat -c %u Documents/new'",
      as: RunFixture.root)
    #expect(written.output == "\(fixture.user.uid)\n", "\(written.errors)")
    #expect(try fixture.shell("insula run $APP --user root").status == 7)
  }

  @Test(arguments: [false, true])
  func nothingIsLeftBehind(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    func run(times: Int) throws {
      let result = try fixture.shell(
        "for i in $(seq \(times)); do run sh -c 'ls -lR $HOME > /dev/null'; done")
      #expect(result.status == 0, "\(result.errors)")
      #expect(try eventually { try fixture.mounted.count("views") == 0 })
    }
    try run(times: 3)
    let threads = try fixture.mounted.count("threads")
    // What is known of the tree is kept open for as long as the kernel knows of it.
    var before = try fixture.mounted.descriptors()
    #expect(
      try eventually {
        let last = before
        usleep(100_000)
        before = try fixture.mounted.descriptors()
        return before == last
      })
    try run(times: 20)
    // The status itself is asked over a connection, which is there for a little longer.
    #expect(try eventually { try fixture.mounted.descriptors() <= before + 2 })
    #expect(try fixture.mounted.count("threads") == threads)
    let mounts = FD.text(of: "/proc/self/mounts", limit: 1 << 20) ?? ""
    #expect(mounts.split(separator: "\n").filter { $0.contains(fixture.mounted.point) }.count == 1)
  }

  @Test(arguments: [false, true])
  func manyBeginAtOnce(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let result = try fixture.shell(
      """
      for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do
        run sh -c "echo $i > Documents/$i; while [ ! -e Documents/go ] && [ \\$((w+=1)) -lt 2400 ]; do
          sleep 0.05; done" &
      done
      running 24; touch $DATA/Documents/go; wait; ls $DATA/Documents | wc -l
      """)
    #expect(result.output == "25\n" && result.errors.isEmpty, "\(result.output)\(result.errors)")
  }
}
