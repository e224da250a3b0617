// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension ShellTable {
  /// Programs of every day, by three users in one directory whose ACL is inherited.
  static let everyday = [
    ShellTable(
      "several at one repository",
      #"""
      owner: mkdir work; chmod 700 work
      owner: for who in user:$owner group:$team; do insula acl +a "$who allow \#
      list,add_file,search,delete,add_subdirectory,delete_child,\#
      readattr,writeattr,readextattr,writeextattr,readsecurity,file_inherit,directory_inherit" work; done
      users: git config --file "$HOME/git-$(id -u)" safe.directory '*'; \#
      git config --file "$HOME/git-$(id -u)" user.email a@b.c; \#
      git config --file "$HOME/git-$(id -u)" user.name x
      owner: export GIT_CONFIG_GLOBAL="$HOME/git-$(id -u)"; cd work && git init -q repo && \#
      cd repo && echo one > a && git add a && git commit -qm one && git log --format=%s -> "one"
      member: export GIT_CONFIG_GLOBAL="$HOME/git-$(id -u)"; cd work/repo && echo two >> a && \#
      echo b > b && git add -A && git commit -qm two && git log --format=%s -> "two\none"
      primary: export GIT_CONFIG_GLOBAL="$HOME/git-$(id -u)"; cd work/repo && \#
      git checkout -qb side && git mv b c && git commit -qm three && git checkout -q - && \#
      git merge -q side && git gc -q && git fsck 2>&1 && git status --short -> ""
      owner: export GIT_CONFIG_GLOBAL="$HOME/git-$(id -u)"; cd work/repo && git stash list && \#
      git reset -q --hard HEAD~1 && cat a b && git clone -q . \#
      ../clone && cat ../clone/a -> "one\ntwo\nb\none\ntwo"
      stranger: export GIT_CONFIG_GLOBAL="$HOME/git-$(id -u)"; cd work/repo -> no
      stranger: git -C work/repo log -> exit 128
      """#),
    ShellTable(
      "several at one database",
      #"""
      owner: mkdir work; chmod 700 work
      owner: for who in user:$owner group:$team; do insula acl +a "$who allow \#
      list,add_file,search,delete,add_subdirectory,delete_child,file_inherit,directory_inherit" work; done
      owner: sqlite3 work/db 'create table t (n); insert into t values (1);' -> ok
      member,primary: sqlite3 work/db 'insert into t values (2);' -> ok
      member: sqlite3 work/db 'pragma journal_mode=wal; insert into t values (3);' -> "wal"
      owner: sqlite3 work/db 'select sum(n) from t;' -> "8"
      primary: sqlite3 work/db 'insert into t values (4); select sum(n) from t;' -> "12"
      stranger: sqlite3 work/db 'select 1 from t;' -> exit failed
      owner: insula acl +a "user:$member deny write" work/db
      member: sqlite3 work/db 'select sum(n) from t;' -> "12"
      member: sqlite3 work/db 'insert into t values (5);' -> exit 8
      """#),
    ShellTable(
      "several at one program",
      #"""
      owner: mkdir work; chmod 700 work
      owner: for who in user:$owner group:$team; do insula acl +a "$who allow \#
      list,add_file,search,delete,add_subdirectory,\#
      delete_child,readextattr,file_inherit,directory_inherit" work; done
      owner: printf 'int main(void) { return 0; }\n' > work/main.c; \#
      printf 'main: main.c\n\tcc -o main main.c\n' > work/Makefile
      owner: make -s -C work && work/main -> ok
      member: touch work/main.c; printf 'int main(void) { return 3; \#
      }\n' > work/main.c; make -s -B -C work && work/main; echo $? -> "3"
      primary: sed -i s/3/4/ work/main.c; make -s -B -C work && work/main; echo $? -> "4"
      primary: cp work/main.c work/.main.c.tmp && \#
      printf '//\n' >> work/.main.c.tmp && mv work/.main.c.tmp work/main.c -> ok
      # A file that was written beside and renamed inherited the list when it was made.
      member: printf '//\n' >> work/main.c; tail -n 1 work/main.c -> "//"
      member: vim -Nes -u NONE -c '%s/4/5/' -c wq work/main.c </dev/null >/dev/null 2>&1; \#
      grep -c 'return 5' work/main.c >/dev/null -> ok
      owner: tar -cf work/t.tar -C work main.c main && mkdir work/out && \#
      tar -C work/out -xf work/t.tar && work/out/main; test $? -gt 2 -> ok
      primary: rsync -aHAX work/out/ work/synced/ && rm -rf work/out && ls work/synced -> "main\nmain.c"
      member: rm -rf work/synced && mkdir -p work/a/b/c && cp -a work/main.c work/a/b/c/ && \#
      find work -name main.c | sort -> "work/a/b/c/main.c\nwork/main.c"
      stranger: ls work -> EACCES
      stranger: work/main -> EACCES
      owner: rm -rf work -> ok
      """#),
  ]

  /// What an owner does in their home.
  static let home = ShellTable(
    "at home",
    #"""
    root: insula user add $owner --store "$store"
    owner: cd ../../$owner && insula ls -le Documents >/dev/null && \#
    insula acl Documents -> " 0: group:everyone deny delete"
    owner: cd ../../$owner && rmdir Documents -> EACCES
    owner: cd ../../$owner && mv Documents Papers -> EACCES
    owner: cd ../../$owner && rm -rf Music -> EACCES
    owner: cd ../.. && rmdir $owner -> EACCES
    owner: cd ../.. && mv $owner other -> EACCES
    owner: cd ../../$owner && mkdir Documents/project && cp /bin/true Documents/project/ && \#
    Documents/project/true && mv Documents/project Desktop/ && rm -r Desktop/project -> ok
    owner: cd ../../$owner && export HOME=$PWD && git init -q Documents/r && \#
    cd Documents/r && echo a > a && git add a && \#
    git -c user.name=x -c user.email=a@b.c commit -qm one && git status --short && cd .. && rm -rf r -> ""
    owner: cd ../../$owner && sqlite3 Library/db 'create table t (n); \#
    insert into t values (1); select n from t' -> "1"
    owner: cd ../../$owner && rsync -aHA Library/ Documents/copy/ && \#
    tar -cf Documents/t.tar Library && rm -rf Documents/copy Documents/t.tar -> ok
    # A copy that takes the list along can't be removed either, before the list is.
    owner: cd ../../$owner && rsync -aHAX Library/ Documents/copy/ && rm -rf Documents/copy -> EACCES
    owner: cd ../../$owner && insula acl -N Documents/copy && rm -rf Documents/copy -> ok
    owner: cd ../../$owner && mkdir Code && rmdir Code && \#
    touch .profile && mv .profile .bashrc && rm .bashrc -> ok
    users: test "$(id -un)" = $owner || ls ../../$owner/Documents 2>&1 | grep -q 'Permission denied' -> ok
    member,primary,stranger: echo gift > "../../$owner/Public/Drop Box/$(id -un)" -> ok
    member,primary,stranger: ls "../../$owner/Public/Drop Box" -> EACCES
    owner: cd "../../$owner/Public/Drop Box" && cat * && rm * && ls -> "gift\ngift\ngift"
    # Whoever takes the denial away first may remove the directory.
    owner: cd ../../$owner && insula acl -N Music && rm -r Music -> ok
    root: insula user remove $owner --delete-home --store "$store" -> ok
    """#)
}
