// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// What people try at a shell with what was delivered. In each line `$at` is a directory in which lie
// letter.txt, note.rtfd with TXT.rtf, a link to it and deep/leaf, and an empty directory; `$other` is one of
// the same app's in which there are a file and a directory to move.
//
// In an ordinary directory all of it works: a test does it there first.

enum InboxRows {
  /// Nobody may, in an Inbox.
  static let refused = lines(
    """
    # Writing, in every way in which a file can be opened for it
    echo more >>$at/letter.txt
    echo other >$at/letter.txt
    dd if=/dev/null of=$at/letter.txt conv=notrunc
    echo other | dd of=$at/note.rtfd/deep/leaf conv=notrunc oflag=append
    truncate -s 1 $at/letter.txt
    call truncate $at/note.rtfd/TXT.rtf 0
    call open $at/letter.txt 2
    call open $at/letter.txt 1
    call open $at/letter.txt 512
    call open $at/letter.txt 1025
    test -w $at/letter.txt || { echo 'Operation not permitted' >&2; false; }
    call access $at/letter.txt 2
    call access $at/note.rtfd 2
    # Making something
    touch $at/new
    : >$at/note.rtfd/new
    mkdir $at/new
    mkdir $at/note.rtfd/deep/new
    ln -s letter.txt $at/new
    mkfifo $at/new
    cp $other/file $at/new
    cp -a $other/directory $at/note.rtfd
    call open $at 4259842 384
    call open $at/note.rtfd 4259842 384
    # Moving in, within and over
    mv $other/file $at
    mv $other/directory $at/note.rtfd
    mv -T $other/file $at/letter.txt
    mv -T $other/directory $at/empty
    mv $at/letter.txt $at/renamed.txt
    mv $at/note.rtfd $at/renamed.rtfd
    mv $at/letter.txt $at/note.rtfd
    mv $at/note.rtfd/deep/leaf $at/note.rtfd
    mv $at/note.rtfd/deep $at
    call exchange $at/letter.txt $other/file
    call exchange $other/file $at/letter.txt
    call exchange $at/letter.txt $at/note.rtfd
    call exchange $at/note.rtfd $other/directory
    # Further names
    ln $at/letter.txt $other/alias
    ln $at/note.rtfd/TXT.rtf $other/alias
    ln $at/letter.txt $at/alias
    ln $other/file $at/alias
    # What is beside the contents
    chmod 600 $at/letter.txt
    chmod 700 $at/note.rtfd
    chmod 700 $at/note.rtfd/deep
    chown $owner $at/letter.txt
    chgrp $owner $at/letter.txt
    chown -h $owner $at/note.rtfd/link
    insula flags hidden $at/letter.txt
    insula flags uchg $at/note.rtfd/deep/leaf
    insula acl +a 'everyone allow write' $at/letter.txt
    insula acl +a 'everyone allow add_file' $at/note.rtfd
    setfattr -n user.mark -v other $at/letter.txt
    setfattr -n user.new -v other $at/note.rtfd
    setfattr -x user.mark $at/letter.txt
    setfattr -n user.com.apple.quarantine -v none $at/letter.txt
    touch $at/letter.txt
    touch $at/note.rtfd
    touch -a $at/letter.txt
    touch -d 2001-01-01 $at/letter.txt
    touch -h -d 2001-01-01 $at/note.rtfd/link
    """)

  /// Root besides: what Linux keeps from others.
  static let refusedToRoot = lines(
    """
    chown root $at/letter.txt
    chgrp root $at/note.rtfd
    chmod u+s $at/letter.txt
    setfattr -n trusted.mark -v other $at/letter.txt
    setfattr -n security.mark -v other $at/letter.txt
    chattr +d $at/letter.txt
    insula flags schg $at/letter.txt
    """)

  /// Works in an Inbox as anywhere.
  static let allowed = lines(
    """
    # Reading
    test "$(cat $at/letter.txt)" = text
    test "$(cat $at/note.rtfd/deep/leaf)" = leaf
    test "$(ls $at)" = "$(printf 'empty\\nletter.txt\\nnote.rtfd')"
    test "$(getfattr --only-values -n user.mark $at/letter.txt)" = value
    test "$(readlink $at/note.rtfd/link)" = TXT.rtf
    test "$(cat $at/note.rtfd/link)" = inside
    test $(find $at | wc -l) = 8
    test -r $at/letter.txt && test -x $at/note.rtfd
    insula acl $at/letter.txt
    insula ls -l $at
    cp -a $at/note.rtfd $other/copy && diff -r $at/note.rtfd $other/copy && touch $other/copy/new
    tar -C $at -cf $other/all.tar .
    flock -s $at/letter.txt true
    flock -x $at/letter.txt true
    # Taking away
    rm $at/letter.txt
    rm $at/note.rtfd/TXT.rtf
    rm $at/note.rtfd/link
    rmdir $at/empty
    rm -r $at/note.rtfd
    find $at -mindepth 1 -delete
    # Moving out; what has left is like anything else
    mv $at/letter.txt $other && echo more >>$other/letter.txt && chmod 600 $other/letter.txt
    mv $at/letter.txt $other && ln $other/letter.txt $other/alias && touch $other/letter.txt
    mv $at/letter.txt $data/tmp/moved && setfattr -n user.mark -v new $data/tmp/moved && rm $data/tmp/moved
    mv $at/letter.txt $data/Library/Caches/moved && truncate -s 0 $data/Library/Caches/moved
    mv $at/letter.txt $documents/moved && echo more >>$documents/moved && rm $documents/moved
    mv -T $at/letter.txt $other/file && echo more >>$other/file
    mv $at/note.rtfd $other && touch $other/note.rtfd/new && echo more >>$other/note.rtfd/deep/leaf
    mv $at/note.rtfd/deep $other && mkdir $other/deep/new && mv $other/deep/leaf $other/deep/new
    mv -T $at/note.rtfd/deep $other/vacant && rm $other/vacant/leaf
    mv $at/note.rtfd/TXT.rtf $other && echo more >>$other/TXT.rtf
    mv $at/note.rtfd/link $other && rm $other/link
    mv $at/letter.txt "$group/moved" && echo more >>"$group/moved" && rm "$group/moved"
    mv $at/letter.txt "$cloud/Documents/moved" && \
    echo more >>"$cloud/Documents/moved" && rm "$cloud/Documents/moved"
    mv $at/letter.txt $home/Documents/moved && echo more >>$home/Documents/moved && rm $home/Documents/moved
    """)

  static func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
  }
}
