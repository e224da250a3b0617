// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension ShellTable {
  /// Each right to a file: what it lets one do where the mode does not, and what its denial forbids where the
  /// mode does not.
  static let rightsToFiles = [
    ShellTable(
      "read a file",
      """
      owner: echo text > f; chmod 600 f
      owner,root: cat f -> "text"
      primary,member,stranger: cat f -> EACCES
      owner: insula acl +a "user:$stranger allow read" f
      stranger: cat f -> "text"
      stranger: echo more >> f -> EACCES
      primary,member: cat f -> EACCES
      owner: insula acl -N f; insula acl +a "group:$team allow read" f
      primary,member: cat f -> "text"
      stranger: cat f -> EACCES
      owner: insula acl -N f; chmod 644 f; insula acl +a "user:$stranger deny read" f
      stranger: cat f -> EACCES
      primary,member,owner,root: cat f -> "text"
      owner: insula acl -N f; insula acl +a "group:$team deny read" f
      primary,member: cat f -> EACCES
      stranger,owner,root: cat f -> "text"
      owner: insula acl -N f; insula acl +a "everyone deny read" f
      users: cat f -> EACCES
      root: cat f -> "text"
      """),
    ShellTable(
      "write a file",
      """
      owner: echo text > f; chmod 644 f
      primary,member,stranger: dd if=/dev/null of=f conv=notrunc -> EACCES
      owner: insula acl +a "group:$team allow write" f
      primary,member: echo new > f -> ok
      primary,member: truncate -s 4 f -> ok
      stranger: echo new > f -> EACCES
      # To write is not to append only, nor to change anything else.
      member: echo more >> f -> EACCES
      member: chmod 600 f -> EPERM
      owner: insula acl -N f; chmod 666 f; insula acl +a "user:$stranger deny write" f
      stranger: echo new > f -> EACCES
      stranger: truncate -s 0 f -> EACCES
      stranger: echo more >> f -> ok
      primary,member,owner,root: echo new > f -> ok
      owner: insula acl -N f; insula acl +a "owner deny write" f
      owner: echo new > f -> EACCES
      stranger,root: echo new > f -> ok
      """),
    ShellTable(
      "append to a file",
      """
      owner: echo text > f; chmod 644 f; insula acl +a "user:$stranger allow append" f
      stranger: echo more >> f -> ok
      stranger: echo new > f -> EACCES
      stranger: dd if=/dev/zero of=f bs=1 count=1 conv=notrunc -> EACCES
      stranger: truncate -s 0 f -> EACCES
      owner: cat f -> "text\\nmore"
      owner: insula acl -N f; chmod 666 f; insula acl +a "everyone deny append" f
      users: echo more >> f -> EACCES
      root: echo more >> f -> ok
      stranger: echo new > f -> ok
      """),
    ShellTable(
      "execute a file",
      """
      owner: cp /bin/true f; chmod 600 f
      all: ./f -> EACCES
      owner: insula acl +a "group:$team allow execute" f
      # What nobody may run by mode, the kernel runs for nobody; root not either.
      all: ./f -> EACCES
      owner: chmod 700 f
      primary,member,root: ./f -> ok
      stranger: ./f -> EACCES
      member: cat f -> EACCES
      owner: insula acl -N f; chmod 755 f; insula acl +a "user:$stranger deny execute" f
      stranger: ./f -> EACCES
      stranger: cat f -> ok
      member,root: ./f -> ok
      """),
    ShellTable(
      "delete a file",
      """
      owner: mkdir d; touch d/f d/g; chmod 755 d; insula acl +a "user:$stranger allow delete" d/f
      primary,member: rm -f d/f -> EACCES
      stranger: rm -f d/g -> EACCES
      stranger: rm -f d/f -> ok
      owner: touch d/f; chmod 777 d; insula acl +a "user:$stranger deny delete" d/f
      stranger: rm -f d/f -> EACCES
      stranger: mv d/f d/h -> EACCES
      member: rm -f d/f -> ok
      """),
    ShellTable(
      "attributes of a file",
      """
      owner: echo text > f; chmod 644 f; touch -d '2001-01-01 UTC' f; \
      insula acl +a "user:$stranger deny readattr" f
      stranger: stat f -> EACCES
      stranger: ls -l f -> EACCES
      # cat would look at the attributes first.
      stranger: read word < f; echo $word -> "text"
      primary,member,owner,root: stat -c %Y f -> "978307200"
      # A permission adds nothing: everyone has it.
      owner: insula acl -N f; insula acl +a "user:$stranger allow readattr" f; chmod 600 f
      users: stat -c %Y f -> "978307200"
      owner: chmod 644 f
      primary,member,stranger: touch -c f -> EACCES
      owner: insula acl +a "group:$team allow writeattr" f
      primary,member: touch -c f -> ok
      stranger: touch -c f -> EACCES
      # A time of one's choice is the owner's to set, whatever a list says.
      primary,member: touch -c -d '2001-01-01 UTC' f -> EPERM
      owner,root: touch -c -d '2001-01-01 UTC' f -> ok
      owner: insula acl -N f; chmod 666 f; insula acl +a "everyone deny writeattr" f
      users: touch -c f -> EACCES
      owner: touch -c -d '2001-01-01 UTC' f -> EPERM
      root: touch -c f -> ok
      """),
    ShellTable(
      "extended attributes of a file",
      """
      owner: echo text > f; chmod 600 f; setfattr -n user.note -v one f
      primary,member,stranger: getfattr --only-values -n user.note f -> EACCES
      primary,member,stranger: setfattr -n user.note -v two f -> EACCES
      owner: insula acl +a "user:$member allow readextattr" f; \
      insula acl +a "user:$stranger allow writeextattr" f
      member: getfattr --only-values -n user.note f -> "one"
      member: setfattr -n user.note -v two f -> EACCES
      stranger: getfattr --only-values -n user.note f -> EACCES
      stranger: setfattr -n user.note -v two f -> ok
      stranger: setfattr -x user.note f -> ok
      owner: insula acl -N f; chmod 666 f; setfattr -n user.note -v one f
      owner: insula acl +a "user:$member deny readextattr" f; \
      insula acl +a "user:$stranger deny writeextattr" f
      member: getfattr --only-values -n user.note f -> EACCES
      member: getfattr f -> EACCES
      member: setfattr -n user.note -v two f -> ok
      stranger: setfattr -n user.note -v three f -> EACCES
      stranger: setfattr -x user.note f -> EACCES
      stranger,owner,primary,root: getfattr --only-values -n user.note f -> "two"
      """),
    ShellTable(
      "security of a file",
      """
      owner: echo text > f; chmod 644 f; insula acl +a "user:$stranger deny readsecurity" f
      stranger: stat f -> EACCES
      stranger: insula acl f -> EACCES
      stranger: getfattr -n system.nfs4_acl f -> EACCES
      stranger: getfattr -n user.com.apple.system.Security f -> EACCES
      stranger: read word < f; echo $word -> "text"
      primary,member,owner,root: insula acl f -> " 0: user:$stranger deny readsecurity"
      owner: insula acl -N f; insula acl +a "group:$team allow writesecurity" f
      primary,member: chmod 604 f -> ok
      primary,member: insula acl +a "user:$stranger allow write" f -> ok
      primary,member: insula flags hidden f -> ok
      member: insula flags nohidden f -> ok
      stranger: chmod 600 f -> EPERM
      stranger: insula acl -N f -> EPERM
      stranger: insula flags hidden f -> EPERM
      # Not the owner's rights: whose program it is, and whose file.
      member: chmod u+s f -> EPERM
      member: chown $member f -> EPERM
      # No denial keeps the owner from it.
      owner: insula acl -N f; insula acl +a "everyone deny writesecurity" f
      owner: chmod 644 f -> ok
      primary,member,stranger: chmod 600 f -> EPERM
      owner: insula acl -N f -> ok
      # Nor from taking back what keeps them from looking at it.
      owner: insula acl +a "everyone deny readattr,readsecurity" f
      users: stat f -> EACCES
      owner: setfattr -x system.insula.acl f && stat f -> ok
      owner: insula acl +a "everyone deny readattr,readsecurity" f
      owner: insula acl -N f && stat f -> ok
      """),
    ShellTable(
      "owner of a file",
      """
      owner: echo text > f; chmod 666 f
      primary,member,stranger: chown $stranger f -> EPERM
      owner: chown $stranger f -> EPERM
      owner: insula acl +a "user:$stranger allow chown" f
      # One can take it, and not give it.
      stranger: chown $member f -> EPERM
      member: chown $member f -> EPERM
      stranger: chown $stranger f -> ok
      all: stat -c %U f -> "$stranger"
      owner: chmod 600 f -> EPERM
      stranger: chmod 600 f -> ok
      root: chown $owner f -> ok
      owner: insula acl -N f; insula acl +a "everyone deny chown" f
      stranger: chown $stranger f -> EPERM
      root: chown $member f -> ok
      """),
  ]

  /// Each right to a directory, in the same way.
  static let rightsToDirectories = [
    ShellTable(
      "list a directory",
      """
      owner: mkdir d; touch d/f; chmod 711 d
      primary,member,stranger: ls d -> EACCES
      owner: insula acl +a "group:$team allow list" d
      primary,member: ls d -> "f"
      stranger: ls d -> EACCES
      owner: insula acl -N d; chmod 755 d; insula acl +a "user:$stranger deny list" d
      stranger: ls d -> EACCES
      stranger: stat d/f -> ok
      primary,member,owner,root: ls d -> "f"
      """),
    ShellTable(
      "add a file to a directory",
      """
      owner: mkdir d; chmod 755 d
      primary,member,stranger: touch d/f -> EACCES
      owner: insula acl +a "user:$stranger allow add_file" d
      stranger: touch d/f -> ok
      stranger: mkfifo d/p -> ok
      stranger: ln -s f d/l -> ok
      stranger: ln d/f d/hard -> ok
      stranger: mkdir d/s -> EACCES
      stranger: rm -f d/f -> EACCES
      owner: insula acl -N d; chmod 777 d; insula acl +a "user:$stranger deny add_file" d
      stranger: touch d/g -> EACCES
      stranger: mkfifo d/q -> EACCES
      stranger: ln -s f d/m -> EACCES
      stranger: ln d/f d/harder -> EACCES
      stranger: mkdir d/s -> ok
      member,primary,owner,root: touch d/g-$(id -u) -> ok
      """),
    ShellTable(
      "add a directory to a directory",
      """
      owner: mkdir d; chmod 755 d
      primary,member,stranger: mkdir d/s -> EACCES
      owner: insula acl +a "user:$stranger allow add_subdirectory" d
      stranger: mkdir d/s -> ok
      stranger: touch d/f -> EACCES
      stranger: rmdir d/s -> EACCES
      owner: insula acl -N d; chmod 777 d; insula acl +a "user:$stranger deny add_subdirectory" d
      stranger: mkdir d/t -> EACCES
      stranger: touch d/f -> ok
      member,root: mkdir d/t-$(id -u) -> ok
      """),
    ShellTable(
      "search a directory",
      """
      owner: mkdir -p d/s; echo text > d/f; echo text > d/s/f; chmod 700 d
      primary,member,stranger: cat d/f -> EACCES
      primary,member,stranger: cat d/s/f -> EACCES
      owner: insula acl +a "user:$stranger allow search" d
      stranger: cat d/f -> "text"
      stranger: cat d/s/f -> "text"
      stranger: cd d -> ok
      stranger: ls d -> EACCES
      primary,member: cat d/f -> EACCES
      owner: insula acl -N d; chmod 755 d; insula acl +a "user:$stranger deny search" d
      stranger: cat d/f -> EACCES
      stranger: cat d/s/f -> EACCES
      stranger: cat d/missing -> EACCES
      stranger: touch d/new -> EACCES
      stranger: cd d -> no
      stranger: stat d -> ok
      stranger: ls d -> "f\\ns"
      primary,member,owner,root: cat d/s/f -> "text"
      """),
    ShellTable(
      "delete a directory",
      """
      owner: mkdir -p p/d p/e; chmod 755 p; insula acl +a "user:$stranger allow delete" p/d
      member: rmdir p/d -> EACCES
      stranger: rmdir p/e -> EACCES
      stranger: rmdir p/d -> ok
      owner: mkdir p/d; chmod 777 p; insula acl +a "everyone deny delete" p/d
      users: rmdir p/d -> EACCES
      users: mv p/d p/x -> EACCES
      root: rmdir p/d -> ok
      """),
    ShellTable(
      "delete what is in a directory",
      """
      owner: mkdir -p d/s; touch d/f d/g; chmod 755 d; insula acl +a "user:$stranger allow delete_child" d
      member,primary: rm -f d/f -> EACCES
      stranger: rm -f d/f -> ok
      stranger: rmdir d/s -> ok
      stranger: touch d/f -> EACCES
      owner: insula acl -N d; chmod 777 d; insula acl +a "user:$stranger deny delete_child" d
      stranger: rm -f d/g -> EACCES
      stranger: mv d/g d/h -> EACCES
      stranger: touch d/f -> ok
      stranger: rm -f d/f -> EACCES
      member: rm -f d/g -> ok
      """),
    ShellTable(
      "attributes of a directory",
      """
      owner: mkdir d; touch d/f; chmod 755 d; insula acl +a "user:$stranger deny readattr" d
      stranger: stat d -> EACCES
      stranger: stat d/f -> ok
      primary,member,owner,root: stat d -> ok
      owner: insula acl -N d; insula acl +a "user:$stranger allow writeattr" d
      stranger: touch -c d -> ok
      member: touch -c d -> EACCES
      owner: insula acl -N d; chmod 777 d; insula acl +a "user:$stranger deny writeattr" d
      stranger: touch -c d -> EACCES
      member: touch -c d -> ok
      """),
    ShellTable(
      "extended attributes of a directory",
      """
      owner: mkdir d; chmod 711 d; setfattr -n user.note -v one d
      member,stranger: getfattr --only-values -n user.note d -> EACCES
      owner: insula acl +a "user:$stranger allow readextattr" d; \
      insula acl +a "user:$member allow writeextattr" d
      stranger: getfattr --only-values -n user.note d -> "one"
      stranger: setfattr -n user.note -v two d -> EACCES
      member: setfattr -n user.note -v two d -> ok
      primary: setfattr -n user.note -v two d -> EACCES
      owner: insula acl -N d; chmod 777 d; insula acl +a "user:$stranger deny readextattr,writeextattr" d
      stranger: getfattr --only-values -n user.note d -> EACCES
      stranger: setfattr -n user.note -v three d -> EACCES
      primary: setfattr -n user.note -v three d -> ok
      """),
    ShellTable(
      "security of a directory",
      """
      owner: mkdir -p d/s; chmod 755 d; insula acl +a "user:$stranger deny readsecurity" d
      stranger: insula acl d -> EACCES
      stranger: stat d -> EACCES
      # To list it, opendir(3) looks at the attributes; what is in it can be reached.
      stranger: ls d -> EACCES
      stranger: stat d/s -> ok
      owner: insula acl -N d; insula acl +a "user:$stranger allow writesecurity" d
      stranger: chmod 775 d -> ok
      stranger: insula acl +a "user:$member allow add_file" d -> ok
      member: touch d/f -> ok
      primary: insula acl -N d -> EPERM
      primary: chmod 777 d -> EPERM
      owner: insula acl -N d; insula acl +a "everyone deny writesecurity" d
      owner: chmod 755 d -> ok
      stranger: chmod 777 d -> EPERM
      """),
    ShellTable(
      "owner of a directory",
      """
      owner: mkdir d; chmod 777 d
      stranger: chown $stranger d -> EPERM
      owner: insula acl +a "user:$stranger allow chown" d
      member: chown $member d -> EPERM
      stranger: chown $stranger d -> ok
      stranger: chmod 700 d -> ok
      owner: touch d/f -> EACCES
      root: chown $owner d -> ok
      """),
  ]
}
