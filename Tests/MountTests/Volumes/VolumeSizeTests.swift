// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What is tried against the size of an encrypted volume, by its own user:
//
//  1. One large write, many small ones, appends, writes through a map, copies within the daemon,
//     reserved room.
//  2. Files with holes that are filled later, many empty files and directories, attributes.
//  3. The process that serves is killed, or the volume locked, so that what was counted is forgotten.
//  4. Somebody writes on and on at the limit, which makes the daemon measure.

/// Encrypted volumes that may only take so much.
@Suite(
  .enabled(if: EncryptedFixture.isPossible, "mounting needs root and /dev/fuse, or gocryptfs is missing"),
  .timeLimit(.minutes(5)))
struct VolumeSizeTests {
  /// `fill FILE` writes until there is no room; `fits MIB` whether the encrypted files take no more.
  ///
  /// What their disk keeps to find their blocks does not count.
  private static let helpers = """
    D=$V/Private
    fill() {
      head -c 8M /dev/urandom 2>/dev/null | cat >"$1" 2>/dev/null
      dd if=/dev/zero of="$1" bs=4k count=999 oflag=append conv=notrunc status=none 2>$C/why
      grep -c 'No space left' $C/why
    }
    fits() { test $(du -s --block-size=1K $C/Private | cut -f 1) -le $(($1 * 1024 + 64)) && echo fits; }
    size() { df --output=$1 -k $D | tail -1 | tr -d ' '; }

    """

  @Test(arguments: [false, true])
  func nothingTakesMore(rootless: Bool) throws {
    let fixture = try EncryptedFixture(rootless: rootless)
    func expect(_ script: String, _ output: String, location: SourceLocation = #_sourceLocation) throws {
      try fixture.expect(Self.helpers + script, output, location: location)
    }
    try expect(
      """
      create Private --size 4M; volume info Private | grep -c 'size .*4 MiB'; size size
      fill $D/f; fits 4; test $(size avail) -lt 100 && echo full
      rm $D/f; head -c 3M /dev/zero >$D/g && stat -c %s $D/g; test $(size avail) -gt 500 && echo room
      """, "1\n4096\n1\nfits\nfull\n3145728\nroom\n")
    // What a file has it may be given again, when nothing else is left.
    try expect(
      """
      fill $D/f; dd if=/dev/urandom of=$D/g bs=64k count=48 conv=notrunc,fsync status=none && echo rewritten
      cp $D/g $D/copy 2>&1 | grep -c 'No space left'; rm -f $D/copy
      fallocate -l 1M $D/r 2>&1 | grep -c 'No space'
      mkdir $D/d-1 $D/d-2 $D/d-3 $D/d-4 2>&1 | grep -q 'No space' && echo full
      (head -c 40000 /dev/zero >$D/new) 2>/dev/null || echo none
      (head -c 50000 /dev/zero >>$D/f) 2>&1 | grep -c 'No space'
      for a in 1 2 3 4; do setfattr -n user.$a -v "$(printf %0500d 1)" $D/f; done 2>&1 |
        grep -q 'No space' && echo full
      fits 4; rm -rf $D/f $D/r $D/new $D/d-*; ls $D
      """, "1\nrewritten\n1\n1\nfull\nnone\n1\nfull\nfits\ng\n")
    // Holes that are filled, by a map too.
    let fillHoles = """
      import mmap, os, sys
      file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
      os.ftruncate(file, 16 << 20)
      try:
          for at in range(0, 16 << 20, 65536): os.pwrite(file, os.urandom(65536), at)
          print("filled")
      except OSError as error: print(error.strerror)
      os.ftruncate(file, 0); os.ftruncate(file, 16 << 20)
      shared = mmap.mmap(file, 16 << 20)
      shared[:] = b"x" * (16 << 20)
      try: shared.flush(); os.fsync(file); print("filled")
      except OSError as error: print(error.strerror)
      """
    try expect(
      "cat >$C/holes.py <<'END'\n\(fillHoles)\nEND\n"
        + """
        python3 $C/holes.py $D/h; fits 4; rm $D/h
        fill $D/z; (while : >$D/e$((i += 1)); do :; done) 2>/dev/null
        (while mkdir $D/d$((i += 1)); do :; done) 2>/dev/null
        fits 4; rm -rf $D/*; echo y >$D/y && cat $D/y
        """, "No space left on device\nNo space left on device\nfits\n1\nfits\ny\n")
  }

  /// What was counted is not forgotten with the process that has counted.
  @Test func itOutlivesWorkersAndLocks() throws {
    let fixture = try EncryptedFixture()
    func expect(_ script: String, _ output: String, location: SourceLocation = #_sourceLocation) throws {
      try fixture.expect(Self.helpers + script, output, location: location)
    }
    try expect("create Private --size 2M; fill $D/f; fits 2", "1\nfits\n")
    let worker = try #require(try fixture.run.mounted.daemon())
    #expect(kill(worker, SIGKILL) == 0)
    try expect(
      "fill $D/g; fits 2; volume lock Private; unlock Private; fill $D/h; fits 2", "1\nfits\n1\nfits\n")
    // Another size takes another `add`.
    try expect(
      """
      volume eject Private; volume add $C/Private --encrypted --size 6M --quiet >/dev/null; unlock Private
      fill $D/h; fits 6; test -s $D/h && volume list --json | grep -c '"size" : 6291456'
      volume eject Private; volume add $C/Private --encrypted --quiet >/dev/null; unlock Private
      head -c 8M /dev/zero >$D/big && fits 13 || echo more; volume info Private | grep size
      true
      """, "1\nfits\n1\nmore\n")
  }

  /// Whoever writes at the limit of a volume with many files has it measured on and on.
  @Test func measuringLeavesTimeToOthers() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect(
      Self.helpers + """
        create Private --size 8M; (cd $C/Private; seq 20000 | xargs touch); fill $D/f
        echo here >$POINT/Users/Shared/f
        """, "1\n")
    let worker = try #require(try fixture.run.mounted.daemon())
    let before = try #require(ProcessorTime.of(worker))
    let began = monotonicNanoseconds()
    try fixture.expect(
      Self.helpers + """
        for w in 1 2 3 4; do (while [ ! -e $C/stop ]; do head -c 1M /dev/zero >>$D/f; done) 2>/dev/null & done
        sleep 2; for i in $(seq 50); do timeout 20 cat $POINT/Users/Shared/f; done | uniq -c | sed 's/^ *//'
        touch $C/stop; wait; fits 9
        """, "50 here\nfits\n")
    let after = try #require(ProcessorTime.of(worker))
    let share = (after - before) / (Double(monotonicNanoseconds() &- began) / 1e9)
    #expect(share < 0.6, "the worker has used \(share) of a processor")
  }
}

/// What a process has used of processors.
private enum ProcessorTime {
  /// In seconds.
  static func of(_ process: Int32) -> Double? {
    guard let text = FD.text(of: "/proc/\(process)/stat", limit: 4096),
      let end = text.lastIndex(of: ")")
    else { return nil }
    let fields = text[end...].split(separator: " ").compactMap { Double($0) }
    // The letter of its state is none.
    guard fields.count > 11 else { return nil }
    return (fields[10] + fields[11]) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
