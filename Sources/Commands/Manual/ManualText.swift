// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What only the manual and the help's topics say.
enum ManualText {
  typealias Row = (term: String, text: String)

  static let introduction = [
    """
    Insula gives a machine the file system organization of Apple's platforms and enforces it: four domains,
    macOS ACLs and BSD flags, signed apps that nobody can modify, a container for each app and user, and a
    restricted view of the tree for each running app.
    """,
    """
    All data is in a plain directory, the store; 'insula init' creates one. 'insula mount' shows its tree at a
    mount point. Root's store is for all users of the machine; an ordinary user's is for that user alone.
    """,
    "'insula COMMAND --help' prints what the page of the command says.",
    """
    Results are printed to standard output; errors and notes, which begin with 'insula:', to standard error.
    -q prints only results and errors, and -v says which files, store and daemon are used. With --json,
    results are JSON, and so is every line on standard error:
    {"error": {"code": ..., "exit": ..., "message": ...}} or {"note": {"message": ...}}, with more "lines" if
    there are any. On a terminal, some words have colours, unless NO_COLOR is set or TERM is 'dumb'.
    """,
  ]

  static var environment: [Row] {
    [
      ("HOME", "the home directory, from which the default places of an ordinary user follow"),
      (
        "XDG_DATA_HOME",
        "where an ordinary user's store is, as insula, and desktop entries are (default: ~/.local/share)"
      ),
      (
        "XDG_CONFIG_HOME",
        "where insula.conf, identities and trusted roots are, in insula (default: ~/.config)"
      ),
      ("XDG_RUNTIME_DIR", "where the control sockets of an ordinary user's mounts are, in insula"),
      ("INSULA_JOURNAL", "the journal's socket, for daemons (default: systemd's); empty for none"),
      ("NO_COLOR", "if it is set to anything, nothing is printed in colours"),
      ("PATH", "where fusermount3 and bwrap are looked for, besides /usr/bin, /bin, /usr/sbin and /sbin"),
    ]
  }

  static var files: [Row] {
    [
      ("/var/lib/insula", "root's store"),
      ("/insula", "where it is mounted"),
      (
        "/var/lib/insula-machine",
        "what this machine notes of root's stores: which volumes were added here; a user's is "
          + "~/.local/state/insula"
      ),
      ("~/.local/share/insula", "an ordinary user's store"),
      ("~/Insula", "where it is mounted"),
      (
        "~/.local/share/applications, ~/.local/share/mime",
        "the entries that 'insula handlers --desktop' makes for a desktop"
      ),
      ("~/.config/insula/identities", "the user's identities, with which bundles can be signed"),
      ("~/.config/insula/trust", "the roots that the user trusts"),
      ("/etc/insula/insula.conf, ~/.config/insula/insula.conf", "the configuration; see insula.conf(5)"),
      ("/run/insula", "the control sockets of root's mounts"),
      ("state/log", "in a store, what 'insula log' shows"),
      ("/usr/sbin/mount.fuse.insula", "the helper of mount(8); see mount.insula(8)"),
      ("insula.service", "a unit of systemd for root's store, and one of the same name for a user's own"),
      (
        "insula-agent.service",
        "a unit for a user's agent, which asks on their desktop what apps want to know"
      ),
      (
        "insula-lock.service",
        "units that lock encrypted volumes: root's before the machine sleeps, a user's when they log out"
      ),
    ]
  }

  static let examples = [
    "insula init", "insula mount", "insula user add anna",
    "insula acl +a 'everyone deny delete' ~/Insula/Users/anna/Documents",
    "insula unmount",
  ]

  static let mountHelper = [
    """
    mount(8) runs this helper for the types insula and fuse.insula. It calls 'insula mount' with the same
    store, mount point and options, and returns when the mount is ready.
    """,
    "A line in /etc/fstab mounts a store when the machine starts. Only root can use this helper.",
  ]

  static let mountExamples = [
    "mount -t fuse.insula /var/lib/insula /insula -o noatime",
    "/var/lib/insula  /insula  fuse.insula  defaults,nofail  0  0",
  ]
}
