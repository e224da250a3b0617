// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Store

// What insula(7) says.

extension ManualText {
  static let tree = [
    """
    A mount of a store shows a tree of four domains. Different people control each of them. Rules that follow
    from the location of a file apply to everyone, root included. insula-semantics(7) lists all rules.
    """
  ]

  static let domains: [Row] = [
    ("system", "/System and the root of the tree: read-only, even for root"),
    ("local", "/Applications, /Library and /Volumes: for the group of administrators"),
    ("network", "/Network: for root; it is for resources of other machines"),
    ("user", "/Users: each home belongs to its owner, and Shared to everyone"),
  ]

  static var store: [String] {
    [
      """
      A store is a plain directory, mode 0700, of whoever created it. Its format has the number
      \(StoreDescription.currentFormat). One daemon at a time serves a store. Do not change anything in it
      while its daemon runs.
      """
    ]
  }

  static let storeEntries: [Row] = [
    (
      "store.plist",
      "a property list that makes the directory a store: Format, UUID, Mode (system or rootless), "
        + "AdminGroup, Created and Options"
    ),
    ("tree/", "what a mount shows: each file and directory of the tree is one here, with the same name"),
    ("state/insula.db", "a database of sqlite3: installed apps, containers, grants and unfinished changes"),
    ("state/lock", "a file that is locked for as long as a daemon or a command works on the store"),
    ("state/updates/", "new versions of running apps, which take their places when the apps end"),
    ("state/sources/", "the dates of the last indexes that were seen of directories and servers of apps"),
    ("state/staging/", "objects that are being created, before they get their names in the tree"),
    ("state/system/", "the version of the system domain to which 'insula system rollback' returns"),
    ("state/daemon.log", "what the daemon reports when it runs in the background"),
    ("state/gave-up", "why a mount was removed after its process had died too often, until the next mount"),
    ("keys/trust/", "the certificates of the roots under which apps can be installed"),
  ]

  static let attributes: [Row] = [
    ("system.insula.acl", "the ACL, in Apple's binary form"),
    ("system.insula.flags", "the BSD flags"),
    ("system.insula.name[.LANGUAGE]", "what the object is called for a person; read-only"),
    ("user.com.apple.system.Security", "the ACL again, under the name that programs copy"),
    ("user.org.insula.flags", "the flags again, under a name that programs copy"),
    ("system.nfs4_acl", "the ACL, in the form of NFSv4"),
  ]

  static let backingAttributes: [Row] = [
    ("trusted.insula.acl, user.insula.acl", "the ACL, in root's stores and in an ordinary user's"),
    (
      "trusted.insula.flags, user.insula.flags",
      "the flags, in root's stores and in an ordinary user's: four bytes, the most significant first"
    ),
  ]

  static let backups = [
    """
    'insula backup run' lets any backup program see exactly what of a mounted tree is to be backed up.
    """,
    """
    Any tool that keeps owners, modes, links and extended attributes can back up a whole store, for example
    'rsync -aHAX' or 'tar --xattrs --xattrs-include=*', preferably while the store is not mounted.
    'insula check' checks a restored store. 'insula check --repair' gives a copy a UUID of its own.
    """,
  ]
}
