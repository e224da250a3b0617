// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension ShellTable {
  /// How entries count: in their order, for whom they are about, and together with the mode.
  static let judgement = [
    ShellTable(
      "order of entries",
      """
      owner: echo text > f; chmod 600 f
      owner: insula acl +a# 0 "user:$member allow read" f; insula acl +a# 1 "group:$team deny read" f
      member: cat f -> "text"
      primary: cat f -> EACCES
      owner: insula acl -N f; insula acl +a# 0 "group:$team deny read" f; \
      insula acl +a# 1 "user:$member allow read" f
      primary,member: cat f -> EACCES
      # +a finds the place by itself: denials first.
      owner: insula acl -N f; insula acl +a "everyone allow read" f; insula acl +a "group:$team deny read" f
      owner: insula acl f -> " 0: group:$team deny read\\n 1: group:everyone allow read"
      stranger: cat f -> "text"
      primary,member: cat f -> EACCES
      # The third entry is not reached by who has all they asked for at the second.
      owner: printf 'group:%s allow write\\neveryone allow \
      read\\neveryone deny read\\n' $team | insula acl -E f
      stranger,member: cat f -> "text"
      """),
    ShellTable(
      "two rights at once",
      """
      owner: echo text > f; chmod 644 f
      owner: insula acl +a# 0 "user:$stranger allow write" f; insula acl +a# 1 "user:$stranger deny write" f
      # Each alone is granted; together, reading is still open when the denial of writing comes.
      stranger: dd if=/dev/null of=f conv=notrunc -> ok
      stranger: cat f -> "text"
      stranger: exec 3<>f -> EACCES
      # One from the list and the other from the mode.
      owner: insula acl -N f; chmod 602 f; insula acl +a "user:$stranger allow read" f
      stranger: exec 3<>f -> ok
      owner: chmod 604 f
      stranger: exec 3<>f -> EACCES
      """),
    ShellTable(
      "who is meant",
      """
      owner: echo text > f; chmod 600 f; insula acl +a "everyone allow read" f
      all: cat f -> "text"
      owner: insula acl -N f; insula acl +a "owner deny read" f
      owner: cat f -> EACCES
      root: cat f -> "text"
      root: insula acl -N f; chown $owner:$team f; chmod 600 f; insula acl +a "group allow read" f
      primary,member: cat f -> "text"
      stranger: cat f -> EACCES
      root: insula acl -N f; chmod 644 f; insula acl +a "group deny read" f
      primary,member: cat f -> EACCES
      stranger,owner: cat f -> "text"
      owner: insula acl -N f; chmod 600 f; insula acl +a "group:$stranger allow read" f
      # The stranger's own group, of the same name.
      stranger: cat f -> "text"
      owner: insula acl -N f; insula acl +a "group:$stranger deny read" f; \
      insula acl +a "user:$stranger allow read" f
      stranger: cat f -> EACCES
      # Somebody of another machine: may be meant by a denial, never by a permission.
      owner: insula acl -N f; insula acl +a "6F8E0C4A-0000-4000-8000-2E1B3C4D5E6F allow read" f
      primary,member,stranger: cat f -> EACCES
      owner: insula acl -N f; chmod 644 f; insula acl +a "6F8E0C4A-0000-4000-8000-2E1B3C4D5E6F deny read" f
      users: cat f -> EACCES
      root: cat f -> "text"
      """),
    ShellTable(
      "lists and modes",
      """
      # What the list leaves open is for the one class of the mode; an empty list leaves open everything.
      root: echo text > f; chown $owner:$team f
      root: chmod 604 f
      primary,member: cat f -> EACCES
      stranger: cat f -> "text"
      root: chmod 044 f
      owner: cat f -> EACCES
      primary,member,stranger: cat f -> "text"
      owner: chmod 640 f; insula acl +a "everyone allow write" f; insula acl -a# 0 f
      owner: insula acl f -> "f: an empty ACL"
      primary,member,owner: cat f -> "text"
      stranger: cat f -> EACCES
      stranger: echo new > f -> EACCES
      # Entries that are only to be inherited say nothing about the directory itself.
      owner: mkdir d; chmod 755 d; \
      insula acl +a "everyone deny list,file_inherit,directory_inherit,only_inherit" d
      all: ls d -> ""
      owner: mkdir d/s
      users: ls d/s -> EACCES
      # Root passes lists and modes.
      owner: chmod 000 f; insula acl -N f; \
      insula acl +a "everyone deny read,write,append,delete,readattr,readextattr,readsecurity" f
      root: cat f -> "text"
      root: stat f -> ok
      root: echo new > f -> ok
      root: insula acl -N f -> ok
      """),
  ]

  /// What access(2) says is what then happens.
  static let access = [
    ShellTable(
      "access to files by mode",
      (["000", "400", "200", "100", "040", "020", "010", "004", "002", "001", "644", "755", "070", "707"]
        .map { "owner: chmod \($0) f\nall: agrees f -> ok" }).reduce(
          "root: cp /bin/true f; chown $owner:$team f"
        ) { $0 + "\n" + $1 }),
    ShellTable(
      "access to files by list",
      ([
        "everyone allow read", "group:$team allow write", "user:$stranger deny read",
        "group:$team deny execute",
        "owner deny write", "group deny read,write", "user:$member allow read,write,execute",
        "everyone deny execute",
      ].map { "owner: insula acl -N f; insula acl +a \"\($0)\" f\nall: agrees f -> ok" }).reduce(
        "root: cp /bin/true f; chown $owner:$team f; chmod 751 f"
      ) { $0 + "\n" + $1 }),
    ShellTable(
      "access to directories",
      ([
        "user:$stranger allow list", "group:$team allow add_file,add_subdirectory,delete_child",
        "user:$stranger deny search",
        "user:$stranger allow add_file,add_subdirectory,delete_child,list", "owner deny add_subdirectory",
        "everyone deny list",
      ].map { "owner: insula acl -N d; insula acl +a \"\($0)\" d\nall: agrees d -> ok" }).reduce(
        "root: mkdir d; chown $owner:$team d; chmod 751 d"
      ) { $0 + "\n" + $1 }),
    ShellTable(
      "access in sealed places and by flags",
      """
      users: test -w ../../../System/Library -> exit failed
      root: test -w ../../../System/Library -> exit failed
      all: test -r ../../../System/Library -> ok
      owner: touch f; chmod 666 f; insula flags uchg f
      all: test -w f -> exit failed
      all: test -r f -> ok
      owner: insula flags nouchg f
      all: test -w f -> ok
      """),
  ]
}
