// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What the kernel keeps of volumes that programs serve, and what it must not.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 300))
struct KeptOnVolumeTests {
  private static let formats = [
    ("mkfs.ntfs -q -F", "ntfs-3g"), ("mkfs.ext4 -qF -O ^has_journal", "fuse2fs"),
    ("mkfs.exfat", "mount.exfat-fuse"),
  ]

  private struct Disk: VolumeFixture {
    let run: RunFixture
    let directory: String

    init(_ format: String) throws {
      run = try RunFixture(
        entitlements: "<key>com.apple.security.files.user-selected.read-write</key><true/>")
      try run.mounted.temporary.makeDirectory("images", mode: 0o1777)
      directory = run.mounted.temporary.appending("images")
      let owner = format.includes("ext4") ? "-E root_owner=\(run.user.uid):\(run.user.gid)" : ""
      let made = try Program.run(
        ["sh", "-c", "cd $0; truncate -s 32M d.img; \(format) \(owner) d.img && chmod 666 d.img", directory],
        environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
      try #require(made.status == 0, "\(made.errors)")
      try expect("volume add --engine program d.img >/dev/null", "")
    }

    /// `pages FILE` says how many pages of it the kernel has when it is opened.
    func shell(_ script: String, as account: Account?) throws -> ProgramResult {
      try run.shell(
        """
        volume() { verb=$1; shift; timeout 100 "$INSULA" volume "$verb" --store "$POINT" "$@"; }
        pages() { fincore -n -o PAGES "$1" | tr -d ' '; }
        put() { printf "$2" | dd of="$1" conv=notrunc status=none; }
        V="$POINT/Volumes"; D=$V/d; cd '\(directory)' || exit 90
        \(script)
        """, as: account)
    }
  }

  private static func isThere(_ program: String) -> Bool {
    let isThere = ["/usr/bin/", "/usr/sbin/", "/bin/"].contains { access($0 + program, X_OK) == 0 }
    if !isThere { Issue.record("SKIPPED: \(program) is not installed, so it serves no disk here") }
    return isThere
  }

  /// The pages of a file stay until it is changed, through whatever view.
  @Test(arguments: formats)
  func pagesStayUntilAFileChanges(format: String, program: String) throws {
    guard Self.isThere(program) else { return }
    let disk = try Disk(format)
    // The times of the others are rough.
    let moment = program.includes("ntfs") ? "0.3" : "4.2"
    try disk.expect(
      """
      mkdir $D/s; printf one >$D/s/f; sleep \(moment); cat $D/s/f; cat $D/s/f; pages $D/s/f
      for i in $(seq 100 130); do put $D/s/f $i; [ $(cat $D/s/f) = $i ] || echo stale $i; done
      insula grant $APP $D/s >/dev/null
      run sh -c "for i in \\$(seq 200 220); do printf \\$i | dd of=$D/s/f conv=notrunc status=none
        cat $D/s/f; done" | tail -c 3
      cat $D/s/f; put $D/s/f new; run cat $D/s/f; cat $D/s/f
      """, "oneone1\n220220newnew")
  }

  /// A name that was missing, and a listing, are seen anew as soon as anybody changes them.
  @Test(arguments: formats)
  func namesComeAtOnce(format: String, program: String) throws {
    guard Self.isThere(program) else { return }
    let disk = try Disk(format)
    let spelled = program.includes("exfat") ? "SPELLING" : "spelling"
    try disk.expect(
      """
      mkdir $D/s; ls $D/s $D/s; cat $D/s/a $D/s/b $D/s/c $D/s/spelling 2>/dev/null; echo a >$D/s/a; cat $D/s/a
      ls $D/s; cat $D/s/b 2>/dev/null; mv $D/s/a $D/s/b; cat $D/s/b; ls $D/s; ls $D/s
      insula grant $APP $D/s >/dev/null
      run sh -c "cat $D/s/c $D/s/d 2>/dev/null; echo c >$D/s/c; rm $D/s/b"; cat $D/s/c; ls $D/s
      cat $D/s/d 2>/dev/null; echo d >$D/s/d; run sh -c "cat $D/s/d; ls $D/s"
      echo s >$D/s/\(spelled); cat $D/s/spelling
      """,
      "\(disk.run.mounted.path("Volumes/d/s")):\n\n\(disk.run.mounted.path("Volumes/d/s")):\n"
        + "a\na\na\nb\nb\nc\nc\nd\nc\nd\ns\n")
  }

  /// To exfat-fuse each spelling of a directory's name is a directory, and no times tell of a rename in it.
  @Test func eachSpellingOfADirectoryListsTheSame() throws {
    guard Self.isThere("mount.exfat-fuse") else { return }
    let disk = try Disk("mkfs.exfat")
    try disk.expect(
      """
      both() { echo $(ls $D/s) + $(ls $D/S) + $(run ls $D/s); }
      mkdir $D/s; insula grant $APP $D/s >/dev/null; echo a >$D/s/a; both; both; mv $D/S/a $D/S/b; both
      echo c >$D/s/c; both; run rm $D/s/b; both; mkdir $D/S/d; rm $D/S/c; both; rmdir $D/s/d; both
      """,
      """
      a + a + a
      a + a + a
      b + b + b
      b c + b c + b c
      c + c + c
      d + d + d
      + +

      """)
  }

  /// Another disk in the place of one that was ejected, alike in all but what is in its files.
  @Test(arguments: formats)
  func nothingStaysOfADiskThatWasEjected(format: String, program: String) throws {
    guard Self.isThere(program) else { return }
    let disk = try Disk(format)
    try disk.expect(
      """
      yes before | head -c 40000 >$D/f; sleep 0.3; for i in 1 2 3; do cat $D/f >/dev/null; done
      for i in 1 2 3; do
        volume eject d; until flock -n d.img true || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
        python3 -c 'text = open("d.img", "rb").read()
      words = [b"before", b"AFTER!"] if b"before" in text else [b"AFTER!", b"before"]
      open("d.img", "r+b").write(text.replace(*words))'
        volume add --engine program d.img >/dev/null; head -c 6 $D/f; cat $D/f >/dev/null; cat $D/f >/dev/null
      done
      """, "AFTER!beforeAFTER!")
  }

  /// What is done to a file by another of its names, or through another program with its files.
  @Test func namesOfOneFileHaveOneContent() throws {
    guard Self.isThere("ntfs-3g") else { return }
    let disk = try Disk("mkfs.ntfs -q -F")
    try disk.expect(
      """
      printf one >$D/f; sleep 0.3; cat $D/f; cat $D/f; pages $D/f; ln $D/f $D/g
      cat $D/f $D/g; put $D/f two; cat $D/f; stat -c '%h %s' $D/f $D/g; rm $D/g; cat $D/f
      """, "oneone1\noneonetwo2 3\n2 3\ntwo")
  }

  /// Encrypted files can be changed by whoever has the password.
  @Test(.enabled(if: EncryptedFixture.isPossible, "gocryptfs is not installed"))
  func othersChangeEncryptedFiles() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect(
      "create P; printf one >$V/P/f; sleep 0.3; cat $V/P/f; cat $V/P/f", "oneone", as: RunFixture.root)
    try fixture.expect(
      """
      echo "$W" >$C/w; fincore -n -o PAGES $V/P/f | tr -d ' '
      unshare -m sh -c 'mount -t tmpfs none /mnt; mkdir /mnt/p
        gocryptfs -q -nosyslog -passfile $1/w $1/P /mnt/p
        for i in $(seq 100 120); do
          printf $i | dd of=/mnt/p/f conv=notrunc status=none; [ $(cat $0/f) = $i ] || echo stale $i
        done; umount /mnt/p' $V/P $C
      cat $V/P/f
      """, "1\n120", as: RunFixture.root)
  }

  /// What programs have closed is kept, also if the disk is ejected by force the moment after.
  @Test(arguments: formats) func whatIsClosedOutlivesAnEject(format: String, program: String) throws {
    guard Self.isThere(program) else { return }
    let disk = try Disk(format)
    try disk.expect(
      """
      P=$(cat <<'END'
      import os, sys
      for n in range(80):
        file = os.open("%s/%d" % (sys.argv[1], n % 8), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(file, b"%4d" % (n + 100 * int(sys.argv[2])) * 1024); os.close(file)
      END
      )
      for n in 1 2 3 4 5 6; do
        /usr/bin/python3 -c "$P" $V/d $n; volume eject --force d >/dev/null
        volume add --engine program d.img >/dev/null
        for f in 0 1 2 3 4 5 6 7; do head -c 4 $V/d/$f; done; echo
      done
      """,
      (1...6).map { n in (72..<80).map { " \(100 * n + $0)" }.joined() + "\n" }.joined())
  }
}
