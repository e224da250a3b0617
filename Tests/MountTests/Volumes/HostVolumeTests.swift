// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Directories of the machine that are volumes of the tree.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HostVolumeTests {
  struct Host: VolumeFixture {
    let run: RunFixture
    /// What becomes a volume: the user's own, with some files in it.
    let directory: String
    var volume: String { run.mounted.path("Volumes/work") }

    init(rootless: Bool = false, initOptions: [String] = []) throws {
      run = try RunFixture(rootless: rootless, initOptions: initOptions)
      try run.mounted.temporary.makeDirectory("work", mode: 0o755)
      directory = run.mounted.temporary.appending("work")
      _ = try Program.run([
        "sh", "-c", "cd \"$0\" && echo one >a && mkdir sub && echo two >sub/b && chown -R $1:$2 .", directory,
        "\(run.user.uid)", "\(run.user.gid)",
      ])
    }

    /// As the user, in the directory itself; `volume VERB...` is about this store, and `$V` is the volume.
    func shell(_ script: String, as account: Account?) throws -> ProgramResult {
      try run.shell(
        """
        volume() { verb=$1; shift; "$INSULA" volume "$verb" --store "$POINT" "$@"; }
        V="$POINT/Volumes/work"; cd '\(directory)' || exit 90
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
  }

  private static let ways: [(Bool, String?)] = [
    (false, nil), (true, nil), (false, "nopassthrough"), (false, "nohandles"), (false, "nogrpid"),
  ]

  @Test(arguments: ways)
  func aDirectoryIsAPartOfTheTree(rootless: Bool, option: String?) throws {
    let host = try Host(rootless: rootless)
    if let option {
      _ = try host.run.mounted.unmount()
      try host.run.mounted.mount(options: option)
    }
    try host.expect("volume add .; ls \"$POINT/Volumes\"; ls $V", "\(host.volume)\nwork\na\nsub\n")
    try host.expect(
      """
      cat $V/a $V/sub/b; echo three >$V/c; cat c; mkdir $V/new; mv $V/c $V/new/d; ls new; rm $V/a; ls
      ln $V/new/d $V/e; stat -c %h new/d; ln -s sub $V/link; cat $V/link/b; echo more >>$V/sub/b; cat sub/b
      truncate -s 1 $V/sub/b; stat -c %s sub/b; chmod 600 $V/e; stat -c %a e
      python3 -c 'import mmap, sys
      with open(sys.argv[1], "r+b") as f, mmap.mmap(f.fileno(), 0) as m: m[0:1] = b"T"' $V/e; cat e
      """, "one\ntwo\nthree\nd\nnew\nsub\n2\ntwo\ntwo\nmore\n1\n600\nThree\n")
    // From the tree and back programs copy.
    try host.expect(
      """
      mv $V/e "$POINT/Users/Shared/e" && cat "$POINT/Users/Shared/e"; ls e 2>/dev/null
      mv "$POINT/Users/Shared/e" $V/back; cat back; python3 -c 'import os, sys
      try: os.rename(sys.argv[1], sys.argv[2])
      except OSError as e: print(e.strerror)' $V/back "$POINT/Users/Shared/x"
      """, "Three\nThree\nInvalid cross-device link\n")
  }

  /// What others change there is seen at once by its name, and its attributes and contents after a second.
  @Test(arguments: [nil, "nopassthrough"] as [String?])
  func whatOthersChangeIsSeen(option: String?) throws {
    let host = try Host()
    if let option {
      _ = try host.run.mounted.unmount()
      try host.run.mounted.mount(options: option)
    }
    try host.expect(
      """
      volume add . >/dev/null; cat $V/a; stat -c %s $V/a; ls $V/later 2>/dev/null; ls $V >/dev/null
      echo here >later; cat $V/later; ls $V; echo longer than it was >a; rm sub/b; mv sub other; sleep 1.2
      cat $V/a; stat -c %s $V/a; ls $V $V/other; ls -d $V/sub 2>&1 | grep -c 'No such'
      printf 'same size' >later; cat $V/later; printf 'SAME SIZE' >later; cat $V/later
      """,
      """
      one
      4
      here
      a
      later
      sub
      longer than it was
      19
      \(host.volume):
      a
      later
      other

      \(host.volume)/other:
      1
      same sizeSAME SIZE
      """)
  }

  /// A user's volume is there for them alone; what root adds is there for all, by its modes.
  @Test func whatAUserAddsIsTheirs() throws {
    let host = try Host()
    let other = try TemporaryAccount()
    try host.expect("volume add .", "\(host.volume)\n")
    try host.expect(
      """
      ls -A "$POINT/Volumes"; cat $V/a 2>&1 | grep -c 'No such'; ls -d $V 2>&1 | grep -c 'No such'
      volume list; volume info work 2>&1 | grep -c 'no volume'; volume eject work 2>&1 | grep -c 'no volume'
      touch $V/x 2>&1 | grep -c 'No such'; mv $V "$POINT/Volumes/y" 2>&1 | grep -c 'No such'
      """, "1\n1\nThere are no volumes.\n1\n1\n1\n1\n", as: other.account)
    let space = String(repeating: " ", count: host.run.user.name.count - 1)
    try host.expect(
      "ls -A \"$POINT/Volumes\"; cat $V/a 2>&1 | grep -c -e such -e memory; volume list | sed 's/ *$//'",
      "1\nNAME  FOR\(space)STATE       SOURCE\n"
        + "work  \(host.run.user.name)  read-write  \(host.directory)\n", as: RunFixture.root)
    // They have looked, and still the kernel asks for each. It would forget a name that is said not to be
    // there, for its user too.
    try host.expect("cat $V/a", "one\n")
    try host.refuse("cat $V/a", "Cannot allocate memory", as: other.account)
    try host.refuse("volume eject work", "there is no volume work", as: other.account)
    try host.expect("volume eject work; ls \"$POINT/Volumes\"", "")
    try host.expect(
      "chmod 640 a; volume add --at work . >/dev/null; cat $V/sub/b", "two\n", as: RunFixture.root)
    try host.expect("cat $V/sub/b; ls \"$POINT/Volumes\"", "two\nwork\n", as: other.account)
    try host.refuse("cat $V/a", "Permission denied", as: other.account)
    try host.refuse("touch $V/new", "Permission denied", as: other.account)
    try host.refuse("volume eject work", "only root can eject it", .notPermitted)
  }

  /// What a list of the disk's own gives is not evaluated: its owner alone has such a file.
  @Test func listsOfTheDiskAreLeftToIt() throws {
    let host = try Host()
    let other = try TemporaryAccount()
    let set = """
      import os, struct, sys
      def acl(*entries): return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)
      none = 0xffffffff
      os.setxattr(sys.argv[1], "system.posix_acl_access",
          acl((1, 6, none), (2, 0, int(sys.argv[2])), (4, 4, none), (16, 4, none), (32, 4, none)))
      """
    try host.expect("volume add --at work . >/dev/null; cat $V/a", "one\n", as: RunFixture.root)
    try host.expect("cat $V/a", "one\n", as: other.account)
    let listed = try host.shell("python3 -c '\(set)' a \(other.account.uid)", as: RunFixture.root)
    try #require(listed.status == 0, "\(listed)")
    // The disk itself refuses that user, whom the mode would let in.
    try host.refuse("cat a", "Permission denied", as: other.account)
    try host.refuse("cat $V/a", "Permission denied", as: other.account)
    try host.expect("cat $V/a", "one\n")
    // Also among many other attributes.
    let more = """
      import os, sys
      for number in range(9): os.setxattr(sys.argv[1], "user." + "n" * 120 + str(number), b"")
      """
    let added = try host.shell("python3 -c '\(more)' a", as: RunFixture.root)
    try #require(added.status == 0, "\(added)")
    try host.refuse("cat $V/a", "Permission denied", as: other.account)
    try host.refuse("tee -a $V/a </dev/null", "Permission denied", as: other.account)
    try host.expect("cat $V/a", "one\n")
  }

  /// The names there are the daemon's, whoever comes.
  @Test(arguments: [false, true])
  func namesThereAreTheDaemons(ignoringCase: Bool) throws {
    let host = try Host(initOptions: ignoringCase ? ["--case-insensitive"] : [])
    try host.expect("volume add . >/dev/null", "", as: RunFixture.root)
    for line in [
      "mkdir $POINT/Volumes/new", "touch $POINT/Volumes/new", "rmdir $V", "mv $V $V-2",
      "ln -s a $POINT/Volumes/new", "mv $V/sub $POINT/Volumes/new", "mv -T $V/sub $V",
    ] {
      let result = try host.shell(line, as: RunFixture.root)
      #expect(result.isRefusal, "\(line): \(result)")
    }
    try host.expect("ls; ls $POINT/Volumes", "a\nsub\nwork\n")
    // The volume itself has the names of its disk, in each spelling its own.
    let spelling = try host.shell("cat $POINT/VOLUMES/WORK/a 2>&1; ls $V/A 2>&1 | grep -c 'No such'")
    #expect(spelling.output.hasPrefix("one\n") == ignoringCase, "\(spelling)")
    #expect(spelling.output.hasSuffix("1\n"), "\(spelling)")
    let volumes = host.run.mounted.path("Volumes")
    // Two of one name, and of names that differ by case.
    try host.expect(
      """
      mkdir -p sub/Work other/work; volume add sub/Work; volume add other/work --at work
      volume eject work >/dev/null; volume add sub/Work; volume add other/work; volume list | cut -c1-7
      """, "\(volumes)/Work\n\(volumes)/work 1\nNAME   \nWork   \nwork 1 \n", as: RunFixture.root)
  }

  @Test func whatCantBeAVolumeIsRefused() throws {
    let host = try Host()
    let store = host.run.mounted.store
    for (line, words) in [
      ("cp a ../copy; volume add ../copy", "it has no filesystem that is known"),
      ("volume add missing", "No such file"),
      ("volume add \(store)", "it holds the store, or lies in it"),
      ("volume add \(store)/tree/Users", "it holds the store, or lies in it"),
      ("volume add /", "it holds the store, or lies in it"), ("volume add /proc", "it lies on 0x9fa0"),
      ("volume add $POINT/Users", "it lies on fuse"),
      ("volume add sub --at ..", "can't be the name of a volume"),
      ("volume add sub --at 'a\nb'", "can't be that of a volume"), ("volume eject work", "no volume work"),
      ("volume info work", "no volume work"),
      ("volume add . && volume add sub", "it overlaps with the volume work"),
      (
        "mkdir -p sub/deep; volume eject work; volume add sub/deep; volume add .",
        "it overlaps with the volume deep"
      ),
    ] {
      try host.refuse(line, words, line.hasSuffix("..") ? .usage : .failed, as: RunFixture.root)
    }
    // A link is followed by whoever adds it, and by nobody afterwards.
    try host.expect(
      "volume eject deep; ln -s sub link; volume add link --at work; ls $V; volume eject work",
      "\(host.volume)\nb\ndeep\n", as: RunFixture.root)
    // What a user adds is bounded.
    let many = try host.shell("for i in $(seq 20); do mkdir d$i && volume add d$i >/dev/null; done")
    #expect(many.errors.includes("there are too many volumes"), "\(many)")
    try host.expect("volume list | wc -l", "17\n")
  }

  /// Somebody who was once handed a directory has no way to it for good.
  @Test func nobodyAddsWhatTheyCantGetTo() throws {
    let host = try Host()
    let closed = host.run.mounted.temporary.appending("closed")
    let made = try Program.run([
      "sh", "-c",
      "mkdir -p \"$0/inner\" && echo secret >\"$0/inner/file\" && chown $1 \"$0/inner\" && chmod 700 \"$0\"",
      closed, "\(host.run.user.uid)",
    ])
    try #require(made.status == 0)
    // By root, who hands an open directory to a program of the user's.
    let script = """
      import array, os, socket, sys
      opened = os.open(sys.argv[1], os.O_PATH | os.O_DIRECTORY)
      os.setgroups([]); os.setgid(int(sys.argv[4])); os.setuid(int(sys.argv[3]))
      made = socket.socket(socket.AF_UNIX)
      made.connect(sys.argv[2])
      file = made.makefile("r")
      made.sendall(b'{"verb":"pass"}\\n')
      print(file.readline())
      made.sendmsg([b"\\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [opened]))])
      print(file.readline())
      made.sendall(b'{"verb":"volume","volume":{"deed":"add","wish":{"source":{"directory":{}},' +
          b'"isReadOnly":false,"ignoresOwners":false,"isOnDemand":false}}}\\n')
      print(file.readline())
      """
    let user = ["\(host.run.user.uid)", "\(host.run.user.gid)"]
    let asked = try Program.run(
      ["/usr/bin/python3", "-c", script, closed + "/inner", try host.run.mounted.socket()] + user)
    #expect(asked.output.includes("inner can't be opened: "), "\(asked)")
    try host.refuse("volume add \(closed)/inner", "Permission denied", .notPermitted)
    try host.expect("volume list", "There are no volumes.\n")
  }

  @Test func oneThatIsUsedStays() throws {
    let host = try Host()
    try host.expect("volume add . >/dev/null", "")
    let busy = try host.shell("exec 3<$V/a; volume eject work; cat <&3; ls $POINT/Volumes")
    #expect(busy.output == "one\nwork\n" && busy.errors.includes("work is in use: pid "), "\(busy)")
    let entered = try host.shell("cd $V/sub; volume eject work; ls")
    #expect(entered.output == "b\n" && entered.errors.includes("working directory"), "\(entered)")
    // By force what is open stays open, and nothing else is found.
    try host.expect(
      """
      exec 3<$V/a; cd $V/sub; volume eject work --force; cat <&3; ls
      ls $POINT/Volumes; cat $V/a 2>&1 | grep -c such
      """, "one\nb\n1\n")
    // Nothing keeps the disk after that.
    try host.expect("volume add . >/dev/null; cat $V/a $V/sub/b; volume eject work; cat a", "one\ntwo\none\n")
  }

  /// Of two that were ejected by force while they were used, each is let go when nobody uses it any more; and
  /// both keep the mount busy until then.
  @Test(arguments: [false, true]) func twoThatAreLeftInUseStayApart(rootless: Bool) throws {
    let host = try Host(rootless: rootless)
    let mounted = host.run.mounted
    try host.expect(
      """
      mkdir first second; printf 1 >first/x; printf 2 >second/x; volume add first >/dev/null
      volume add second >/dev/null; ls $POINT/Volumes
      """, "first\nsecond\n")
    let names = ["first", "second"]
    let clients = try names.map { _ in try Client(uid: host.run.user.uid) }
    for (name, client) in zip(names, clients) {
      #expect(try client.errno("open", mounted.path("Volumes/\(name)/x"), "\(O_RDWR)") == 0)
    }
    try host.expect("volume eject first --force; volume eject second --force; ls $POINT/Volumes", "")
    for left in stride(from: 2, to: 0, by: -1) {
      let refused = try mounted.run("unmount", mounted.point)
      let users = refused.errors.ranges(of: "(insula-client): has ").count
      // A user does not see what processes do that root has started.
      #expect(refused.ending == .busy && users == (rootless ? 0 : left), "\(refused)")
      for number in (2 - left)..<2 {
        let read = try clients[number].run("read", "0", "0")
        #expect(read.words.first?.hasPrefix("\(number + 1)") == true, "\(names[number]): \(read)")
        #expect(try clients[number].errno("write at", "0", "1", "\(left)") == 0)
      }
      #expect(try clients[2 - left].errno("close", "0") == 0)
    }
    let result = try mounted.unmount()
    #expect(result.ending == .ok, "\(result)")
    // The last that each wrote is there, and nothing holds the directories.
    let after = try Program.run(["sh", "-c", "cd \"$0\" && cat */x && rm -r first second", host.directory])
    #expect(after.ending == .ok && after.output == "1221", "\(after)")
    try mounted.mount()
  }

  /// They are there again when another worker goes on, and at the next mount, unless another directory is.
  @Test(arguments: [false, true])
  func theyAreThereAgain(rootless: Bool) throws {
    let host = try Host(rootless: rootless)
    let mounted = host.run.mounted
    try host.expect("volume add . >/dev/null; cat $V/sub/b", "two\n")
    let worker = try #require(try mounted.daemon())
    let reading = try host.shell(
      """
      exec 3<$V/sub/b 4>>$V/a; cd $V/sub; kill -9 \(rootless ? "\(worker)" : "0") 2>/dev/null || true
      """, as: rootless ? nil : RunFixture.root)
    _ = reading
    if !rootless { kill(worker, SIGKILL) }
    #expect(try eventually { try mounted.daemon().map { $0 != worker } ?? false })
    try host.expect("cat $V/sub/b; echo x >$V/new; cat new; volume list | wc -l", "two\nx\n2\n")
    _ = try mounted.unmount()
    try mounted.mount()
    try host.expect("cat $V/sub/b; ls \"$POINT/Volumes\"", "two\nwork\n")
    _ = try mounted.unmount()
    let moved = try Program.run(["sh", "-c", "mv \"$0\" \"$0-2\"; cp -a \"$0-2\" \"$0\"", host.directory])
    try #require(moved.status == 0)
    try mounted.mount()
    try host.expect(
      "ls \"$POINT/Volumes\"; volume info work | grep missing | sed 's/  */ /g'",
      "state missing\nmissing at \(host.directory) is another directory than the one that was added\n")
    let back = try Program.run(["sh", "-c", "rm -r \"$0\"; mv \"$0-2\" \"$0\"", host.directory])
    try #require(back.status == 0)
    // It is looked for again.
    try host.expect("volume list >/dev/null; cat $V/sub/b; volume eject work; ls $POINT/Volumes", "two\n")
  }

  @Test(arguments: [false, true])
  func readOnlyOnesStaySo(rootless: Bool) throws {
    let host = try Host(rootless: rootless)
    try host.expect("volume add --read-only . >/dev/null; cat $V/a $V/sub/b", "one\ntwo\n")
    try host.refuse("echo x >$V/a", "Read-only file system", .seriousTrouble)
    for line in ["touch $V/new", "mkdir $V/d", "rm $V/a", "chmod 600 $V/a", "mv $V/a $V/b"] {
      try host.refuse(line, "Read-only file system")
    }
    try host.expect("ls; cat a; volume list | grep -c read-only", "a\nsub\none\n1\n")
  }

  /// Another disk has numbers of its own, and what was looked up long ago is found by them.
  @Test func numbersOfOtherDisksAreTheirOwn() throws {
    let host = try Host()
    let disk = host.run.mounted.temporary.appending("disk")
    let made = try Program.run([
      "sh", "-c",
      """
      mkdir "$0" && truncate -s 64M "$0.img" && mkfs.ext4 -qF "$0.img" && mount -o loop "$0.img" "$0" &&
        echo here >"$0/file" && mkdir "$0/deep" && chmod 777 "$0" "$0/deep"
      """, disk,
    ])
    try #require(made.status == 0, "\(made.errors)")
    defer { _ = try? Program.run(["umount", "-l", disk]) }
    try host.expect(
      """
      volume add \(disk) >/dev/null; D=$POINT/Volumes/disk; cat $D/file
      [ $(stat -c %i $D/file) = $(stat -c %i \(disk)/file) ] && echo same number
      [ $(stat -c %i $D/file) = $(ls -i $D/file | cut -d' ' -f1) ] || echo other listing
      cd $D; for i in $(seq 3000); do echo $i >deep/$i; done; cat deep/1 deep/3000; find . | wc -l
      python3 -c 'import os
      print(all(e.inode() == os.stat(e.path).st_ino for e in os.scandir("deep")))'
      mount --bind / \(disk)/deep 2>/dev/null; df --output=size . | tail -n +2
      """, "here\n1\n3000\n3004\nTrue\n\(try size(of: disk))\n", as: RunFixture.root)
    _ = try Program.run(["umount", "\(disk)/deep"])
    // The disk can be taken away when its volume was ejected.
    let taken = try host.shell(
      "volume eject disk; umount \(disk) && e2fsck -fn \(disk).img >/dev/null && echo clean",
      as: RunFixture.root)
    #expect(taken.output == "clean\n", "\(taken)")
  }

  private func size(of disk: String) throws -> String {
    let told = try Program.run(["sh", "-c", "df --output=size \"$0\" | tail -n +2", disk])
    return told.output.split(separator: "\n").first.map(String.init) ?? ""
  }
}
