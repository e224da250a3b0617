// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport

/// One attempt to get out of a view.
struct Attempt: Sendable {
  let name: String
  /// Who can do it outside: the user whose app it is, or only root.
  let takesRoot: Bool
  /// What is run, a shell's line; the programs of Tests/Escapes are `escape NAME`.
  let line: String
  /// What is around it: a shell's line in which `"$@"` runs the app, or outside the line alone.
  var around = "\"$@\""

  /// Attempts in which there is more to the surroundings than a call.
  private static let surroundings = [
    "typing_into_the_terminal": "\"$ESCAPE\" terminal \"$@\"",
    "typing_into_the_terminal_by_name": "\"$ESCAPE\" terminal \"$@\"",
    "taking_the_terminal": "\"$ESCAPE\" background \"$@\"",
    "taking_the_terminal_by_name": "\"$ESCAPE\" background \"$@\"",
    "taking_the_terminal_as_a_session": "\"$ESCAPE\" background \"$@\"",
    "taking_the_terminal_without_a_group": "\"$ESCAPE\" background \"$@\"",
    "descriptors_that_were_left_open": "exec 8<\"${PRIZE_HOST%/*}\" 9<\"$PRIZE_HOST\"; \"$@\"",
    "descriptors_of_the_processes_above": "exec 9<\"$PRIZE_HOST\"; \"$@\"; :",
    "environment_of_the_processes_above": "WORD_OF_THE_PERSON=$SECRET; export WORD_OF_THE_PERSON; \"$@\"; :",
  ]

  init(name: String, takesRoot: Bool, line: String, around: String? = nil) {
    self.name = name
    self.takesRoot = takesRoot
    self.line = line
    self.around = around ?? Self.surroundings[name] ?? self.around
  }

  /// The programs among them.
  static func programs(_ escape: String) throws -> [Attempt] {
    try Program.run([escape, "list"]).output.split(separator: "\n").map { line in
      let words = line.split(separator: " ").map(String.init)
      return Attempt(name: words[0], takesRoot: words[1] == "root", line: "\"$ESCAPE\" \(words[0])")
    }
  }

  /// Those that a shell makes: a name, who can do it outside, the line; and what is around it, if there is
  /// more to that than a call.
  static let lines: [Attempt] = table.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { row in
    let cells = row.components(separatedBy: " ;; ")
    return Attempt(
      name: cells[0], takesRoot: cells[1] == "root", line: cells[2], around: cells.count > 3 ? cells[3] : nil)
  }

  /// A directory for a standard stream would be a way to all that is beside and above it.
  static let directories: [Attempt] = [
    Attempt(
      name: "beside the standard input", takesRoot: false, line: "cat /proc/self/fd/0/secret",
      around: "\"$@\" <\"${PRIZE_HOST%/*}\""),
    Attempt(
      name: "above the standard error", takesRoot: false,
      line: "cat \"/proc/self/fd/2/../../../../../../$PRIZE_VAR\"", around: "\"$@\" 2<\"${PRIZE_HOST%/*}\""),
    Attempt(
      name: "above the standard input", takesRoot: false,
      line: "cat \"/proc/self/fd/0/../../../../../../$PRIZE_VAR\"", around: "\"$@\" <\"${PRIZE_HOST%/*}\""),
  ]

  private static let table = #"""
    # Reading, by every path that there is
    file of another app ;; user ;; cat "$PRIZE_OTHER"
    file of a group that the app is not in ;; user ;; cat "$PRIZE_GROUP"
    file in the home of its user ;; user ;; cat "$PRIZE_HOME"
    file that a neighbour shows to all ;; user ;; cat "$PRIZE_NEIGHBOUR"
    file of the machine in tmp ;; user ;; cat "$PRIZE_HOST"
    file of the machine in var ;; user ;; cat "$PRIZE_VAR"
    file of the machine in run ;; user ;; cat "$PRIZE_RUN"
    file of the machine in home ;; user ;; cat "$PRIZE_HOMES"
    file of root ;; root ;; cat "$PRIZE_ROOT"
    file in the store ;; root ;; cat "$PRIZE_STORE"
    database of the store ;; root ;; test -r "$STORE/state/insula.db" && echo $MARK
    keys of the store ;; root ;; ls "$STORE/keys" && echo $MARK
    description of the store ;; root ;; grep -q AdminGroup "$STORE/store.plist" && echo $MARK
    passwords of the machine ;; root ;; grep -q '^root:' /etc/shadow && echo $MARK
    accounts of the machine ;; user ;; grep -q "^${STRANGER}:" /etc/passwd && echo $MARK
    directory of the machine ;; user ;; ls "${PRIZE_HOST%/*}" | grep -q secret && echo $MARK
    other apps by their names ;; user ;; ls "$CONTAINERS" | grep -q org.example.other && echo $MARK
    other apps by a guess ;; user ;; test -e "$CONTAINERS/org.example.other" && echo $MARK
    other homes by their names ;; user ;; ls "$POINT/Users" | grep -q "^$NEIGHBOUR\$" && echo $MARK
    own home by its names ;; user ;; ls -a "$REALHOME" | grep -q Documents && echo $MARK
    other apps of the home ;; user ;; ls "$REALHOME/Applications" | grep -q Other && echo $MARK
    local domain ;; user ;; ls "$POINT/Library" | grep -q Caches && echo $MARK
    shared files of all users ;; user ;; ls -d "$POINT/Users/Shared" && echo $MARK
    all containers by a pattern ;; user ;; cat "$POINT"/Users/*/Library/Containers/*/Data/Documents/secret
    all there is in the tree ;; user ;; find "$POINT" -name secret -exec cat {} +
    an archive of all there is ;; user ;; tar -C "$POINT" -cf - Users | cat -v
    a disk that is counted ;; user ;; du -a "$CONTAINERS/.." | grep -q org.example.other && echo $MARK
    # Up, and to the side
    beside the container ;; user ;; \#
    cat "$CONTAINERS/org.example.editor/../org.example.other/Data/Documents/secret"
    beside the container on foot ;; user ;; cd "$CONTAINERS/org.example.editor/Data/Documents" && \#
    cd ../../../org.example.other/Data/Documents && cat secret
    above the tree ;; user ;; cd "$POINT" && cat ../../../../../../../../"$PRIZE_HOST"
    above the root ;; user ;; cd / && cat ../../../../../../../../"$PRIZE_HOST"
    with many slashes ;; user ;; cat "///.//./$PRIZE_HOST" "///.//./$PRIZE_OTHER"
    by the link to the bundle ;; user ;; \#
    cat "$CONTAINERS/org.example.editor/Data/Editor.app/../../Documents/secret"
    # By links of its own
    link to another app ;; user ;; ln -s "$PRIZE_OTHER" link; cat link; rm link
    link to the machine ;; user ;; ln -s "$PRIZE_HOST" link; cat link; rm link
    link to the root ;; user ;; ln -s / link; cat "link$PRIZE_HOST" "link$PRIZE_OTHER"; rm link
    link by its own process ;; user ;; ln -s /proc/self/root link; cat "link$PRIZE_HOST"; rm link
    link that goes up ;; user ;; ln -s ../../../../../../../../../../../../../../../.. link; \#
    cat "link$PRIZE_HOST"; rm link
    link in a chain ;; user ;; ln -s two one; ln -s "$CONTAINERS" two; \#
    cat one/org.example.other/Data/Documents/secret; rm one two
    # By further names and moves
    hard link to another app's file ;; user ;; ln "$PRIZE_OTHER" mine && cat mine; rm -f mine
    hard link to a file of the home ;; user ;; ln "$PRIZE_HOME" mine && cat mine; rm -f mine
    hard link through a symbolic one ;; user ;; \#
    ln -s "$PRIZE_HOME" link; ln -L link mine && cat mine; rm -f mine link
    file of another app moved here ;; user ;; mv "$PRIZE_OTHER" mine && cat mine && mv mine "$PRIZE_OTHER"
    folder of another app moved here ;; user ;; mkdir "${PRIZE_OTHER%/*}/folder" && \#
    cp "$PRIZE_OTHER" "${PRIZE_OTHER%/*}/folder/secret" && \#
    mv "${PRIZE_OTHER%/*}/folder" mine && cat mine/secret; rm -rf mine
    # Changing what is outside
    write to another app's file ;; user ;; echo stolen >>"$PRIZE_OTHER"
    write to a file of the home ;; user ;; echo stolen >"$PRIZE_HOME"
    write to a file of the machine ;; user ;; echo stolen >>"$PRIZE_HOST"
    new file in another app ;; user ;; echo stolen >"${PRIZE_OTHER%/*}/new"
    new file in the home ;; user ;; echo stolen >"${PRIZE_HOME%/*}/new"
    new file in the machine ;; user ;; echo stolen >"${PRIZE_VAR%/*}/new"
    own file moved to another app ;; user ;; echo stolen >mine; mv mine "${PRIZE_OTHER%/*}/new"; rm -f mine
    own file moved over another app's ;; user ;; echo stolen >mine; mv -f mine "$PRIZE_OTHER"; rm -f mine
    own file linked into the home ;; user ;; echo stolen >mine; ln mine "${PRIZE_HOME%/*}/new"; rm -f mine
    removal of another app's file ;; user ;; rm -f "$PRIZE_OTHER"
    removal of a file of the machine ;; user ;; rm -f "$PRIZE_HOST"
    mode of another app's file ;; user ;; chmod 777 "$PRIZE_OTHER" && echo $MARK
    attribute of another app's file ;; user ;; setfattr -n user.mark -v x "$PRIZE_OTHER" && echo $MARK
    times of a file of the home ;; user ;; touch -c "$PRIZE_HOME" && test -e "$PRIZE_HOME" && echo $MARK
    program for the person's next login ;; user ;; echo stolen >"${PRIZE_HOME%/*}/.profile"
    new app of the user's ;; user ;; mkdir "$REALHOME/Applications/New.app" && \#
    rmdir "$REALHOME/Applications/New.app" && echo $MARK
    new container ;; user ;; mkdir "$CONTAINERS/.new" && rmdir "$CONTAINERS/.new" && echo $MARK
    system domain ;; root ;; touch "$STORE/tree/System/new" && rm "$STORE/tree/System/new" && echo $MARK
    the store itself ;; root ;; touch "$STORE/new" && rm "$STORE/new" && echo $MARK
    trap in the container for who comes ;; root ;; \#
    ln -s "${PRIZE_OTHER%/*}" "$STORE/tree/$CONTAINER_BELOW_TREE/Data/trap" && \#
    rm "$STORE/tree/$CONTAINER_BELOW_TREE/Data/trap" && echo $MARK
    # With tools of the machine
    bubblewrap in bubblewrap ;; user ;; bwrap --bind / / cat "$PRIZE_HOST"
    namespaces by unshare ;; user ;; unshare -Urm cat "$PRIZE_HOST"
    namespaces by nsenter ;; root ;; nsenter -t "$VICTIM" -m cat "$PRIZE_HOST"
    bind mount by mount ;; root ;; mkdir m; \#
    unshare -m sh -c 'mount --bind "${PRIZE_HOST%/*}" m && cat m/secret'; rmdir m
    file system in memory ;; root ;; mkdir m; unshare -m sh -c 'mount -t tmpfs none m && \#
    cp /bin/true m && m/true && echo $MARK'; rmdir m
    root by su ;; root ;; su root -c "cat $PRIZE_ROOT"
    chroot by chroot ;; root ;; chroot / cat "$PRIZE_HOST"
    script that stops what it can ;; user ;; kill -USR1 $VICTIM
    processes by their names ;; user ;; ps axww | grep -q "[v]ictim $VICTIM_PLACE" && echo $MARK
    # By what it is started with
    open file ;; user ;; cat <&9 ;; exec 9<"$PRIZE_HOST"; "$@"
    open directory ;; user ;; cat /proc/self/fd/8/secret ;; exec 8<"${PRIZE_HOST%/*}"; "$@"
    working directory ;; user ;; cat "$OLDPWD/secret" || \#
    cat /proc/self/cwd/secret ;; cd "${PRIZE_HOST%/*}"; "$@"
    words of the person's ;; user ;; echo "$WORD_OF_THE_PERSON" ;; \#
    WORD_OF_THE_PERSON=$SECRET; export WORD_OF_THE_PERSON; "$@"
    open file for writing ;; user ;; echo stolen >>/proc/self/fd/9 ;; exec 9<"$PRIZE_HOST"; "$@"
    """#
}
