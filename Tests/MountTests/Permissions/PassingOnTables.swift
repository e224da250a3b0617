// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension ShellTable {
  /// What new objects take from the directory that they are made in.
  static let inheritance = [
    ShellTable(
      "three levels down",
      """
      owner: mkdir d; chmod 755 d
      owner: insula acl +a "user:$stranger allow list,add_file,search,file_inherit,directory_inherit" d
      owner: umask 077; mkdir -p d/a/b/c; echo deep > d/a/b/c/f; echo near > d/f
      stranger: cat d/f -> "near"
      stranger: cat d/a/b/c/f -> "deep"
      stranger: echo new > d/a/b/c/f -> ok
      stranger: touch d/a/b/c/g -> ok
      stranger: ls d/a/b/c -> "f\\ng"
      stranger: mkdir d/a/b/c/s -> EACCES
      member,primary: cat d/a/b/c/f -> EACCES
      owner: insula acl d/a/b/c -> " 0: user:$stranger inherited \
      allow list,add_file,search,file_inherit,directory_inherit"
      owner: insula acl d/a/b/c/f -> " 0: user:$stranger inherited allow read,write,execute"
      # What the stranger made has it too, and is theirs.
      owner: insula acl d/a/b/c/g -> " 0: user:$stranger inherited allow read,write,execute"
      owner: stat -c %U d/a/b/c/g -> "$stranger"
      """),
    ShellTable(
      "limited to one level",
      """
      owner: mkdir d; insula acl +a "user:$stranger allow \
      search,list,file_inherit,directory_inherit,limit_inherit" d
      owner: umask 077; mkdir -p d/a/b; echo text > d/f; echo text > d/a/f
      owner: insula acl d/a -> " 0: user:$stranger inherited allow list,search"
      owner: insula acl d/f -> " 0: user:$stranger inherited allow read,execute"
      owner: insula acl d/a/b d/a/f -> "d/a/b: no ACL\\nd/a/f: no ACL"
      stranger: cat d/f -> "text"
      stranger: ls d/a -> "b\\nf"
      stranger: cat d/a/f -> EACCES
      """),
    ShellTable(
      "only to be inherited",
      """
      owner: mkdir d; chmod 711 d; insula acl +a "user:$stranger \
      allow list,search,file_inherit,directory_inherit,only_inherit" d
      owner: umask 077; mkdir -p d/a/b; echo text > d/f
      stranger: ls d -> EACCES
      stranger: cat d/f -> "text"
      stranger: ls d/a -> "b"
      stranger: ls d/a/b -> ""
      owner: insula acl d/a -> " 0: user:$stranger inherited allow list,search,file_inherit,directory_inherit"
      """),
    ShellTable(
      "by files or by directories alone",
      """
      owner: mkdir d e; insula acl +a "everyone allow read,file_inherit" d; \
      insula acl +a "everyone allow list,directory_inherit" e
      owner: umask 077; mkdir -p d/a e/a/b; touch d/f d/a/f e/f e/a/f
      owner: insula acl d/f -> " 0: group:everyone inherited allow read"
      owner: insula acl d/a d/a/f -> "d/a: no ACL\\nd/a/f: no ACL"
      owner: insula acl e/a e/a/b -> "e/a:\\n 0: group:everyone inherited allow \
      list,directory_inherit\\ne/a/b:\\n 0: group:everyone inherited allow list,directory_inherit"
      owner: insula acl e/f e/a/f -> "e/f: no ACL\\ne/a/f: no ACL"
      """),
    ShellTable(
      "by whatever makes it",
      """
      owner: mkdir d t; chmod 777 d t; echo text > t/old; \
      insula acl +a "user:$member deny delete,file_inherit,directory_inherit" d
      owner: touch d/touched; cp t/old d/copied; mkfifo d/pipe; ln -s touched d/link; mkdir d/made
      owner: for f in touched copied pipe made; do insula acl d/$f | \
      grep -c 'inherited deny delete' || echo none $f; done -> "1\\n1\\n1\\n1"
      owner: getfattr -h -n system.insula.acl d/link -> no
      # What is moved or linked keeps what it has.
      owner: mv t/old d/moved; touch t/other; ln t/other d/linked; mv d/touched t/touched
      owner: insula acl d/moved d/linked -> "d/moved: no ACL\\nd/linked: no ACL"
      owner: insula acl t/touched -> " 0: user:$member inherited deny delete"
      member: rm -f d/copied -> EACCES
      member: rm -f d/moved -> ok
      # What is changed later stays where it is.
      owner: insula acl -N d
      member: rm -f d/copied -> EACCES
      owner: touch d/late; insula acl d/late -> "d/late: no ACL"
      # Root's and strangers' things inherit as well.
      owner: insula acl +a "everyone deny write,file_inherit,only_inherit" d
      root,stranger,primary: touch d/by-$(id -u) && \
      insula acl d/by-$(id -u) -> " 0: group:everyone inherited deny write"
      # An open that makes the file is not asked by the file's own list.
      stranger: echo text > d/fresh -> ok
      stranger: echo more >> d/fresh -> ok
      stranger: echo new > d/fresh -> EACCES
      """),
  ]

  /// Removal, renaming and replacement: the object's ACL, then the directory's, then its mode.
  static let deletion = [
    ShellTable(
      "by the object and its directory",
      """
      owner: mkdir d; chmod 755 d; insula acl +a "user:$stranger allow search" d
      owner: for f in 1 2 3 4 5 6; do touch d/$f; done
      stranger: rm -f d/1 -> EACCES
      owner: insula acl +a "user:$stranger allow delete" d/1
      stranger: rm -f d/1 -> ok
      # The object's word comes before the directory's, in both directions.
      owner: insula acl -N d; insula acl +a "user:$stranger allow delete_child" d; \
      insula acl +a "user:$stranger deny delete" d/2
      stranger: rm -f d/2 -> EACCES
      stranger: rm -f d/3 -> ok
      owner: insula acl -N d; insula acl +a "user:$stranger deny delete_child" d; \
      insula acl +a "user:$stranger allow delete" d/4
      stranger: rm -f d/4 -> ok
      stranger: rm -f d/5 -> EACCES
      # To add files is not to remove them, and the mode of the file is no matter.
      owner: insula acl -N d; insula acl +a "user:$stranger allow add_file" d; chmod 666 d/5
      stranger: rm -f d/5 -> EACCES
      owner: insula acl -N d; chmod 777 d; chmod 000 d/5
      stranger: rm -f d/5 -> ok
      # Root is asked nothing.
      owner: insula acl +a "everyone deny delete_child" d; insula acl +a "everyone deny delete" d/6
      users: rm -f d/6 -> EACCES
      root: rm -f d/6 -> ok
      """),
    ShellTable(
      "in a sticky directory",
      """
      root: mkdir d; chown $owner d; chmod 1777 d
      member: touch d/1 d/2 d/3 d/4; chmod 666 d/1
      stranger: rm -f d/1 -> EPERM
      stranger: mv d/1 d/x -> EPERM
      primary: rm -f d/1 -> EPERM
      member: rm -f d/1 -> ok
      owner: rm -f d/2 -> ok
      member: insula acl +a "user:$stranger allow delete" d/3
      stranger: rm -f d/3 -> ok
      owner: insula acl +a "user:$stranger allow delete_child" d
      primary: rm -f d/4 -> EPERM
      stranger: rm -f d/4 -> ok
      """),
    ShellTable(
      "between directories",
      """
      owner: mkdir from to; touch from/f; mkdir from/s from/t; chmod 755 from to from/s
      stranger: mv from/f to/ -> EACCES
      owner: insula acl +a "user:$stranger allow delete_child" from
      stranger: mv from/f to/ -> EACCES
      owner: insula acl -N from; insula acl +a "user:$stranger allow add_file" to
      stranger: mv from/f to/ -> EACCES
      owner: insula acl +a "user:$stranger allow delete_child" from; \
      insula acl +a "user:$member deny read" from/f
      stranger: mv from/f to/ -> ok
      # The list goes along.
      owner: insula acl to/f -> " 0: user:$member deny read"
      # A directory takes add_subdirectory where it goes, and to itself, since its parent changes.
      stranger: mv from/s to/ -> EACCES
      owner: insula acl +a "user:$stranger allow add_subdirectory" to
      stranger: mv from/s to/ -> EACCES
      owner: insula acl +a "user:$stranger allow add_subdirectory" from/s
      stranger: mv from/s to/ -> ok
      # What is in the way must be deletable.
      owner: touch from/f
      stranger: mv -f from/f to/f -> EACCES
      owner: insula acl +a "user:$stranger allow delete" to/f
      stranger: mv -f from/f to/f -> ok
      owner: insula acl to/f -> "to/f: no ACL"
      # Within one directory, adding is asked for too.
      stranger: mv from/t from/u -> EACCES
      owner: insula acl +a "user:$stranger allow add_subdirectory" from
      stranger: mv from/t from/u -> ok
      # A denial where it goes.
      owner: touch from/g; chmod 777 to; insula acl +a "user:$stranger deny add_file" to
      stranger: mv from/g to/ -> EACCES
      member: mv from/g to/ -> EACCES
      owner: insula acl +a "user:$member allow delete" from/g
      member: mv from/g to/ -> ok
      """),
  ]
}
