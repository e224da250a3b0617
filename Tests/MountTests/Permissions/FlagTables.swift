// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension ShellTable {
  /// Each flag against each operation, by the owner and by root.
  static let flags =
    ["uchg", "schg"].flatMap { [immutableFile($0), immutableDirectory($0)] }
    + ["uappnd", "sappnd"].flatMap { [appendOnlyFile($0), appendOnlyDirectory($0)] }
    + [otherFlags, flagsAreSetBy, flagsByChattr, flagsAndACLs]

  private static func immutableFile(_ flag: String) -> ShellTable {
    ShellTable(
      "a file that is \(flag)",
      """
      owner: cp /bin/true f; mkdir d; setfattr -n user.note -v one f; insula acl +a "everyone allow delete" f
      root: insula flags \(flag) f
      all: insula flags f -> "\(flag)"
      owner,root: cat f -> ok
      owner,root: ./f -> ok
      owner,root: getfattr --only-values -n user.note f -> "one"
      owner,root: stat f -> ok
      owner,root: echo new > f -> EPERM
      owner,root: echo more >> f -> EPERM
      owner,root: truncate -s 0 f -> EPERM
      owner,root: chmod 600 f -> EPERM
      owner: chgrp $(id -g) f -> EPERM
      root: chown $member f -> EPERM
      owner,root: touch -c f -> EPERM
      owner,root: touch -c -d '2001-01-01 UTC' f -> EPERM
      owner,root: setfattr -n user.note -v two f -> EPERM
      owner,root: setfattr -x user.note f -> EPERM
      owner,root: insula acl +a "everyone allow read" f -> EPERM
      owner,root: insula acl -N f -> EPERM
      owner,root: rm -f f -> EPERM
      owner,root: mv f g -> EPERM
      owner,root: mv f d/f -> EPERM
      owner,root: ln f g -> EPERM
      owner,root: touch other; mv -f other f -> EPERM
      # Its owner can't be told from a stranger in this.
      stranger: rm -f f -> EPERM
      root: insula flags no\(flag) f
      owner: echo new > f && rm -f f -> ok
      """)
  }

  private static func immutableDirectory(_ flag: String) -> ShellTable {
    ShellTable(
      "a directory that is \(flag)",
      """
      owner: mkdir -p d/s; echo text > d/f; insula acl +a "everyone allow delete" d/f; touch other
      root: insula flags \(flag) d
      owner,root: ls d -> "f\\ns"
      owner,root: cat d/f -> "text"
      # What is in the files is another matter, and so is what is in the directories below.
      owner,root: echo text > d/f -> ok
      owner,root: touch d/s/new-$(id -u) -> ok
      owner,root: touch d/g -> EPERM
      owner,root: mkdir d/t -> EPERM
      owner,root: mkfifo d/p -> EPERM
      owner,root: ln -s f d/l -> EPERM
      owner,root: ln other d/l -> EPERM
      owner,root: mv other d/other -> EPERM
      owner,root: rm -f d/f -> EPERM
      owner,root: mv d/f d/g -> EPERM
      owner,root: mv d/f g -> EPERM
      owner,root: rmdir d/s -> EPERM
      owner,root: chmod 700 d -> EPERM
      owner,root: touch -c d -> EPERM
      owner,root: setfattr -n user.note -v two d -> EPERM
      owner,root: mv d e -> EPERM
      owner,root: rmdir d -> EPERM
      root: insula flags no\(flag) d
      owner: touch d/g && rm -rf d -> ok
      """)
  }

  private static func appendOnlyFile(_ flag: String) -> ShellTable {
    ShellTable(
      "a file that is \(flag)",
      """
      owner: echo text > f; mkdir d
      root: insula flags \(flag) f
      owner,root: cat f -> ok
      owner,root: echo more >> f -> ok
      owner,root: setfattr -n user.note -v two f -> ok
      owner,root: echo new > f -> EPERM
      owner,root: dd if=/dev/zero of=f bs=1 count=1 conv=notrunc -> EPERM
      owner,root: truncate -s 0 f -> EPERM
      owner,root: chmod 600 f -> EPERM
      root: chown $member f -> EPERM
      owner,root: touch -c -d '2001-01-01 UTC' f -> EPERM
      owner,root: insula acl +a "everyone allow read" f -> EPERM
      owner,root: rm -f f -> EPERM
      owner,root: mv f d/f -> EPERM
      owner,root: ln f g -> EPERM
      owner: cat f -> "text\\nmore\\nmore"
      root: insula flags no\(flag) f
      owner: echo new > f && rm -f f -> ok
      """)
  }

  private static func appendOnlyDirectory(_ flag: String) -> ShellTable {
    ShellTable(
      "a directory that is \(flag)",
      """
      owner: mkdir -p d/s; echo text > d/f; insula acl +a "everyone allow delete" d/f
      root: insula flags \(flag) d
      owner,root: ls d -> ok
      owner,root: touch d/new-$(id -u) -> ok
      owner,root: mkdir d/new-$(id -u).d -> ok
      owner,root: touch other-$(id -u); mv other-$(id -u) d/ -> ok
      owner,root: ln -s f d/l-$(id -u) -> ok
      owner,root: setfattr -n user.note -v two d -> ok
      owner,root: rm -f d/f -> EPERM
      owner,root: mv d/f d/g -> EPERM
      owner,root: mv d/f g -> EPERM
      owner,root: rmdir d/s -> EPERM
      owner,root: touch x; mv -f x d/f -> EPERM
      owner,root: chmod 700 d -> EPERM
      owner,root: mv d e -> EPERM
      owner,root: rm -rf d -> EPERM
      owner: test -e d/f -> ok
      root: insula flags no\(flag) d
      owner,root: rm -rf d/*-$(id -u)* -> ok
      """)
  }

  private static let otherFlags = ShellTable(
    "other flags",
    """
    owner: touch f; mkdir d; touch d/f
    root: insula flags sunlnk f; insula flags sunlnk d
    owner,root: echo new > f -> ok
    owner,root: chmod 644 f -> ok
    owner,root: rm -f f -> EPERM
    owner,root: mv f g -> EPERM
    owner,root: touch x; mv -f x f -> EPERM
    owner,root: mv d e -> EPERM
    owner,root: rm -f d/f; rmdir d -> EPERM
    root: insula flags nosunlnk f; insula flags nosunlnk d
    owner: rmdir d && rm f -> ok
    owner: touch f; insula flags hidden,nodump,opaque f
    root: insula flags arch f
    all: insula flags f -> "arch,nodump,opaque,hidden"
    all: ls -> "f\\nx"
    owner,root: echo new > f && chmod 600 f && mv f g && ln g h && rm h && mv g f -> ok
    owner: insula flags f -> "arch,nodump,opaque,hidden"
    """)

  private static let flagsAreSetBy = ShellTable(
    "who sets flags",
    """
    owner: touch f; chmod 666 f
    primary,member,stranger: insula flags uchg f -> EPERM
    primary,member,stranger: insula flags hidden f -> EPERM
    owner: insula flags schg f -> EPERM
    owner: insula flags sappnd f -> EPERM
    owner: insula flags arch f -> EPERM
    owner: insula flags sunlnk f -> EPERM
    owner,root: insula flags uchg f && insula flags nouchg f -> ok
    owner,root: insula flags uappnd,hidden f && insula flags nouappnd,nohidden f -> ok
    root: insula flags schg f
    # What is root's stays, also where the owner changes their own.
    owner: insula flags noschg f -> EPERM
    owner: insula flags uchg f && insula flags hidden f -> ok
    owner: insula flags f -> "schg,uchg,hidden"
    owner: insula flags nouchg,nohidden f -> ok
    root: insula flags noschg f -> ok
    owner: insula flags f -> "-"
    owner: insula flags restricted f -> exit usage
    owner: setfattr -n system.insula.flags -v restricted f -> EINVAL
    owner: setfattr -n system.insula.flags -v uchg,nonsense f -> EINVAL
    owner: insula flags f -> "-"
    owner: mkdir d; ln -s f l; insula flags --no-follow uchg l; insula flags uchg d
    owner,root: rm -f l -> EPERM
    owner,root: rmdir d -> EPERM
    owner: insula flags --no-follow nouchg l && insula flags nouchg d && rm l && rmdir d -> ok
    """)

  private static let flagsByChattr = ShellTable(
    "flags by chattr",
    """
    owner: echo text > f; chmod 666 f
    root: chattr +i f -> ok
    all: insula flags f -> "schg"
    all: lsattr f | cut -c1-16 | tr -d - | grep -c i -> "1"
    owner,root: rm -f f -> EPERM
    root: chattr -i +a f -> ok
    owner: insula flags f -> "sappnd"
    owner,root: echo more >> f -> ok
    owner,root: echo new > f -> EPERM
    owner: chattr -a f -> EPERM
    root: chattr -a +d f -> ok
    owner: insula flags f -> "nodump"
    owner: chattr -d f -> ok
    owner: insula flags f -> "-"
    stranger: chattr +d f -> EPERM
    owner: insula flags uchg f
    owner: lsattr f | cut -c1-16 | tr -d - | grep -c i -> "1"
    owner: chattr -i f -> EPERM
    root: chattr -i f -> ok
    owner: insula flags f -> "-"
    """)

  private static let flagsAndACLs = ShellTable(
    "flags and lists",
    """
    owner: touch f; insula acl +a "user:$stranger allow writesecurity" f
    stranger: insula flags uchg f -> ok
    owner: rm -f f -> EPERM
    stranger: insula flags schg f -> EPERM
    stranger: insula flags nouchg f -> ok
    # A flag comes before the list, and is not got round by it.
    owner: insula acl +a "everyone deny write" f; insula flags uchg f
    stranger: echo new > f -> EPERM
    owner: insula flags nouchg f
    owner: echo new > f -> EACCES
    """)
}
