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
    let house = try RunHouse(rootless: rootless)
    let ran = try house.shell("insula run $APP")
    #expect(ran.status == 0 && ran.errors.isEmpty, "\(ran.errors)")
    #expect(ran.output.contains("Hello from Notes.\nMy bundle:    \(house.bundle)\n"))
    #expect(ran.output.contains("My container: \(house.container)/Data\n"))
    let places = try house.inside("find \(house.mounted.point) | sort")
    #expect(places.status == 0, "\(places.errors)")
    let found = places.output.split(separator: "\n").map(String.init)
    let mine = [house.bundle, house.container, house.mounted.path("System")]
    for path in found {
      #expect(mine.contains { path.hasPrefix($0) || ($0 + "/").hasPrefix(path + "/") }, "\(path)")
    }
    #expect(found.contains(house.container + "/Data/Documents/starts.txt"))
    // What it writes is there outside, its owner's.
    #expect(try house.inside("echo words > $HOME/Documents/text").status == 0)
    #expect(try house.shell("cat $DATA/Documents/text").output == "words\n")
  }

  @Test(arguments: [false, true])
  func environmentIsTheAppsOwn(rootless: Bool) throws {
    let house = try RunHouse(rootless: rootless)
    let data = house.container + "/Data"
    let result = try house.shell("TERM=vt100 LC_ALL=C.UTF-8 DISPLAY=:0 SSH_AUTH_SOCK=/x run env")
    let variables = Set(result.output.split(separator: "\n").map(String.init))
    for expected in [
      "HOME=\(data)", "PWD=\(data)", "CFFIXED_USER_HOME=\(data)", "TMPDIR=\(data)/tmp",
      "XDG_CACHE_HOME=\(data)/Library/Caches", "XDG_CONFIG_HOME=\(data)/Library/Preferences",
      "XDG_DATA_HOME=\(data)/Library/Application Support", "XDG_RUNTIME_DIR=\(data)/tmp",
      "USER=\(house.user.name)", "LOGNAME=\(house.user.name)", "TERM=vt100", "LC_ALL=C.UTF-8",
      "APP_SANDBOX_CONTAINER_ID=\(RunHouse.identifier)",
    ] {
      #expect(variables.contains(expected), "\(expected)")
    }
    for name in ["SECRET", "DISPLAY", "SSH_AUTH_SOCK", "INSULA"] {
      #expect(!variables.contains { $0.hasPrefix(name + "=") }, "\(name)")
    }
    let who = try house.inside("pwd; id -un; id -u; id -g; echo ~; touch /dev/shm/x $TMPDIR/y /var/tmp/z")
    #expect(
      who.output == "\(data)\n\(house.user.name)\n\(house.user.uid)\n\(house.user.gid)\n\(data)\n",
      "\(who.errors)")
    #expect(try house.shell("ls $DATA/tmp").output == "y\nz\n")
  }

  @Test func wordsAndStreamsAndStatusPassThrough() throws {
    let house = try RunHouse()
    let words = try house.shell("run printf '[%s]' '' 'a b' '--store' '$HOME' '-h' \"it's\"")
    #expect(words.output == "[][a b][--store][$HOME][-h][it's]")
    let streams = try house.shell("echo from here | run sh -c 'cat; echo other >&2'")
    #expect(streams.output == "from here\n" && streams.errors == "other\n")
    for (script, status) in [
      ("run sh -c 'exit 7'", 7), ("run sh -c 'exit 255'", 255), ("run sh -c 'kill -TERM $$'", 143),
      ("run sh -c 'kill -KILL $$'", 137), ("run no-such-program", 127), ("run /etc/passwd", 126),
    ] {
      #expect(try house.shell(script).status == status, "\(script)")
    }
    // What looks like a variable is a program's name all the same.
    let odd = try house.shell(
      "cp /bin/true $DATA/Documents/a=b; run $DATA/Documents/a=b; "
        + "echo $?; run sh -c 'exec \"$HOME/Documents/a=b\"'"
    )
    #expect(odd.output == "126\n", "\(odd.output)\(odd.errors)")
    // And what looks like an option.
    for name in ["--version", "-i", "--", "-u=x", "--help"] {
      let result = try house.shell("run \(name) word")
      #expect(result.status == 127 && result.output.isEmpty, "\(name): \(result.status) \(result.output)")
    }
  }

  @Test func limitsAndDescriptorsAreThoseOfTheCaller() throws {
    let house = try RunHouse()
    let result = try house.shell(
      "ulimit -n 77; ulimit -f 8; umask 027; exec 7</etc/hostname; "
        + "run sh -c 'ulimit -n; ulimit -f; umask; ls /proc/self/fd | tr \"\\n\" \" \"'")
    // The last one is the listing's own.
    #expect(result.output == "77\n8\n0027\n0 1 2 3 ", "\(result.errors)")
    #expect(try house.shell("run cat 2>&1 <&-; echo; run true >&-").status == 0)
  }

  @Test func rootRunsItAsSomeone() throws {
    let house = try RunHouse()
    let ran = try house.shell("insula run $APP --user \(house.user.name) -- id -u", as: RunHouse.root)
    #expect(ran.output == "\(house.user.uid)\n", "\(ran.errors)")
    let written = try house.shell(
      "insula run $APP --user \(house.user.name) -- sh -c 'touch Documents/new; stat -c %u Documents/new'",
      as: RunHouse.root)
    #expect(written.output == "\(house.user.uid)\n", "\(written.errors)")
    #expect(try house.shell("insula run $APP --user root").status == 7)
  }

  @Test(arguments: [false, true])
  func nothingIsLeftBehind(rootless: Bool) throws {
    let house = try RunHouse(rootless: rootless)
    func run(times: Int) throws {
      let result = try house.shell("for i in $(seq \(times)); do run sh -c 'ls -lR $HOME > /dev/null'; done")
      #expect(result.status == 0, "\(result.errors)")
      #expect(try eventually { try house.mounted.count("views") == 0 })
    }
    try run(times: 3)
    let threads = try house.mounted.count("threads")
    // What is known of the tree is kept open for as long as the kernel knows of it.
    var before = try house.mounted.descriptors()
    #expect(
      try eventually {
        let last = before
        usleep(100_000)
        before = try house.mounted.descriptors()
        return before == last
      })
    try run(times: 20)
    // The status itself is asked over a connection, which is there for a little longer.
    #expect(try eventually { try house.mounted.descriptors() <= before + 2 })
    #expect(try house.mounted.count("threads") == threads)
    let mounts = FD.text(of: "/proc/self/mounts", limit: 1 << 20) ?? ""
    #expect(mounts.split(separator: "\n").filter { $0.contains(house.mounted.point) }.count == 1)
  }

  @Test(arguments: [false, true])
  func manyBeginAtOnce(rootless: Bool) throws {
    let house = try RunHouse(rootless: rootless)
    let result = try house.shell(
      """
      for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do
        run sh -c "echo $i > Documents/$i; while [ ! -e Documents/go ]; do sleep 0.05; done" &
      done
      running 24; touch $DATA/Documents/go; wait; ls $DATA/Documents | wc -l
      """)
    #expect(result.output == "25\n" && result.errors.isEmpty, "\(result.output)\(result.errors)")
  }
}
