// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Grants on a server that does not answer: they can be taken back, and hold up nobody else.
@Suite(
  .enabled(
    if: MountedStore.isPossible && access("/usr/bin/sshfs", X_OK) == 0
      && access("/usr/sbin/sshd", X_OK) == 0, "mounting needs root and /dev/fuse, or sshfs is missing"),
  .mayTake(seconds: 300))
struct HangingGrantTests {
  private let served: ServerVolumeTests.Served
  private let home: String

  init() throws {
    served = try ServerVolumeTests.Served()
    home = served.run.mounted.path("Users/\(served.run.user.name)")
  }

  /// An app that reads a granted file on the server when it stops.
  private func beginReading() throws -> Int32 {
    try served.expect(
      """
      volume add \(served.url) >/dev/null; head -c 9000000 /dev/zero >$S/big; echo local >\(home)/local
      insula grant $APP $D/big \(home)/local >/dev/null
      (run sh -c "cd \\$HOME/Documents; exec 3<$D/big; read -r x <\(home)/local; : >ready
        until [ -e go ] || [ \\$((w+=1)) -gt 6000 ]; do sleep 0.02; done
        cat <&3 >/dev/null 2>late; : >done; sleep 100" >$S/log 2>&1 &)
      R="$DATA/Documents/ready"; for n in $(seq 500); do [ -e "$R" ] && break; sleep 0.02; done; ls $R | wc -l
      """, "1\n")
    let program = try served.program()
    kill(program, SIGSTOP)
    try served.expect(": >\"$DATA/Documents/go\"; sleep 0.5", "")
    return program
  }

  /// Each of these takes at most some seconds, and others none.
  @Test(arguments: ["revoke $APP $D/big", "revoke $APP \(Self.local)", "volume eject --force served"])
  func takingBackHoldsUpNobodyElse(what: String) throws {
    let program = try beginReading()
    defer { kill(program, SIGCONT) }
    let deed = what.replacing(Self.local, with: "\(home)/local")
    try served.expect(
      """
      (timeout 20 "$INSULA" \(deed) --store "$POINT" >/dev/null 2>&1; echo $? >$S/ended) &
      sleep 0.3
      timeout 10 "$INSULA" grants --store "$POINT" >/dev/null && echo listed; wait; cat $S/ended
      """, "listed\n0\n")
    try served.expect(Self.othersGrant, "granted\n", as: RunFixture.root)
    // What it was reading, it does not get any more.
    kill(program, SIGCONT)
    guard !what.includes(Self.local) else { return }
    try served.expect(
      """
      for n in $(seq 500); do [ -e "$DATA/Documents/done" ] && break; sleep 0.02; done
      grep -o -e permitted -e 'Input/output' -e 'not connected' -e Stale "$DATA/Documents/late" | wc -l
      cat "$DATA/Documents/late" >&2
      """, "1\n")
  }

  private static let local = "LOCAL"
  private static let come = """
    come() { for n in $(seq 3000); do [ -e "$1" ] && break; sleep 0.02; done; ls "$1" | wc -l; }
    """
  private static let othersGrant = """
    mkdir -p $POINT/Users/Shared/mine
    timeout 10 "$INSULA" grant $APP $POINT/Users/Shared/mine --store "$POINT" >/dev/null && echo granted

    """

  /// Somebody asks for a grant on a server of theirs that does not answer.
  @Test func askingForOneHoldsUpNobodyElse() throws {
    try served.expect(
      """
      volume add \(served.url) >/dev/null; mkdir $D/d; echo x >$D/d/f
      for f in local second; do echo $f >\(home)/$f; insula grant $APP \(home)/$f >/dev/null; done
      """, "")
    let program = try served.program()
    kill(program, SIGSTOP)
    defer { kill(program, SIGCONT) }
    let line = """
      {"verb":"grant","grant":{"action":"grant","identifier":"\(RunFixture.identifier)",\
      "path":"Volumes/served/d/new"}}
      """
    // Root takes something back of the same user's.
    let revocation = """
      {"verb":"grant","grant":{"action":"revoke","identifier":"\(RunFixture.identifier)",\
      "path":"Users/\(served.run.user.name)/local","user":\(served.run.user.uid)}}
      """
    let socket = try served.run.mounted.socket()
    try served.expect(
      """
      timeout 30 /usr/bin/python3 -c 'import socket, sys
      s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode() + b"\\n")
      s.recv(1)' \(socket) '\(line)' & echo $! >$S/asking; sleep 1; echo asked
      """, "asked\n")
    try served.expect(
      Self.othersGrant + """
        timeout 10 "$INSULA" volume list --store "$POINT" >/dev/null && echo listed
        timeout 10 /usr/bin/python3 -c 'import socket, sys
        s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode() + b"\\n")
        s.recv(1); print("answered")' \(socket) '\(revocation)'
        timeout 10 "$INSULA" grants --store "$POINT" | grep -c local || true
        """, "granted\nlisted\nanswered\n0\n", as: RunFixture.root)
    // And so does the user, who then does not wait any more for what was to be granted.
    try served.expect(
      """
      timeout 10 "$INSULA" revoke $APP \(home)/second --store "$POINT" >/dev/null; echo $?
      mkdir -p $S/d/new; kill $(cat $S/asking); sleep 1
      """, "0\n")
    kill(program, SIGCONT)
    try served.expect(
      """
      ls $D/d/new; sleep 1; timeout 10 "$INSULA" grants --store "$POINT" | grep -c d/new || true
      """, "0\n")
  }

  /// An app that has stored something through a map of a granted file, before the server stopped.
  ///
  /// It is stored while the program is stopped, so that nobody can have written it yet.
  private func beginMapping() throws -> Int32 {
    try served.expect(
      """
      volume add \(served.url) >/dev/null; head -c 65536 /dev/zero >$S/mapped; chmod 666 $S/mapped
      insula grant $APP $D/mapped >/dev/null
      cat >$S/map.py <<'END'
      import mmap, os, sys, time
      place = os.environ["HOME"] + "/Documents/"
      file = os.open(sys.argv[1], os.O_RDWR); memory = mmap.mmap(file, 65536); memory[0]
      memory[0] = 65; memory.flush(); open(place + "ready", "w").close()
      while not os.path.exists(place + "go"): time.sleep(.02)
      memory[0:3] = b"NEW"; open(place + "stored", "w").close()
      time.sleep(100)
      END
      (run /usr/bin/python3 -c "$(cat $S/map.py)" $D/mapped >$S/log 2>&1 &)
      R="$DATA/Documents/ready"; for n in $(seq 500); do [ -e "$R" ] && break; sleep 0.02; done; ls $R | wc -l
      """, "1\n")
    let program = try served.program()
    kill(program, SIGSTOP)
    try served.expect(
      """
      : >"$DATA/Documents/go"; S="$DATA/Documents/stored"
      for n in $(seq 500); do [ -e "$S" ] && break; sleep 0.02; done; ls $S | wc -l
      """, "1\n")
    return program
  }

  /// What the kernel has to write back there holds up nobody, and is not lost.
  @Test(arguments: ["revoke $APP $D/mapped", "volume eject --force served"])
  func whatIsToBeWrittenHoldsUpNobodyElse(what: String) throws {
    let program = try beginMapping()
    defer { kill(program, SIGCONT) }
    try served.expect("timeout 20 \"$INSULA\" \(what) --store \"$POINT\" >/dev/null 2>&1; echo $?", "0\n")
    try served.expect(Self.othersGrant, "granted\n", as: RunFixture.root)
    kill(program, SIGCONT)
    guard what.hasPrefix("revoke") else { return }
    try served.expect(
      """
      for n in $(seq 500); do grep -aq NEW $S/mapped && break; sleep 0.02; done
      head -c 3 $S/mapped; run sh -c "cat $D/mapped" 2>&1 | grep -c -i -e 'no such' -e permi
      """, "NEW1\n")
  }

  /// What is taken back on another volume meanwhile is lost at once, whatever hangs; and no number of
  /// revocations makes more threads wait.
  @Test func whatHangsKeepsNothingElseWritable() throws {
    try served.expect(
      """
      volume add \(served.url) >/dev/null; mkdir -m 777 $S/hung $S/other
      for f in hung/1 hung/2 hung/3 hung/4 hung/5 hung/6 hung/7 hung/8 other/b; do
        head -c 65536 /dev/zero >$S/$f; chmod 666 $S/$f; done
      insula grant $APP $D/hung >/dev/null
      """, "")
    let hung = try served.program()
    try served.expect(
      """
      volume add \(served.url)/other --at other >/dev/null; insula grant $APP $V/other/b >/dev/null
      cat >$S/map.py <<'END'
      import mmap, os, sys, time
      place = os.environ["HOME"] + "/Documents/"
      def mapped(path):
        memory = mmap.mmap(os.open(path, os.O_RDWR), 65536); memory[0] = 65; memory.flush(); return memory
      def until(word):
        while not os.path.exists(place + word): time.sleep(.02)
      # Of what hangs it has nothing open, whose end would wait for that.
      child = os.fork()
      if child == 0:
        other = mapped(sys.argv[2]); open(place + "child", "w").close(); until("two")
        try: other[0:3] = b"BAD"; other.flush()
        except OSError: os._exit(5)
        os._exit(0)
      hung = [mapped(sys.argv[1] + "/hung/%d" % n) for n in range(1, 9)]
      until("child"); open(place + "one-ready", "w").close(); until("one")
      for memory in hung: memory[0:3] = b"NEW"
      open(place + "two-ready", "w").close()
      isLost = os.waitpid(child, 0)[1] != 0
      print(isLost, file=open(place + "new", "w"), flush=True); os.rename(place + "new", place + "lost")
      time.sleep(100)
      END
      (run /usr/bin/python3 -c "$(cat $S/map.py)" $D $V/other/b >$S/log 2>&1 &)
      \(Self.come)
      come "$DATA/Documents/one-ready"
      """, "1\n")
    kill(hung, SIGSTOP)
    defer { kill(hung, SIGCONT) }
    let worker = try #require(try served.run.mounted.daemon())
    try served.expect(
      """
      \(Self.come)
      : >"$DATA/Documents/one"; come "$DATA/Documents/two-ready"
      timeout 20 "$INSULA" revoke $APP $D/hung --store "$POINT" >/dev/null; echo $?
      timeout 20 "$INSULA" revoke $APP $V/other/b --store "$POINT" >/dev/null; echo $?
      : >"$DATA/Documents/two"; come "$DATA/Documents/lost"
      cat "$DATA/Documents/lost"; head -c 3 $S/other/b | tr '\\0' 0; echo
      for n in 1 2 3; do "$INSULA" grant $APP \(home)/Documents --store "$POINT" >/dev/null
        timeout 20 "$INSULA" revoke $APP \(home)/Documents --store "$POINT" >/dev/null; done
      """, "1\n0\n0\n1\nTrue\nA00\n")
    let threads = try Program.run(["sh", "-c", "cat /proc/\(worker)/task/*/comm | grep -c revoked"])
    #expect(threads.output == "1\n")
    kill(hung, SIGCONT)
    // What was stored before it was taken back is not lost.
    try served.expect(
      """
      all() { cat $S/hung/* | grep -ao NEW | wc -l; }
      for n in $(seq 500); do [ $(all) = 8 ] && break; sleep 0.02; done; all
      """, "8\n")
  }

  /// An app ends while its kernel waits to forget what was taken back: what the app knew can be changed.
  @Test func whoEndsMeanwhileHoldsUpNobodyElse() throws {
    try served.expect(
      """
      volume add \(served.url) >/dev/null; head -c 9000000 /dev/zero >$S/big
      insula grant $APP $D/big >/dev/null
      cat >$S/ask.py <<'END'
      import os, sys, time
      place = os.environ["HOME"] + "/Documents/"
      file = os.open(sys.argv[1], os.O_RDONLY); os.mkdir(place + "known")
      open(place + "known/a", "w").close()
      open(place + "ready", "w").close()
      while not os.path.exists(place + "go"): time.sleep(.02)
      os.posix_fadvise(file, 0, 4 << 20, os.POSIX_FADV_WILLNEED); open(place + "asked", "w").close()
      while not os.path.exists(place + "end"): time.sleep(.02)
      os._exit(0)
      END
      (run /usr/bin/python3 -c "$(cat $S/ask.py)" $D/big >$S/log 2>&1 &)
      \(Self.come)
      come "$DATA/Documents/ready"
      """, "1\n")
    let program = try served.program()
    let worker = try #require(try served.run.mounted.daemon())
    kill(program, SIGSTOP)
    defer { kill(program, SIGCONT) }
    try served.expect(
      """
      \(Self.come)
      : >"$DATA/Documents/go"; come "$DATA/Documents/asked"
      timeout 20 "$INSULA" revoke $APP $D/big --store "$POINT" >/dev/null; echo $?
      cat /proc/\(worker)/task/*/comm | grep -c revoked
      : >"$DATA/Documents/end"; sleep 2
      cat /proc/\(worker)/task/*/comm | grep -c revoked
      for n in 1 2 3; do
        timeout 10 mv "$DATA/Documents/known/a" "$DATA/Documents/known/b"; echo $?
        timeout 10 mv "$DATA/Documents/known/b" "$DATA/Documents/known/a"; echo $?
      done
      timeout 10 rm -r "$DATA/Documents/known"; echo $?
      """, "1\n0\n1\n0\n0\n0\n0\n0\n0\n0\n0\n")
    try served.expect(Self.othersGrant, "granted\n", as: RunFixture.root)
  }

  /// A worker whose threads wait for what only the next one can answer.
  @Test(arguments: [false, true]) func aKilledWorkerIsReplaced(restarts: Bool) throws {
    let program = try beginMapping()
    defer { kill(program, SIGCONT) }
    try served.expect(
      "timeout 20 \"$INSULA\" revoke $APP $D/mapped --store \"$POINT\" >/dev/null; echo $?", "0\n")
    let mounted = served.run.mounted
    let worker = try #require(try mounted.daemon())
    if restarts {
      try served.expect(
        """
        (sleep 4; kill -CONT \(program)) & timeout 30 "$INSULA" restart "$POINT" >/dev/null; echo $?; wait
        """, "0\n", as: RunFixture.root)
      // Another program does not begin beside the worker that waits: first it ends.
      let log = try String(contentsOfFile: mounted.store + "/state/daemon.log", encoding: .utf8)
      #expect(log.contains("the installed program takes over when"))
      #expect(try mounted.count("restarts") == 2)
    } else {
      kill(worker, SIGKILL)
    }
    try served.expect("timeout 20 ls $POINT/Users/Shared >/dev/null; echo $?", "0\n", as: RunFixture.root)
    try served.expect(Self.othersGrant, "granted\n", as: RunFixture.root)
    #expect(try mounted.daemon() != worker)
  }

  /// Another program takes over, whatever is open on a server that does not answer.
  @Test func anUpgradeWaitsForNoServer() throws {
    try served.expect("volume add \(served.url) >/dev/null; echo x >$D/f", "")
    try served.expect(
      """
      (exec 3<>$D/f; echo y >&3; : >$S/open; sleep 60) >/dev/null 2>&1 &
      for n in $(seq 500); do [ -e $S/open ] && break; sleep .02; done; ls $S/open | wc -l
      """, "1\n")
    let program = try served.program()
    kill(program, SIGSTOP)
    defer { kill(program, SIGCONT) }
    let before = try served.run.mounted.daemon()
    try served.expect(
      """
      timeout 15 "$INSULA" restart "$POINT" >/dev/null; echo $?
      timeout 10 ls $POINT/Users/Shared >/dev/null; echo $?; timeout 10 ps -eo args >/dev/null; echo $?
      """, "0\n0\n0\n", as: RunFixture.root)
    #expect(try served.run.mounted.daemon() != before)
  }
}
