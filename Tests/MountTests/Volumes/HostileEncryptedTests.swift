// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What is tried against encrypted volumes, by their users and by others:
//
//  1. Another user unlocks, locks, ejects or reads one.
//  2. The password is found in the words, the variables, the memory or the log of a process.
//  3. Something else lies in the place of the encrypted files.
//  4. Their configuration asks for all memory, or is none; names there are no ciphertext.
//  5. What comes as a password never ends, or is no pipe.
//  6. Many unlock at once, and many open while it is locked.
//  7. The disk is full.
//  8. Programs of volumes are stopped, so that the keys of others stay while all are locked.

/// Users who try to get by an encrypted volume what they do not have.
@Suite(
  .enabled(if: EncryptedFixture.isPossible, "mounting needs root and /dev/fuse, or gocryptfs is missing"),
  .mayTake(seconds: 300))
struct HostileEncryptedTests {
  @Test func othersGetNothingOfIt() throws {
    let fixture = try EncryptedFixture()
    let other = try TemporaryAccount()
    let attempts = """
      ls -A $V; cat $V/Private/x 2>&1 | grep -c -e such -e memory; volume list
      for verb in lock "lock --force" eject unlock info
      do echo "$W" | volume $verb Private 2>&1 | grep -c 'no volume Private'; done; volume lock --all --force
      """
    let nothing = "1\nThere are no volumes.\n1\n1\n1\n1\n1\n"
    try fixture.expect("create Private; echo x >$V/Private/x", "")
    try fixture.expect(attempts, nothing, as: other.account)
    try fixture.expect("cat $V/Private/x; volume lock Private", "x\n")
    try fixture.expect(attempts, nothing, as: other.account)
    // Root knows of it and has no key either; and what root types is not for the program of whoever has
    // called a volume like one of root's. Root says whose is meant.
    let name = fixture.run.user.name
    try fixture.expect(
      """
      cat $V/Private/x 2>&1 | grep -c -e such -e memory; volume list | grep -c 'Private .*locked'
      echo "$W" | volume unlock Private 2>&1 | grep -c "is a volume of \(name), and nothing was done"
      volume lock Private 2>&1 | grep -c "but Private of \(name)"; volume list | grep -c 'Private .*locked'
      echo "$W" | volume unlock Private --user root 2>&1 | grep -c 'no volume Private'
      """, "1\n1\n1\n1\n1\n1\n", as: RunFixture.root)
    #expect(try fixture.programs() == [])
    // The daemon does not rely on the command for it.
    let asked = """
      import socket, os, sys
      s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
      s.sendall(b'{"verb":"volume","volume":{"deed":"unlock","name":"Private"}}\\n')
      print(s.recv(4096).decode())
      """
    let socket = try fixture.run.mounted.socket()
    try fixture.expect(
      """
      /usr/bin/python3 -c '\(asked.replacing("'", with: "'\\''"))' \(socket) \
        | grep -c 'but Private of \(name)'
      echo "$W" | volume unlock Private --user \(name) >/dev/null
      cat $V/Private/x 2>&1 | grep -c -e such -e memory
      """, "1\n1\n", as: RunFixture.root)
    let program = try #require(try fixture.programs().first)
    #expect(ProcessID.field("Uid", of: "\(program)")?.hasPrefix("\(fixture.run.user.uid)\t") == true)
    try fixture.expect("cat $V/Private/x", "x\n")
    try fixture.expect(
      "volume lock Private --user \(name) 2>&1", "insula: locked Private of \(name)\n", as: RunFixture.root)
    try fixture.expect("cat $V/Private/x 2>&1 | grep -c key; unlock Private", "1\n")
    try fixture.expect("volume lock --all", "", as: RunFixture.root)
    try fixture.expect("cat $V/Private/x 2>&1 | grep -c key", "1\n")
    // Nobody else has those files decrypted as well.
    try fixture.refuse("volume add $C/Private --encrypted --at Mine", "it overlaps with", as: RunFixture.root)
    try fixture.refuse("volume add $C/Private --encrypted --at Mine", "it is not yours", as: other.account)
  }

  /// Programs that are stopped take their time to be ended; by then others' keys are gone.
  @Test(arguments: [false, true]) func stoppedProgramsKeepNoOthersKeys(rootless: Bool) throws {
    let fixture = try EncryptedFixture(rootless: rootless)
    try fixture.expect("for n in 1 2 3; do create S$n; echo x >$V/S$n/x; done; ls $V", "S1\nS2\nS3\n")
    let stopped = try fixture.programs()
    try #require(stopped.count == 3)
    // Another user's, where there can be one.
    let other = rootless ? nil : try TemporaryAccount()
    try fixture.expect("create Last; echo x >$V/Last/x; cat $V/Last/x", "x\n", as: other?.account)
    let last = try #require(try fixture.programs().first { !stopped.contains($0) })
    for program in stopped { try #require(kill(program, SIGSTOP) == 0) }
    defer { for program in stopped where kill(program, 0) == 0 { _ = kill(program, SIGCONT) } }
    // The first of them is there still when the last one's is gone.
    try fixture.expect(
      """
      volume lock --all --force >$C/locked 2>&1 & locks=$!
      until ! kill -0 \(last) 2>/dev/null || [ $((w+=1)) -gt 2400 ]; do sleep 0.02; done
      kill -0 \(stopped.min() ?? 0) 2>/dev/null && echo there
      wait $locks && echo locked; rm $C/locked
      """, "there\nlocked\n", as: rootless ? nil : RunFixture.root)
    #expect(try fixture.programs() == [])
  }

  /// Whoever may read all of a process finds no password there.
  @Test(arguments: [false, true])
  func thePasswordIsNowhere(rootless: Bool) throws {
    let fixture = try EncryptedFixture(rootless: rootless)
    let mounted = fixture.run.mounted
    try fixture.expect(
      """
      create Private; volume lock Private; echo wrong | volume unlock Private 2>&1 | grep -c 'is wrong'
      unlock Private; echo x >$V/Private/x
      """, "1\n")
    let program = try #require(try fixture.programs().first)
    let search = """
      import os, re, sys
      word = sys.argv[1].encode()
      for pid in sys.argv[2:]:
          for name in ("cmdline", "environ"):
              if word in open(f"/proc/{pid}/{name}", "rb").read(): print(pid, name)
          if pid == sys.argv[2]: continue
          with open(f"/proc/{pid}/mem", "rb", 0) as memory:
              for line in open(f"/proc/{pid}/maps"):
                  found = re.match(r"(\\w+)-(\\w+) r", line)
                  first, last = (int(part, 16) for part in found.groups()) if found else (0, 0)
                  try: memory.seek(first); found = word in memory.read(min(last - first, 1 << 26))
                  except (OSError, ValueError, OverflowError): continue
                  if found: print(pid, line)
      """
    let daemons = [try mounted.daemon(), try mounted.keeper()].compactMap { $0 }.map(String.init)
    let found = try Program.run(
      ["python3", "-c", search, EncryptedFixture.password, "\(program)"] + daemons)
    #expect(found.status == 0 && found.output == "", "\(found)")
    let limits = FD.text(of: "/proc/\(program)/limits", limit: 1 << 14) ?? ""
    #expect(limits.split(separator: "\n").contains { $0.hasPrefix("Max core file size        1  ") })
    #expect(limits.split(separator: "\n").contains { $0.hasPrefix("Max data size             2147483648 ") })
    let logged = try mounted.run("log", "--store", mounted.store, "--json")
    #expect(logged.output.includes("volume-unlocked") && !logged.output.includes("battery"), "\(logged)")
    let kept = try Program.run(["grep", "-rlF", EncryptedFixture.password, mounted.store, fixture.directory])
    #expect(kept.output == "", "\(kept)")
  }

  /// gocryptfs gets the directory that was added, whatever is at its path by now.
  @Test func anotherDirectoryIsNotIt() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect("create Private; create Decoy; echo x >$V/Private/x; echo y >$V/Decoy/y", "")
    // Exchanged while it is unlocked, it goes on with its own.
    try fixture.expect(
      """
      mv $C/Private $C/away; mv $C/Decoy $C/Private; cat $V/Private/x; echo z >$V/Private/z; volume lock --all
      find $C/away -type f | wc -l
      """, "x\n4\n")
    try fixture.refuse("unlock Private", "is another directory than the one that was added")
    try fixture.refuse("mv $C/Private $C/Decoy; ln -s away $C/Private; unlock Private", "can't be opened")
    try fixture.refuse("cat $V/Private/x", "Required key not available")
    try fixture.expect(
      "rm $C/Private; mv $C/away $C/Private; unlock Private; cat $V/Private/z; unlock Decoy", "z\n")
    // Nor is it somebody else's, or behind a door that was closed.
    let other = try TemporaryAccount()
    try fixture.expect("volume lock --all; chown \(other.account.uid) $C/Private", "", as: RunFixture.root)
    try fixture.refuse("unlock Private", "it is not yours")
  }

  @Test func hostileFilesCostNobodyAnything() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect(
      """
      create Private; echo x >$V/Private/x; volume lock Private; cd $C/Private; chmod 600 gocryptfs.conf
      cp gocryptfs.conf ../good
      """, "")
    for (change, words) in [
      ("sed -i 's/65536/1099511627776/' gocryptfs.conf", "asks for more than 1 GiB"),
      ("sed -i 's/\"P\": 1/\"P\": 1000000/' gocryptfs.conf", "asks for more than 1 GiB"),
      ("sed -i 's/65536/-1/' gocryptfs.conf", "asks for more than 1 GiB"),
      ("sed -i 's/65536/9223372036854775807/' gocryptfs.conf", "asks for more than 1 GiB"),
      ("echo '{' >gocryptfs.conf", "is damaged"), (": >gocryptfs.conf", "is damaged"),
      ("head -c 1000000 /dev/zero >gocryptfs.conf", "is damaged"),
      ("rm gocryptfs.conf", "it has no gocryptfs.conf"),
      ("rm gocryptfs.conf; mkfifo gocryptfs.conf", "can't be read"),
      ("rm gocryptfs.conf; ln -s ../good gocryptfs.conf", "can't be read"),
      (
        "sed -i 's/\"EncryptedKey\": \"..../\"EncryptedKey\": \"AAAA/' gocryptfs.conf",
        "the password is wrong"
      ),
      ("sed -i 's/\"Version\": 2/\"Version\": 9/' gocryptfs.conf", "Unsupported on-disk format"),
      ("chmod 0 gocryptfs.conf", "its gocryptfs.conf can't be used"),
    ] {
      let script =
        "cd $C/Private; \(change); echo \"$W\" | timeout 60 \"$INSULA\" volume unlock Private --store $POINT"
      try fixture.refuse(script, words)
      try fixture.expect("cd $C/Private; rm -f gocryptfs.conf; cp ../good gocryptfs.conf", "")
    }
    #expect(try eventually { try fixture.programs() == [] })
    // What is no ciphertext is not shown, and all else is.
    try fixture.expect(
      """
      cd $C/Private; touch plain '..x' "$(printf 'bad\\377')"; ln -s nowhere link; mkdir d; mkfifo f
      name=$(ls | grep -E '^.{20,}$'); printf garbage >"$name.x"
      unlock Private; timeout 20 ls $V/Private; timeout 20 cat $V/Private/x; printf x >>"$name"
      timeout 20 cat $V/Private/x 2>&1 | grep -c 'Input/output error'; ls $POINT/Volumes
      """, "x\nx\n1\nPrivate\n")
  }

  /// Whatever comes as a password, others are served meanwhile, and it has an end.
  @Test func whatIsNoPasswordEnds() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect("create Private; volume lock Private", "")
    let script = """
      import array, os, socket, sys, subprocess
      os.setgroups([]); os.setgid(int(sys.argv[3])); os.setuid(int(sys.argv[2]))
      def ask(descriptor, between=None):
          made = socket.socket(socket.AF_UNIX); made.connect(sys.argv[1]); file = made.makefile("r")
          made.sendall(b'{"verb":"pass"}\\n'); file.readline()
          rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
          made.sendmsg([b"\\n"], rights if descriptor >= 0 else []); file.readline()
          made.sendall(b'{"verb":"volume","volume":{"deed":"unlock","name":"Private"}}\\n')
          if between: between()
          answer = file.readline()
          print("no password" if "no password has come" in answer else "empty" if "empty" in answer else
                "wrong" if "wrong" in answer else answer)
      ask(-1); ask(os.open("/dev/zero", os.O_RDONLY)); ask(os.open("/", os.O_RDONLY))
      pair = socket.socketpair(); ask(pair[0].fileno()); os.mkfifo(sys.argv[4] + "/fifo")
      ask(os.open(sys.argv[4] + "/fifo", os.O_RDWR))
      read, write = os.pipe()
      def others():
          done = subprocess.run(["cat", sys.argv[5]], timeout=20, capture_output=True)
          print(done.stdout.decode().strip()); os.close(write)
      ask(read, others)
      read, write = os.pipe(); os.set_blocking(write, False); os.write(write, b"x" * 65536)
      ask(read, lambda: os.close(write))
      """
    try fixture.expect("echo here >$POINT/Users/Shared/f", "")
    let user = fixture.run.user
    let asked = try Program.run(
      [
        "timeout", "100", "python3", "-c", script, try fixture.run.mounted.socket(), "\(user.uid)",
        "\(user.gid)", fixture.directory, fixture.run.mounted.path("Users/Shared/f"),
      ])
    let lines = asked.output.split(separator: "\n").filter { !$0.isEmpty }
    #expect(
      lines.prefix(7).joined(separator: ",")
        == "no password,no password,no password,no password,no password,here,empty", "\(asked)")
    #expect(lines.count == 8, "\(asked)")
    try fixture.expect("unlock Private; ls $V", "Private\n")
  }

  /// Many who try at once, and opens while it is locked.
  @Test func stormsLeaveItWhole() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect(
      "create Private; for i in $(seq 40); do echo $i >$V/Private/$i; done; volume lock Private", "")
    try fixture.expect(
      """
      for i in $(seq 8)
      do (echo guess$i | volume unlock Private 2>&1 | grep -c wrong >$C/guess$i) & done; wait
      cat $C/guess* | sort | uniq -c | sed 's/^ *//'; ls $V; unlock Private; cat $V/Private/7
      """, "8 1\n7\n")
    #expect(try fixture.programs().count == 1)
    try fixture.expect(
      """
      touch $C/go; for p in 1 2; do (while [ -e $C/go ] && [ $((w+=1)) -lt 9999 ]; do for i in $(seq 40); do
        case $(cat $V/Private/$i 2>&1) in $i | *'key not available' | *'Input/output error') ;;
          *'not connected'* | *'Stale file'*) ;;
          *) touch $C/bad ;; esac; done; done) & done
      for round in 1 2 3 4 5 6; do
        until volume lock Private 2>/dev/null || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
        unlock Private; volume lock Private --force 2>/dev/null; unlock Private; done
      rm $C/go; wait; ls $C/bad 2>/dev/null; cat $V/Private/40; volume lock Private
      """, "40\n")
    #expect(try fixture.programs() == [])
  }

  @Test func badInputIsSaid() throws {
    let fixture = try EncryptedFixture()
    // Nobody else can exchange a file there, which could be a disk.
    #expect(chmod(fixture.directory, 0o1777) == 0)
    try fixture.expect(
      "create Private; mkdir $C/full; touch $C/full/x $C/file; printf '%s\\n' \"$W\" >$C/pass", "")
    for (line, words) in [
      ("echo a | volume create Private --encrypted --in $C/new", "there is a volume Private already"),
      ("echo a | volume create X --encrypted --in $C/full", "is not empty; '--in' names another"),
      ("echo a | volume create X --encrypted --in $C/file", "can't use"),
      ("echo a | volume create X --encrypted --in /proc/x", "can't use"),
      ("volume create X --encrypted --in $C/new </dev/null", "there is no terminal to ask for it"),
      ("echo | volume create X --encrypted --in $C/new", "there is no terminal to ask for it"),
      (
        "volume create X --encrypted --in $C/new --password-file $C/file",
        "the first line of \(fixture.directory)/file"
      ),
      ("volume create X --encrypted --in $C/new --password-file $C/none", "can't open"),
      (
        "head -c 5000 /dev/zero | tr '\\0' a | volume create X --encrypted --in $C/new",
        "longer than 2000 bytes"
      ),
      ("volume add $C/full --encrypted", "it has no gocryptfs.conf"),
      ("volume add $C/file --encrypted", "Not a directory"),
      ("volume add $C/Private --encrypted", "it overlaps with the volume Private"),
      ("mkdir $C/plain; volume add $C/plain >/dev/null; volume lock plain", "is not encrypted"),
      ("echo a | volume unlock plain", "is not encrypted"), ("echo a | volume unlock None", "no volume None"),
      ("volume lock None", "no volume None"),
      ("volume lock Private; echo wrong | volume unlock Private", "is wrong"),
      (
        """
        mkdir $C/own; echo a | volume create Deep --encrypted --in $C/own/Deep --wait; volume add $C/own
        """, "it overlaps with the volume Deep"
      ),
      ("volume lock Deep --no-wait; volume add $C/own; volume lock Deep --wait", "nobody can wait for Deep"),
    ] {
      try fixture.refuse(line, words)
    }
    try fixture.refuse(
      """
      export C; unshare -m sh -c 'mount --bind /dev/null /usr/bin/gocryptfs
        echo a | "$INSULA" volume create X --encrypted --in $C/new --store "$POINT"'
      """, "apt-get install gocryptfs", as: RunFixture.root)
    // Nothing is left of what came to nothing, and whatever was said is true.
    try fixture.expect(
      "ls -d $C/new 2>/dev/null; echo $(volume list | cut -d ' ' -f 1 | sort)",
      "Deep NAME Private own plain\n")
    let warned = try fixture.shell("chmod 644 $C/pass; volume unlock Private --password-file $C/pass; ls $V")
    #expect(warned.status == 0 && warned.errors.includes("other users may read"), "\(warned)")
    let quiet = try fixture.shell(
      "volume lock Private; chmod 600 $C/pass; volume unlock Private --password-file $C/pass")
    #expect(quiet.status == 0 && !quiet.errors.includes("other users may read"), "\(quiet)")
  }

  /// A full disk is said, and what is there stays.
  @Test func aFullDiskIsSaid() throws {
    let disk = try SmallDisk(bytes: 256 << 10, files: 64)
    chmod(disk.path, 0o777)
    let fixture = try EncryptedFixture(directory: disk.path)
    try fixture.expect(
      """
      create Private; echo x >$V/Private/x
      head -c 1000000 /dev/urandom 2>/dev/null | cat 2>/dev/null >$V/Private/big || echo full
      cat $V/Private/x; volume lock Private; unlock Private; cat $V/Private/x
      rm $V/Private/big; head -c 300000 /dev/zero 2>/dev/null | cat >$C/fill; rm -f $C/pad
      """, "full\nx\nx\n")
    try fixture.refuse(
      "echo a | volume create More --encrypted --in $C/More", "no space left on device")
    try fixture.expect("ls $C; cat $V/Private/x", "Private\nfill\nx\n")
  }

  /// What is typed is not shown, and two different passwords are none.
  @Test func passwordsAreTypedUnseen() throws {
    let fixture = try EncryptedFixture()
    let talk = Checkout.path("Tests/Fixtures/talk-at-a-terminal.py")
    let create = "$INSULA volume create Typed --encrypted --store $POINT --in \(fixture.directory)/typed"
    let result = try fixture.shell(
      """
      ask='password of the volume Typed: '; unlock='$INSULA volume unlock Typed --store $POINT'
      python3 '\(talk)' '\(create)' "new $ask" one 'once more: ' two 'two different passwords' '' '> ' \
        '\(create)' "new $ask" topsecret '^[^a-z]*the same once more: ' topsecret 'Volumes/Typed' '' '> ' \
        '$INSULA volume lock Typed --store $POINT' 'locked Typed' '' '> ' "$unlock" "$ask" '^C' \
        'no password was given' '' '> ' "$unlock" "$ask" topsecret 'Volumes/Typed'
      """)
    #expect(result.status == 0, "\(result)")
    try fixture.expect("ls $V", "Typed\n")
  }
}
