// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// What insula.conf(5) says besides the keys.

extension ManualText {
  static let configuration = [
    """
    The first file is the machine's and counts for everyone. The second one is a user's own and counts for
    that user; it is $XDG_CONFIG_HOME/insula/insula.conf if that variable is set. Root has no file of its own.
    Neither file needs to exist.
    """,
    """
    What is given on the command line comes first, then variables of the environment (insula(1)), the user's
    file, the machine's file, and what is built in. 'insula config' shows each value and where it comes from.
    """,
    """
    A running mount keeps the options that it was mounted with, also when it is restarted. The unit
    insula.service looks for the store at /var/lib/insula: who configures another place changes the unit too
    ('systemctl edit').
    """,
  ]

  static let configurationFormat = [
    """
    A file is text in UTF-8: 'key = value' in lines of their own, below the '[section]' that they belong to.
    Blanks around the key and the value do not count. A line that begins with '#' is a comment. A value that
    contains ' #', or begins or ends with a blank, is put between double quotes.
    """,
    """
    A line that makes no sense stops every command that goes by the file, with a message that names the line:
    unknown sections and keys, a key that is set twice, values that are out of range. 'insula config --check'
    checks the files, or another file before it is put in its place. A file has at most
    \(ConfigurationText.sizeLimit) bytes, and a line at most \(ConfigurationText.lineLimit).
    """,
  ]

  static let configurationSecurity = [
    """
    A file counts only if nobody but root, or for a user's file that user, could have written it: it and its
    directory must belong to them, and must not be writable by the group or by others. Otherwise commands stop
    and say what to do. A user's file never counts for what root does, nor for another user's commands.
    """
  ]

  static let configurationExample = [
    "# /etc/insula/insula.conf", "[machine]", "store = /srv/insula", "admin-group = staff", "", "[mount]",
    "options = noatime,nosuid", "", "# ~/.config/insula/insula.conf", "[user]", "store = ~/stores/main", "",
    "[sign]", "identity = Anna at work",
  ]

  /// The keys with their sections, as a topic of the help.
  static var configurationKeys: [Row] {
    ConfigurationKey.all.map { key in
      ("[\(key.section.rawValue)] \(key.name)", "\(key.help) (default: \(key.builtInWords))")
    }
  }
}
