// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What is private stays so, and what its user allows stays open, when another worker serves the app.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct TakenOverConsentTests {
  private static let wide = "org.example.wide"
  private static let other = "org.example.other"

  /// `come FILE` waits for a file among an app's documents, for a minute at most; `lines N` for that much of
  /// its output.
  private static let come = """
    come() { n=0; until [ -e "$own/$1" ]; do n=$((n + 1)); [ $n -lt 1200 ] || exit 9; sleep 0.05; done; }
    lines() {
      n=0; until [ $(wc -l < "$own/out") -ge $1 ]; do
        n=$((n + 1)); [ $n -lt 1200 ] || exit 9; sleep 0.05
      done
    }
    """

  private func documents(_ fixture: ConsentFixture) -> String {
    "\(fixture.home)/Library/Containers/\(Self.wide)/Data/Documents"
  }

  /// With an app whose signature opens something of the home, and which has said why it asks.
  private func fixture(
    opening path: String, _ initOptions: [String] = [], before: [String] = []
  ) throws -> ConsentFixture {
    let fixture = try ConsentFixture(initOptions: initOptions, before: before)
    let exception = "com.apple.security.temporary-exception.files.home-relative-path.read-write"
    try fixture.fixture.install(
      "Wide", entitlements: "<key>\(exception)</key><array><string>\(path)</string></array>",
      info: ["Contacts", "PhotoLibrary"].map {
        "<key>NS\($0)UsageDescription</key><string>Wants it.</string>"
      }.joined())
    return fixture
  }

  /// The address book is spelled otherwise on the disk.
  ///
  /// What comes to its name is as private, also for an app
  /// that the next worker serves and that has the directory open.
  @Test(arguments: ["AddressBook", "addressbook"])
  func whatIsPrivateStaysSoInOtherSpellings(spelling: String) throws {
    let fixture = try fixture(opening: "/Library/", ["--case-insensitive"])
    let own = documents(fixture)
    let script = """
      import os, time
      own = os.environ["HOME"] + "/Documents/"
      os.chdir(os.environ["HOME_OF_USER"] + "/Library/Application Support")
      def come(name):
        end = time.monotonic() + 60
        while not os.path.exists(own + name) and time.monotonic() < end: time.sleep(.02)
      def read(name, dir_fd=None):
        try: return os.read(os.open(name, os.O_RDONLY, dir_fd=dir_fd), 99).decode().strip()
        except OSError as error: return str(error.errno)
      for name in "moved", "served":
        open(own + "before-" + name, "w").close()
        come(name)
        if name == "moved": directory = os.open("AddressBook", os.O_PATH)
        print(read("card", directory), read("addressBOOK/card"), read("B2/granted"), flush=True)
      """
    let program = try fixture.fixture.mounted.temporary.write(script, to: "look.py")
    let made = try fixture.shell(
      """
      insula run \(Self.wide) -- true; own='\(own)'; \(Self.come)
      cd '\(fixture.home)/Library/Application Support'; rm -rf AddressBook; mkdir \(spelling)
      echo given > \(spelling)/granted
      "$INSULA" grant --store "$POINT" \(Self.wide) "$PWD/\(spelling)/granted" > /dev/null
      insula run --env HOME_OF_USER='\(fixture.home)' \(Self.wide) -- \\
        python3 -B - < '\(program)' > "$own/out" 2>&1 &
      come before-moved; mv \(spelling) B2; mkdir \(spelling); echo private > \(spelling)/card
      touch "$own/moved"; come before-served; ls | grep -ic addressbook
      """)
    #expect(made.output == "1\n", "\(made)")
    let mounted = fixture.fixture.mounted
    let worker = try #require(try mounted.daemon())
    kill(worker, SIGKILL)
    let told = try fixture.shell(
      """
      own='\(own)'; \(Self.come)
      touch "$own/served"; lines 2; cat "$own/out"
      """)
    #expect(told.output == "1 1 given\n1 1 given\n", "\(told)")
    #expect(try mounted.daemon() != worker)
  }

  /// Photo libraries, and the documents of other apps: consent gives them by patterns, and the worker finds
  /// what they stand for without reading directories that may have any number of names.
  @Test(arguments: [[], ["--case-insensitive"]])
  func whatPatternsStandForIsKept(initOptions: [String]) throws {
    let fixture = try fixture(opening: "/", initOptions)
    try fixture.fixture.install("Other")
    let own = documents(fixture)
    let mounted = fixture.fixture.mounted
    let script = """
      import os, time
      own, home = os.environ["HOME"] + "/Documents/", os.environ["HOME_OF_USER"]
      places = ["/Pictures/All.photoslibrary", "/Library/Containers/\(Self.other)/Data/Documents"]
      directories = [os.open(home + place, os.O_RDONLY) for place in places]
      files = [os.open("1", os.O_RDONLY, dir_fd=directory) for directory in directories]
      container = os.open(home + places[1] + "/../..", os.O_PATH)
      def look():
        for directory, file in zip(directories, files):
          try:
            again = os.open("1", os.O_RDONLY, dir_fd=directory)
            print(os.pread(file, 9, 0), os.read(again, 9), os.listdir(directory), flush=True)
          except OSError as error: print(error.errno, flush=True)
        try: print(os.open("Data/Library/secret", os.O_RDONLY, dir_fd=container), flush=True)
        except OSError as error: print("secret", flush=True)
      look()
      end = time.monotonic() + 60
      while not os.path.exists(own + "served") and time.monotonic() < end: time.sleep(.02)
      look()
      """
    let program = try mounted.temporary.write(script, to: "look.py")
    let made = try fixture.shell(
      """
      insula run \(Self.wide) -- true; insula run \(Self.other) -- true; own='\(own)'; \(Self.come)
      cd '\(fixture.home)/Library/Containers/\(Self.other)/Data'; echo letter > Documents/1
      mkdir -p Library; echo secret > Library/secret
      for service in photos app-data; do
        "$INSULA" consent allow \(Self.wide) $service --store "$POINT" > /dev/null || exit 8; done
      insula run --env HOME_OF_USER='\(fixture.home)' \(Self.wide) -- \\
        python3 -B - < '\(program)' > "$own/out" 2>&1 &
      lines 3; cat "$own/out"
      """)
    let seen = "b'photo\\n' b'photo\\n' ['1']\nb'letter\\n' b'letter\\n' ['1']\nsecret\n"
    #expect(made.output == seen, "\(made)")
    let pictures = mounted.backing("Users/\(fixture.fixture.user.name)/Pictures")
    let filled = try Program.run([
      "python3", "-c", "import os, sys; [os.mknod(f'{sys.argv[1]}/{n:0250}') for n in range(100000)]",
      pictures,
    ])
    #expect(filled.status == 0, "\(filled)")
    let worker = try #require(try mounted.daemon())
    let peak = peak(of: worker)
    kill(worker, SIGKILL)
    let told = try fixture.shell(
      """
      own='\(own)'; \(Self.come)
      touch "$own/served"; lines 6; cat "$own/out"
      """)
    #expect(told.output == seen + seen, "\(told)")
    let next = try #require(try mounted.daemon())
    #expect(next != worker)
    // A listing of these takes 35,000 kB.
    let (before, after) = (try #require(peak), try #require(self.peak(of: next)))
    #expect(after < before + 15_000)
  }

  /// What there is no time to look for is not there until the app looks it up again: it may be private.
  @Test(arguments: [0, 1 << 17])
  func whatTakesTooLongIsLookedUpAgain(steps: Int) throws {
    let fixture = try fixture(opening: "/", before: ["env", "INSULA_STEPS_WALKED=\(steps)"])
    let own = documents(fixture)
    let script = """
      import os, time
      own, home = os.environ["HOME"] + "/Documents/", os.environ["HOME_OF_USER"]
      private = os.open(home + "/Library/Application Support/AddressBook", os.O_PATH)
      public = os.open(home + "/Sites", os.O_PATH)
      def read(name, directory):
        try: return os.read(os.open(name, os.O_RDONLY, dir_fd=directory), 99).decode().strip()
        except OSError as error: return str(error.errno)
      def look():
        print(read("card", private), read("file", public), read(home + "/Sites/file", None),
          read(home + "/Library/Application Support/AddressBook/card", None), flush=True)
      look()
      end = time.monotonic() + 60
      while not os.path.exists(own + "served") and time.monotonic() < end: time.sleep(.02)
      look()
      """
    let program = try fixture.fixture.mounted.temporary.write(script, to: "look.py")
    let made = try fixture.shell(
      """
      insula run \(Self.wide) -- true; own='\(own)'; \(Self.come)
      cd '\(fixture.home)'; mkdir -p 'Library/Application Support/AddressBook' Sites
      echo private > 'Library/Application Support/AddressBook/card'; echo public > Sites/file
      mkdir -p Granted/a/b; cd Granted/a/b; for n in $(seq 200); do
        touch $n; "$INSULA" grant --store "$POINT" \(Self.wide) "$PWD/$n" > /dev/null || exit 8; done
      insula run --env HOME_OF_USER='\(fixture.home)' \(Self.wide) -- \\
        python3 -B - < '\(program)' > "$own/out" 2>&1 &
      lines 1; cat "$own/out"
      """)
    #expect(made.output == "1 public public 1\n", "\(made)")
    let mounted = fixture.fixture.mounted
    kill(try #require(try mounted.daemon()), SIGKILL)
    let told = try fixture.shell(
      """
      own='\(own)'; \(Self.come)
      touch "$own/served"; lines 2; tail -n 1 "$own/out"
      """)
    #expect(told.output == (steps > 100 ? "1 public public 1\n" : "1 2 public 1\n"), "\(told)")
  }

  /// The most memory that a process has had, in kB.
  private func peak(of process: Int32) -> Int? {
    let status = FD.text(of: "/proc/\(process)/status", limit: 8192) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
  }
}
