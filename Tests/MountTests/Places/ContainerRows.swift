// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// What people can do in the places of an app, one place after the other. `$at` is the place, or a directory
// like it outside.

enum ContainerRows {
  /// The places that are the app's and its user's to fill: `"$at"` is each of them in turn.
  static let open = [
    "$documents", "$data/Library", "$data/Library/Application Support", "$data/Library/Preferences",
    "$data/Library/Caches", "$data/tmp", "$group", "$cloud", "$cloud/Documents",
  ]

  /// Reading, listing, creating, writing, removing and renaming work there.
  static let work = InboxRows.lines(
    """
    ls -a "$at"
    echo text >"$at/new" && echo more >>"$at/new" && test "$(cat "$at/new")" = "$(printf 'text\\nmore')"
    mkdir -p "$at/made/deep" && mv "$at/made" "$at/named" && rmdir "$at/named/deep" "$at/named"
    echo x >"$at/one" && mv "$at/one" "$at/two" && ln "$at/two" "$at/three" && rm "$at/two" "$at/three"
    ln -s anywhere "$at/link" && test "$(readlink "$at/link")" = anywhere && rm "$at/link"
    mkfifo "$at/pipe" && rm "$at/pipe"
    echo x >"$at/x" && chmod 640 "$at/x" && touch -d 2001-01-01 "$at/x" && \
    setfattr -n user.a -v b "$at/x" && rm "$at/x"
    echo x >"$at/x" && insula flags hidden "$at/x" && \
    insula acl +a 'everyone deny delete' "$at/x" && insula acl -N "$at/x" && rm "$at/x"
    mkdir -p "$at/Inbox.d" && mv "$at/Inbox.d" "$at/inbox" && echo x >"$at/inbox/x" && rm -r "$at/inbox"
    rm "$at/new"
    """)

  /// In a container itself, and in its Data: nothing comes and nothing goes.
  ///
  /// `$thing` is something that could come.
  static let closed = ["$container", "$data"]
  static let comings = InboxRows.lines(
    """
    echo >"$at/new"
    mkdir "$at/new"
    ln -s x "$at/new"
    mkfifo "$at/new"
    mv "$thing" "$at/new"
    ln "$thing" "$at/new"
    cp "$thing" "$at"
    call open "$at" 4259842 384
    """)

  /// What it consists of stays: `"$fixed"` is each of these in turn.
  static let fixed = [
    "$data", "$documents", "$data/Library", "$data/tmp", "$metadata", "$link", "$cloud/Documents",
  ]
  static let goings = InboxRows.lines(
    """
    mv "$fixed" "$away/moved"
    mv -T "$fixed" "$fixed-renamed"
    call rmdir "$fixed" || call unlink "$fixed"
    call exchange "$fixed" "$away/twin"
    call exchange "$away/twin" "$fixed"
    call rename "$away/twin" "$fixed"
    """)

  /// What in it is the daemon's is read, and changed by nobody.
  static let metadataChanges = InboxRows.lines(
    """
    echo x >"$file"
    echo x >>"$file"
    truncate -s 0 "$file"
    call open "$file" 2
    chmod 644 "$file"
    touch "$file"
    setfattr -n user.a -v b "$file"
    insula flags hidden "$file"
    insula acl +a 'everyone allow write' "$file"
    ln "$file" "$away/alias"
    """)

  /// The app itself: on a read-only volume, as it were.
  static let bundleChanges = InboxRows.lines(
    """
    echo >"$at/new"
    mkdir "$at/new"
    mv "$thing" "$at/new"
    ln "$thing" "$at/new"
    echo x >>"$at/Info.plist"
    truncate -s 0 "$at/Info.plist"
    rm "$at/Info.plist"
    mv "$at/Info.plist" "$at/Other.plist"
    mv "$at/Info.plist" "$away/moved"
    ln "$at/Info.plist" "$away/alias"
    chmod 600 "$at/Info.plist"
    touch "$at/Info.plist"
    setfattr -n user.a -v b "$at/Info.plist"
    """)
  static let bundleUses = InboxRows.lines(
    """
    ls "$at/MacOS"
    grep -q org.example.editor "$at/Info.plist"
    HOME=$data "$at/MacOS/Editor" >/dev/null
    getfattr -d "$at/Info.plist"
    """)
}
