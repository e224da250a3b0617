// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Disks, and files that are images of disks, as volumes.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct DiskVolumeTests {
  struct Disks: VolumeFixture {
    let run: RunFixture
    /// Where the images are, which are the user's.
    let directory: String

    init(rootless: Bool = false) throws {
      run = try RunFixture(rootless: rootless)
      try run.mounted.temporary.makeDirectory("images", mode: 0o1777)
      directory = run.mounted.temporary.appending("images")
    }

    /// Makes an image with a filesystem by a program that is called with it.
    func make(_ name: String, _ words: String, megabytes: Int = 64) throws {
      let made = try Program.run(
        [
          "sh", "-c",
          """
          cd "$0" && truncate -s \(megabytes)M \(name) && \(words) \(name) >/dev/null &&
            chown $1:$2 \(name)
          """,
          directory, "\(run.user.uid)", "\(run.user.gid)",
        ], environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
      try #require(made.status == 0, "\(made.errors)")
    }

    func shell(_ script: String, as account: Account?) throws -> ProgramResult {
      try run.shell(
        """
        volume() { verb=$1; shift; timeout 100 "$INSULA" volume "$verb" --store "$POINT" "$@"; }
        V="$POINT/Volumes"; cd '\(directory)' || exit 90
        \(script)
        """, as: account)
    }
  }

  static func has(_ program: String) -> Bool {
    ["/usr/bin/", "/usr/sbin/", "/sbin/", "/bin/"].contains { access($0 + program, X_OK) == 0 }
  }

  private static let use = """
    echo one >$D/a; mkdir $D/d; mv $D/a $D/d/b; cat $D/d/b; ln -s d $D/l 2>/dev/null; echo two >>$D/d/b
    cat $D/d/b; truncate -s 2 $D/d/b; stat -c %s $D/d/b; printf 123 | dd of=$D/d/b conv=notrunc 2>/dev/null
    cat $D/d/b; echo; cp /bin/true $D/t; cmp $D/t /bin/true && rm -r $D/d $D/l $D/t 2>/dev/null
    ls $D | grep -v lost; true
    """
  private static let used = "one\none\ntwo\n2\n123\n"

  /// Root's kernel mounts them for the daemon alone, and they are free again when they are ejected.
  @Test(arguments: [("mkfs.ext4 -qF", 64), ("mkfs.xfs -q", 320), ("mkfs.btrfs -q", 128)])
  func theKernelServesDisksOfRoot(format: String, megabytes: Int) throws {
    try #require(Self.has(String(format.prefix { $0 != " " })), "\(format) is not installed")
    let disks = try Disks()
    try disks.make("disk.img", format, megabytes: megabytes)
    try disks.expect(
      """
      volume add disk.img >/dev/null; D=$V/disk; chmod 777 $D; \(Self.use)
      grep -c \(disks.directory) /proc/self/mounts
      volume add disk.img 2>&1 | grep -c 'overlaps with the volume disk'
      loop=$(losetup -f --show disk.img); volume add $loop 2>&1 | grep -c 'overlaps with the volume disk'
      losetup -d $loop; cp disk.img again.img; flock -n disk.img true || echo locked
      volume list | grep -c 'disk  *everyone  *read-write'
      """, Self.used + "0\n1\n1\nlocked\n1\n", as: RunFixture.root)
    // ACLs and flags are kept there.
    try disks.expect(
      """
      D=$V/disk; echo x >$D/f; "$INSULA" acl +a 'everyone deny write' $D/f; "$INSULA" flags hidden $D/f
      (echo y >$D/f) 2>/dev/null || echo denied; "$INSULA" flags $D/f | grep -c hidden
      """, "denied\n1\n")
    // It is there at the next mount, and what was changed is on it.
    _ = try disks.run.mounted.unmount()
    try disks.run.mounted.mount()
    #expect(eventually { (try? disks.shell("cat $V/disk/f").output) == "x\n" })
    try disks.expect(
      """
      volume eject disk; ls $V
      until flock -n disk.img true || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done; mkdir m
      mount -o loop disk.img m
      cat m/f; umount m
      """, "x\n", as: RunFixture.root)
  }

  /// A disk is never mounted twice, whatever ends the process that has mounted it, and whoever still has a
  /// file of it open: two who change it would destroy it.
  @Test(arguments: [
    ("kernel", "mkfs.ext4 -qF", "e2fsck -fn"), ("program", "mkfs.ext4 -qF", "e2fsck -fn"),
    ("program", "mkfs.exfat", "fsck.exfat -n"),
  ])
  func nobodyMountsItTwice(engine: String, format: String, check: String) throws {
    let needed = ["fuse2fs", "mount.exfat-fuse"] + [format, check].map { String($0.prefix { $0 != " " }) }
    guard needed.allSatisfy(Self.has) else {
      Issue.record("SKIPPED: one of \(needed) is not installed")
      return
    }
    let disks = try Disks()
    try disks.make("disk.img", format)
    try disks.expect(
      """
      volume add --engine \(engine) disk.img >/dev/null 2>&1
      for number in $(seq 50); do echo x >$V/disk/$number; done
      """, "", as: RunFixture.root)
    let keeper = try #require(try disks.run.mounted.keeper())
    let helper = try #require(children(of: keeper).first { !children(of: $0).isEmpty })
    let serving = try #require(children(of: helper).last)
    #expect(kill(serving, SIGKILL) == 0)
    try disks.expect(
      """
      loops() { losetup -j disk.img | wc -l; }
      sleep 0.5; timeout 60 sh -c "until ls $V/disk/1 >/dev/null 2>&1; do sleep 0.1; done"
      loops; mkfifo let-go; exec 4<>let-go
      (exec 5>$V/disk/held; echo more >&5; head -n 1 let-go >/dev/null; echo more >&5) & HOLDER=$!
      until [ -s $V/disk/held ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      volume eject disk 2>&1 | grep -o 'is in use'; volume eject --force disk >/dev/null
      (sleep 1; loops; echo >&4) & volume add --engine \(engine) disk.img >/dev/null; wait $HOLDER
      loops; ls $V/disk | grep -c '^[0-9]'; volume eject disk
      until [ $(loops) = 0 ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
      \(check) disk.img >/dev/null 2>&1 && echo clean
      """, "1\nis in use\n1\n1\n50\nclean\n", as: RunFixture.root)
  }

  /// Who serves a file decides where its end is: what is open to append is open so there, until it is not any
  /// more.
  @Test func endOfAFileIsLeftToItsServer() throws {
    guard Self.has("fuse2fs"), Self.has("mkfs.ext4") else {
      Issue.record("SKIPPED: fuse2fs is not installed, so it serves no disk here")
      return
    }
    let disks = try Disks()
    try disks.make("disk.img", "mkfs.ext4 -qF")
    let worker = try #require(try disks.run.mounted.daemon())
    try disks.expect(
      """
      volume add --engine program disk.img >/dev/null
      for how in 'os.O_CREAT | os.O_WRONLY' os.O_WRONLY os.O_RDWR; do
        /usr/bin/python3 - $V/disk/file \(worker) "$how" <<'END'
      import fcntl, glob, os, sys
      def appends():
          found = [fd for fd in glob.glob(f"/proc/{sys.argv[2]}/fd/*") if os.path.exists(fd)
                   and os.readlink(fd).endswith("/file")]
          lines = [line for fd in found for line in open(fd.replace("/fd/", "/fdinfo/"))]
          return any(line.startswith("flags:") and int(line.split()[1], 8) & os.O_APPEND for line in lines)
      file = os.open(sys.argv[1], eval(sys.argv[3]) | os.O_APPEND)
      os.write(file, b"abc")
      told = appends()
      fcntl.fcntl(file, fcntl.F_SETFL, 0)
      os.pwrite(file, b"X", 0)
      fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
      os.write(file, b"d")
      print(told, open(sys.argv[1]).read())
      END
      done
      """, "True Xbcd\nTrue Xbcdabcd\nTrue Xbcdabcdabcd\n", as: RunFixture.root)
  }

  private func children(of process: Int32) -> [Int32] {
    let text = FD.text(of: "/proc/\(process)/task/\(process)/children", limit: 4096) ?? ""
    return text.split(separator: " ").compactMap { Int32($0) }.filter {
      ProcessID.field("State", of: "\($0)")?.hasPrefix("Z") == false
    }
  }

  /// Root's disk that this kernel does not know is refused, whoever has written it, and a way is named; then
  /// it can be added with a program, which is nobody's.
  @Test func whatTheKernelDoesNotKnowIsRefused() throws {
    let known = FD.text(of: "/proc/filesystems", limit: 1 << 16)?.split(whereSeparator: \.isWhitespace) ?? []
    guard Self.has("ntfs-3g"), Self.has("mkfs.ntfs"), !known.contains("ntfs") else {
      Issue.record("SKIPPED: ntfs-3g is not installed, or this kernel serves NTFS itself")
      return
    }
    let disks = try Disks()
    try disks.make("ntfs.img", "mkfs.ntfs -q -F")
    try disks.expect(
      """
      volume add ntfs.img 2>&1 >/dev/null | grep -c "choose that with '--engine program'"; volume list
      volume add ntfs.img --engine program >/dev/null && echo served; volume eject ntfs
      """, "1\nThere are no volumes.\nserved\n", as: RunFixture.root)
  }

  /// A program that is nobody's serves them, also for whoever is not root.
  @Test(arguments: [
    ("mkfs.ntfs -q -F", "ntfs-3g", "ntfs"), ("mkfs.exfat", "mount.exfat-fuse", "exfat"),
    ("mkfs.ext4 -qF -O ^has_journal", "fuse2fs", "ext4"),
  ])
  func programsServeDisks(format: String, program: String, name: String) throws {
    guard Self.has(program), Self.has(String(format.prefix { $0 != " " })) else {
      Issue.record("SKIPPED: \(program) is not installed, so it serves no disk here")
      return
    }
    for (isRootless, user) in [(false, RunFixture.root), (false, nil), (true, nil)] as [(Bool, Account?)] {
      let disks = try Disks(rootless: isRootless)
      let owner = user == nil ? " -E root_owner=\(disks.run.user.uid):\(disks.run.user.gid)" : ""
      try disks.make("\(name).img", format + (name == "ext4" ? owner : ""))
      try disks.expect(
        "volume add --engine program \(name).img >/dev/null; D=$V/\(name); \(Self.use)", Self.used, as: user)
      if user == nil, name != "ext4" {
        // All is the caller's, and stays so.
        try disks.expect(
          """
          touch $V/\(name)/q; stat -c %u $V/\(name)/q; chown 0 $V/\(name)/q 2>/dev/null || echo refused
          chown \(disks.run.user.uid) $V/\(name)/q && echo same
          volume info \(name) | grep -c 'owners *ignored'
          """, "\(disks.run.user.uid)\nrefused\nsame\n1\n")
      }
      let processes = try disks.shell(
        "ps -eo user,args | grep -c '^root .*[/]\(program) '; volume eject \(name) 2>/dev/null", as: user)
      #expect(processes.output == "0\n", "\(processes)")
      try disks.expect(
        "until flock -n \(name).img true || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done; ls $V", "")
    }
  }

  /// What is done to a file by one of its names is seen by the others at once, although ntfs-3g has an object
  /// for each name.
  @Test func namesOfOneFileAreAlikeOnNTFS() throws {
    guard Self.has("ntfs-3g"), Self.has("mkfs.ntfs") else {
      Issue.record("SKIPPED: ntfs-3g is not installed, so it serves no disk here")
      return
    }
    let disks = try Disks()
    try disks.make("ntfs.img", "mkfs.ntfs -q -F")
    try disks.expect(
      """
      volume add ntfs.img >/dev/null; cd $V/ntfs; echo one >f; stat -c '%h %s' f; ln f g; stat -c '%h %s' f g
      echo two >>f; stat -c '%h %s' g; cat g; rm f; stat -c '%h %s' g
      """, "1 4\n2 4\n2 4\n2 8\none\ntwo\n1 8\n")
  }

  /// A program that serves a disk judges nobody: it is not asked as whoever its last request was from.
  @Test func programsLeaveItToTheTreeWhoMay() throws {
    guard Self.has("fuse2fs") else {
      Issue.record("SKIPPED: fuse2fs is not installed, so it serves no disk here")
      return
    }
    let disks = try Disks()
    try disks.make("disk.img", "mkfs.ext4 -qF -O ^has_journal")
    let allowed = "everyone allow read,list,search,add_file,file_inherit,directory_inherit"
    try disks.expect(
      """
      volume add --engine program disk.img >/dev/null; cd $V/disk; chmod 777 .; echo told >r; chmod 600 r
      "$INSULA" acl +a 'everyone allow read' r
      """, "", as: RunFixture.root)
    // What is made with an ACL is made by its user, and then has that.
    try disks.expect(
      """
      cd $V/disk; mkdir s; "$INSULA" acl +a '\(allowed)' s; echo x >s/g; cat s/g; mkdir s/d; echo y >s/d/h
      stat -c '%a %u' s/g s/d; "$INSULA" acl s/g s/d/h | grep -c inherited
      for i in $(seq 30); do echo $i >m$i; stat -c %a r; cat r; done | sort | uniq -c | tr -s ' '
      """, "x\n644 \(disks.run.user.uid)\n755 \(disks.run.user.uid)\n2\n 30 600\n 30 told\n")
  }

  /// A disk that comes from somebody else brings no rights with it.
  @Test(arguments: ["kernel", "program"])
  func hostileDisksBringNothing(engine: String) throws {
    try #require(Self.has("debugfs"), "debugfs is not installed")
    let disks = try Disks()
    try disks.make("evil.img", "mkfs.ext4 -qF -O ^has_journal")
    let commands = try Program.run(
      [
        "sh", "-c",
        """
        cd "$0" && cp /bin/sh sh && debugfs -w -f - evil.img <<'END' >/dev/null 2>&1
        write sh suid
        set_inode_field suid mode 0104755
        mknod null c 1 3
        set_inode_field null mode 0020666
        mkdir dir
        symlink link /etc/shadow
        write sh a%b
        ln suid hard
        mkdir loop
        link loop loop/loop
        END
        tune2fs -e panic evil.img >/dev/null
        """, disks.directory,
      ], environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
    try #require(commands.status == 0, "\(commands)")
    try disks.expect("volume add --engine \(engine) evil.img >/dev/null", "", as: RunFixture.root)
    try disks.expect(
      """
      D=$V/evil; $D/suid -c 'id -u' ; stat -c %a $D/suid; (echo x >$D/null) 2>&1 | grep -c -i denied
      cat $D/link 2>&1 | grep -c -i denied; cat $D/../evil/link/x 2>&1 | grep -c .
      find $D -maxdepth 6 2>/dev/null | wc -l | awk '{print ($1 < 200)}'
      """, "\(disks.run.user.uid)\n755\n1\n1\n1\n1\n")
    try disks.expect("cat $V/evil/null >/dev/null 2>&1 || echo no device", "no device\n", as: RunFixture.root)
  }

  /// What is no disk, and what only root may have.
  @Test func whatIsNoDiskIsRefused() throws {
    let disks = try Disks()
    try disks.make("disk.img", "mkfs.ext4 -qF")
    let rows: [(String, String, Ending)] = [
      ("truncate -s 1M empty.img; volume add empty.img", "it has no filesystem that is known", .failed),
      ("mkfifo pipe.img; volume add pipe.img", "is neither a disk nor a file", .failed),
      ("volume add UUID=none", "there is no disk UUID=none", .failed),
      ("volume add UUID=../../etc", "there is no disk", .failed),
      ("volume add --ignore-owners .", "a directory has owners", .failed),
      (
        "cp disk.img secret.img; chmod 0 secret.img; chown 0 secret.img 2>/dev/null; volume add secret.img",
        "", .failed
      ),
      ("volume add sftp://-oProxyCommand=x/", "is no address of a server", .usage),
      ("volume add nfs://127.0.0.1/x", "only root can have volumes of nfs", .failed),
      ("volume add --engine kernel disk.img", "only root can have the kernel mount a disk", .notPermitted),
    ]
    for (script, words, ending) in rows {
      let result = try disks.shell(script)
      #expect(result.ending == ending && result.errors.includes(words), "\(script): \(result)")
    }
    try disks.expect("volume list", "There are no volumes.\n")
    // Where the kernel has no such filesystem, it says so.
    let nfs = try disks.shell("volume add nfs://127.0.0.1/x", as: RunFixture.root)
    #expect(nfs.ending == .failed && !nfs.errors.isEmpty, "\(nfs)")
  }

  /// A disk that is taken away is gone for those who use it, and for nobody else.
  @Test func aDiskThatIsPulledOutIsGoneForItsUsersOnly() throws {
    let disks = try Disks()
    try disks.make("disk.img", "mkfs.ext4 -qF")
    try disks.expect(
      """
      loop=$(losetup --find --show disk.img); volume add $loop --at disk >/dev/null; D=$V/disk
      echo kept >$D/f; sync -f $D/f; exec 3>>$D/f
      dd if=/dev/zero of=$D/big bs=1M count=8 2>/dev/null
      # The blocks go while the disk is in use.
      truncate -s 0 disk.img
      for n in $(seq 20); do
        # What is still in memory is not missed.
        echo 3 >/proc/sys/vm/drop_caches
        (dd if=/dev/zero of=$D/more$n bs=1M count=2 conv=fsync; mkdir $D/d$n; sync -f $D/d$n; ls -l $D) 2>&1 |
          grep -q 'Input/output error\\|needs cleaning\\|Read-only\\|Bad message' && echo gone && break
      done
      echo fine >$POINT/Users/Shared/fine; cat $POINT/Users/Shared/fine
      exec 3>&-; volume eject --force disk; ls $V; losetup -d $loop
      """, "gone\nfine\n", as: RunFixture.root)
    _ = try disks.run.mounted.unmount()
    let check = try disks.run.mounted.run(["check", disks.run.mounted.store])
    #expect(check.status == 0, "\(check)")
  }

  /// It is mounted when somebody looks for it, and not before.
  @Test func onDemandOnesWaitForTheFirstLook() throws {
    let disks = try Disks()
    try disks.make("disk.img", "mkfs.ext4 -qF")
    try disks.expect(
      "volume add --auto disk.img >/dev/null; echo x >$V/disk/f; volume list | grep -c read-write", "1\n",
      as: RunFixture.root)
    _ = try disks.run.mounted.unmount()
    try disks.run.mounted.mount()
    try disks.expect(
      "volume list | grep -c waiting; ls $V; cat $V/disk/f; ls $V; volume list | grep -c read-write",
      "1\nx\ndisk\n1\n")
    // Another disk in its place is not it.
    _ = try disks.run.mounted.unmount()
    try disks.make("disk.img", "mkfs.ext4 -qF")
    try disks.run.mounted.mount()
    try disks.expect(
      """
      cat $V/disk/f 2>&1 | grep -c such
      volume info disk | grep -c 'another disk than the one that was added'
      """, "1\n1\n")
  }

  /// An app has what was granted on one, and nothing else.
  @Test func appsHaveWhatWasGrantedOnADisk() throws {
    let disks = try Disks()
    try disks.run.install(
      "Reader", entitlements: "<key>com.apple.security.files.user-selected.read-write</key><true/>")
    try disks.make("disk.img", "mkfs.ext4 -qF")
    try disks.expect(
      """
      volume add disk.img >/dev/null; mkdir $V/disk/mine $V/disk/other; chmod 777 $V/disk $V/disk/*
      echo s >$V/disk/other/s
      """, "", as: RunFixture.root)
    try disks.expect(
      """
      id=$("$INSULA" apps --store "$POINT" --json | grep -o 'org.[a-z.]*reader' | head -1)
      insula grant $id $V/disk/mine >/dev/null
      within() { "$INSULA" run --store "$POINT" $id -- sh -c "$1"; }
      within "echo x >$V/disk/mine/f; cat $V/disk/mine/f; ls $V/disk; cat $V/disk/other/s 2>&1 | grep -c such"
      mv $V/disk/mine $V/disk/moved; within "cat $V/disk/moved/f; ls $V/disk"
      insula revoke $id $V/disk/moved >/dev/null; within "cat $V/disk/moved/f" 2>/dev/null || echo none
      """, "x\nmine\n1\nx\nmoved\nnone\n")
  }
}
