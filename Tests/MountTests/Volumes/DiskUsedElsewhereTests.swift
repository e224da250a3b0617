// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport
internal import Testing

/// Disks that the machine, another store or a loop device has already: two who change one destroy it.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct DiskUsedElsewhereTests {
  private typealias Disks = DiskVolumeTests.Disks

  /// What a script has of the machine's goes with it; `refuse` has something wait in vain.
  private static let helpers = """
    end() {
      for mount in m-*; do umount $mount; done; for loop in $LOOPS; do losetup -d $loop; done
    } 2>/dev/null
    trap end EXIT
    loop() { losetup "$@" --find --show; }
    mounted() { place=$1; mkdir $place; shift; mount "$@" $place; }
    other() { (POINT=$OTHER; volume "$@"); }
    refuse() {
      ("$@" 2>&1 | grep -q 'in use already' && echo refused || echo "NOT REFUSED: $*") >>told &
      WAIT="$WAIT $!"
    }
    told() { wait $WAIT; sort told | uniq -c | tr -s ' '; }

    """

  @Test func whatTheMachineHasIsRefused() throws {
    let disks = try Disks()
    for name in ["a", "b", "c", "d", "e", "f"] {
      try disks.make(name + ".img", "mkfs.ext4 -qF", megabytes: 16)
    }
    try disks.expect("volume add e.img >/dev/null", "")
    try disks.expect(
      Self.helpers + """
        mounted m-a -o loop a.img
        refuse volume add a.img; refuse volume add --engine program a.img
        volume add b.img >/dev/null; ln b.img hard.img; b=$(loop hard.img); c=$(loop c.img)
        ln e.img user.img; e=$(loop user.img); LOOPS="$b $c $e"
        refuse volume add $b; refuse volume add --engine program $b
        mounted m-c $c
        refuse volume add c.img; refuse volume add --engine program c.img
        # The user's program has the file itself.
        refuse volume add $e
        mkfifo hold; exec 7<>hold; flock --no-fork f.img cat hold & holder=$!
        while flock -n f.img true && [ $((w+=1)) -lt 6000 ]; do sleep 0.01; done
        volume add f.img 2>&1 | grep -c "in use already: pid $holder has locked it"
        # The user's own is there for the user alone.
        told; kill $holder; ls $V
        # Two who only read are welcome.
        mounted m-d -o loop,ro d.img; volume add --read-only d.img >/dev/null; ls $V/d
        """, "1\n 7 refused\nb\nlost+found\n", as: RunFixture.root)
  }

  /// The kernel has one device twice as one filesystem, and programs each for itself.
  @Test(arguments: [("mkfs.ntfs -qF", "ntfs-3g"), ("mkfs.exfat", "mount.exfat-fuse")])
  func programsHaveABlockDeviceAlone(format: String, program: String) throws {
    guard DiskVolumeTests.has(program) else {
      Issue.record("SKIPPED: \(program) is not installed, so it serves no disk here")
      return
    }
    let (disks, others) = (try Disks(), try Disks())
    try disks.make("x.img", format)
    try disks.make("k.img", "mkfs.ext4 -qF", megabytes: 32)
    let other = others.run.mounted.point
    try disks.expect(
      Self.helpers + """
        OTHER='\(other)'; x=$(loop x.img); k=$(loop k.img); LOOPS="$x $k"; chmod 1777 .
        volume add --engine program $x --at x >/dev/null; echo one >$V/x/f
        mknod node b 7 ${x#/dev/loop}; refuse volume add --engine program node --at y
        refuse other add --engine program $x --at x
        volume add $k --at k >/dev/null; chmod 777 $V/k; echo two >$V/k/f
        other add $k --at k >/dev/null; cat '\(other)/Volumes/k/f'
        told
        # It is free again, and read by as many as like to.
        volume eject x; other add --engine program $x --at x >/dev/null
        cat '\(other)/Volumes/x/f'; other eject x
        volume add --read-only --engine program $x --at x >/dev/null
        other add --read-only --engine program $x --at x >/dev/null
        cat $V/x/f '\(other)/Volumes/x/f'
        volume eject x; volume eject k; for name in x k; do other eject $name; done
        """, "two\n 2 refused\none\none\none\n", as: RunFixture.root)
  }

  /// Parts of one image are disks of their own.
  @Test func partsOfAnImageAreDisks() throws {
    let (disks, others) = (try Disks(), try Disks())
    try disks.make("p.img", "mkfs.ext4 -qF", megabytes: 16)
    let other = others.run.mounted.point
    try disks.expect(
      Self.helpers + """
        OTHER='\(other)'; cat p.img p.img >both.img; half=$((16 << 20))
        p=$(loop --sizelimit $half both.img); q=$(loop --offset $half both.img); LOOPS="$p $q"
        volume add $p --at p >/dev/null; other add $q --at q >/dev/null
        touch $V/p/one; ls $V/p; ls '\(other)/Volumes/q'
        other eject q; volume add $q --at q >/dev/null; ls $V/q; volume eject q
        refuse other add both.img; told; volume eject p
        """, "lost+found\none\nlost+found\nlost+found\n 1 refused\n", as: RunFixture.root)
  }

  /// A loop device can be made of a loop device.
  @Test func whatIsMadeOfADiskIsThatDisk() throws {
    guard DiskVolumeTests.has("mount.exfat-fuse"), DiskVolumeTests.has("mkfs.exfat") else {
      Issue.record("SKIPPED: exfat-fuse or exfatprogs is not installed")
      return
    }
    let disks = try Disks()
    for name in ["x", "y", "z"] { try disks.make(name + ".img", "mkfs.exfat") }
    try disks.expect(
      Self.helpers + """
        program() { volume add --engine program "$@"; }
        program x.img --at x >/dev/null; x0=$(loop x.img); x1=$(loop $x0)
        y0=$(loop y.img); y1=$(loop $y0); y2=$(loop $y1); program $y2 --at y >/dev/null
        z0=$(loop z.img); program $z0 --at z >/dev/null; z1=$(loop $z0)
        mknod node b 7 ${y1#/dev/loop}; n=$(loop node); LOOPS="$n $x1 $x0 $y2 $y1 $y0 $z1 $z0"
        refuse program $x1 --at a; refuse program $y1 --at b; refuse program $y0 --at c
        refuse program y.img --at d; refuse program $z1 --at e; refuse program $n --at f
        told; ls $V; for name in x y z; do volume eject $name; done
        """, " 6 refused\nx\ny\nz\n", as: RunFixture.root)
  }

  /// The tree could not be unmounted as long as a program of its own has a file of it open.
  @Test(arguments: [false, true]) func imagesInTheTreeAreRefused(rootless: Bool) throws {
    let disks = try Disks(rootless: rootless)
    try disks.make("a.img", "mkfs.ext4 -qF", megabytes: 16)
    try disks.expect(
      """
      cp a.img $POINT/Users/Shared/i.img
      volume add $POINT/Users/Shared/i.img 2>&1 | grep -c 'move it out of'; volume list
      """, "1\nThere are no volumes.\n")
  }
}
