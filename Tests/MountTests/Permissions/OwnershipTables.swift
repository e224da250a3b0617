// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension ShellTable {
  /// chmod, chown and chgrp by each, and what goes along with them.
  static let ownership = [
    ShellTable(
      "chmod by each",
      """
      root: touch f; mkdir d; chown $owner:$team f d
      primary,member,stranger: chmod 777 f -> EPERM
      primary,member,stranger: chmod 777 d -> EPERM
      owner,root: chmod 640 f && chmod 750 d -> ok
      all: stat -c %a f -> "640"
      # Set-group-id goes unsaid where the owner is not in the group; root gives it.
      owner: chmod 2755 f; stat -c %a f -> "755"
      root: chmod 2755 f; stat -c %a f -> "2755"
      owner: chmod 4755 f; stat -c %a f -> "4755"
      owner,root: chmod 1777 d && stat -c %a d -> "1777"
      """),
    ShellTable(
      "chown by each",
      """
      root: touch f; mkdir d; chown $owner:$team f d; chmod 777 f d
      users: chown $stranger f -> EPERM
      users: chown $stranger d -> EPERM
      users: chown root f -> EPERM
      owner: chown $owner f -> ok
      primary,member,stranger: chown $owner f -> EPERM
      root: chown $stranger f && stat -c %U f -> "$stranger"
      owner: chmod 600 f -> EPERM
      stranger: chmod 600 f -> ok
      root: chmod 6755 f; chown $owner f; stat -c %a f -> "755"
      """),
    ShellTable(
      "chgrp by each",
      """
      root: touch f g h i; chown $owner f; chown $primary g; \
      chown $member h; chown $stranger i; chmod 666 f g h i
      owner: chgrp $team f -> EPERM
      stranger: chgrp $team i -> EPERM
      primary: chgrp $team g -> ok
      member: chgrp $team h -> ok
      member: chgrp $member h -> ok
      member: chgrp $team g -> EPERM
      primary,member,stranger: chgrp $team f -> EPERM
      root: chgrp $team f -> ok
      owner: chgrp $owner f -> ok
      # A list can let others do it; they must be in the group all the same.
      owner: insula acl +a "everyone allow writesecurity" f
      stranger: chgrp $team f -> EPERM
      member: chgrp $team f -> ok
      owner: stat -c %G f -> "$team"
      """),
    ShellTable(
      "groups of new objects",
      """
      root: mkdir d; chown $owner:$team d; chmod 777 d
      users: touch d/f-$(id -u); stat -c %G d/f-$(id -u) -> "$team"
      users: mkdir d/d-$(id -u); stat -c %G d/d-$(id -u) -> "$team"
      stranger: stat -c %U d/f-$(id -u) -> "$stranger"
      """),
    ShellTable(
      "modes and lists go their own ways",
      """
      owner: echo text > f; chmod 640 f; insula acl +a "user:$stranger allow read" f
      owner: chmod 600 f; insula acl f -> " 0: user:$stranger allow read"
      stranger: cat f -> "text"
      root: chown $member f; insula acl f -> " 0: user:$stranger allow read"
      stranger: cat f -> "text"
      all: stat -c %a f -> "600"
      member: insula acl -N f; stat -c %a f -> "600"
      stranger: cat f -> EACCES
      """),
    ShellTable(
      "hard links",
      """
      owner: echo text > f; chmod 644 f; mkdir open closed; chmod 777 open; chmod 700 closed; ln f closed/f
      stranger: ln f open/f -> EPERM
      stranger: cat closed/f -> EACCES
      stranger: cat f -> "text"
      owner: insula acl +a "user:$stranger deny read" f
      stranger: cat f -> EACCES
      owner: insula acl closed/f -> " 0: user:$stranger deny read"
      owner: insula acl -N closed/f
      stranger: cat f -> "text"
      owner: insula acl +a "user:$stranger allow write" f
      stranger: ln f open/f -> ok
      owner: insula acl open/f -> " 0: user:$stranger allow write"
      """),
  ]

  /// What carries ACLs, and what is refused.
  static let copies = [
    ShellTable(
      "tools that carry lists",
      """
      owner: mkdir -p d/s; echo text > d/f; \
      insula acl +a "user:$member deny write" d/f; setfattr -n user.note -v one d/f
      owner: insula acl +a "user:$stranger allow list,file_inherit,directory_inherit,only_inherit" d/s
      owner: cp --preserve=xattr d/f copy; insula acl copy -> " 0: user:$member deny write"
      owner: cp d/f plain; insula acl plain -> "plain: no ACL"
      owner: cp -a d tree; insula acl tree/f tree/s -> "tree/f:\\n 0: \
      user:$member deny write\\ntree/s:\\n 0: \
      user:$stranger allow list,file_inherit,directory_inherit,only_inherit"
      owner: rsync -aX d/ synced/ && getfattr --only-values -n user.note synced/f -> "one"
      owner: insula acl synced/f synced/s -> "synced/f:\\n 0: user:$member deny write\\nsynced/s:\\n 0: \
      user:$stranger allow list,file_inherit,directory_inherit,only_inherit"
      # What has not changed is not sent again, and what has lost its list loses it.
      owner: rsync -aXi d/ synced/ -> ""
      owner: insula acl -N d/f; rsync -aX d/ synced/; insula acl synced/f -> "synced/f: no ACL"
      owner: insula acl +a "user:$member deny write" d/f; mkdir out; \
      tar --xattrs -cf t.tar d && tar --xattrs --xattrs-include='*' -C out -xf t.tar
      owner: insula acl out/d/f out/d/s -> "out/d/f:\\n 0: user:$member deny write\\nout/d/s:\\n 0: \
      user:$stranger allow list,file_inherit,directory_inherit,only_inherit"
      owner: insula acl d/f | insula acl -E plain && insula acl plain -> " 0: user:$member deny write"
      owner: mkdir in; insula acl +a "everyone deny delete,file_inherit" in; \
      cp --preserve=xattr d/f in/f; insula acl in/f -> " 0: user:$member deny write"
      root: rsync -aAX d/ /tmp/$owner.copy/ && rsync -aX /tmp/$owner.copy/ back/ && \
      insula acl back/f -> " 0: user:$member deny write"
      root: rm -rf /tmp/$owner.copy
      # Who copies another's file with its list gets their own file with that list.
      stranger: mkdir /tmp/$stranger; cp --preserve=xattr d/f /tmp/$stranger/ -> ok
      stranger: rm -rf /tmp/$stranger
      """),
    ShellTable(
      "lists that are refused",
      """
      owner: touch f; ln -s f l; insula acl +a "user:$stranger allow read" f
      owner: yes 'everyone allow read' | head -n 129 | insula acl -E f -> exit usage
      owner: nfs4_setfacl -s $(yes A::EVERYONE@:r | head -n 129 | paste -sd ,) f >&2 -> E2BIG
      owner: insula acl +a "user:no-such-user allow read" f -> exit usage
      owner: insula acl +a "user:$stranger allow fly" f -> exit usage
      owner: insula acl +a# 5 "user:$stranger allow read" f -> exit failed
      owner: insula acl -a# 1 f -> exit failed
      owner: insula acl -a "user:$member allow read" f -> exit failed
      owner: setfattr -n system.insula.acl -v nonsense f -> EINVAL
      owner: setfattr -n user.com.apple.system.Security -v nonsense f -> EINVAL
      owner: setfattr -n system.nfs4_acl -v nonsense f -> EINVAL
      owner: setfattr -n system.insula.acl -v '' f -> EINVAL
      owner: setfattr -h -n system.insula.acl -v 0x012cc16d f -> EINVAL
      owner: setfattr -h -n system.insula.acl -v 0x012cc16d l -> EOPNOTSUPP
      owner,root: setfattr -n system.posix_acl_access -v \
      0x0200000001000600ffffffff04000400ffffffff20000400ffffffff f -> EOPNOTSUPP
      owner,root: setfattr -n system.posix_acl_default -v \
      0x0200000001000600ffffffff04000400ffffffff20000400ffffffff . -> EOPNOTSUPP
      owner,root: getfattr -n system.posix_acl_access f -> EOPNOTSUPP
      owner,root: setfattr -n trusted.insula.acl -v nonsense f -> EPERM
      owner,root: setfattr -n user.insula.acl -v nonsense f -> EPERM
      owner,root: getfattr -n trusted.insula.acl f -> exit failed
      owner: insula acl f -> " 0: user:$stranger allow read"
      owner,root: insula acl +a "everyone allow add_file" ../../../System/Library -> EROFS
      owner,root: insula flags uchg ../../../System/Library -> EROFS
      owner: yes 'everyone allow read' | head -n 128 | insula acl -E f && insula acl f | wc -l -> "128"
      owner: insula acl +a "user:$stranger deny read" f -> exit failed
      owner: insula acl f | wc -l -> "128"
      """),
  ]

  /// All of them.
  static let all =
    rightsToFiles + rightsToDirectories + judgement + access + inheritance + deletion + flags + ownership
    + copies + everyday + [home]
}
