// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension ManualPages {
  /// insula(1): what it is, all commands, and what holds for all of them.
  static let overview = ManualPage(
    name: "insula", section: 1, about: "a filesystem with the organization of Apple's platforms"
  ) { roff in
    roff.heading("SYNOPSIS")
    roff.synopsis("insula COMMAND ...")
    roff.heading("DESCRIPTION")
    ManualText.introduction.forEach { roff.paragraph($0) }
    roff.heading("COMMANDS")
    for group in Insula.groups {
      roff.subheading(group.title)
      for command in group.commands {
        roff.item("insula \(command.description.synopsis)", command.description.summary)
      }
    }
    roff.heading("EXIT STATUS")
    for row in ExitCode.table { roff.item(row.number, String(row.meaning.map { $0 == "`" ? "'" : $0 })) }
    roff.heading("ENVIRONMENT")
    for row in ManualText.environment { roff.item(row.term, row.text) }
    roff.heading("FILES")
    for row in ManualText.files { roff.item(row.term, row.text) }
    roff.heading("EXAMPLES")
    roff.lines(ManualText.examples)
    roff.heading("SEE ALSO")
    roff.paragraph("Each command has a page of its own, such as insula-mount(1) or insula-user-add(1).")
    roff.paragraph("Related pages:")
    roff.references([
      ("insula.conf", 5), ("insula", 7), ("insula-semantics", 7), ("mount.insula", 8), ("bwrap", 1),
      ("fuse", 4), ("mount", 8),
    ])
  }

  /// insula(7): the tree, the format of a store, and the attributes.
  static let store = ManualPage(
    name: "insula", section: 7, about: "the tree, the store and the extended attributes of Insula"
  ) { roff in
    roff.heading("DESCRIPTION")
    ManualText.tree.forEach { roff.paragraph($0) }
    roff.heading("DOMAINS")
    for row in ManualText.domains { roff.item(row.term, row.text) }
    roff.heading("STORE")
    ManualText.store.forEach { roff.paragraph($0) }
    for row in ManualText.storeEntries { roff.item(row.term, row.text) }
    roff.heading("EXTENDED ATTRIBUTES")
    roff.paragraph("Through a mount, programs see these attributes of each file and directory:")
    for row in ManualText.attributes { roff.item(row.term, row.text) }
    roff.paragraph("In the store, the backing file holds them under other names:")
    for row in ManualText.backingAttributes { roff.item(row.term, row.text) }
    roff.heading("BACKUPS")
    ManualText.backups.forEach { roff.paragraph($0) }
    roff.heading("SEE ALSO")
    roff.references([
      ("insula", 1), ("insula-acl", 1), ("insula-flags", 1), ("insula-check", 1), ("insula-semantics", 7),
      ("xattr", 7),
    ])
  }

  /// mount.insula(8): the helper of mount(8), and all options.
  static let mountHelper = ManualPage(
    name: "mount.insula", section: 8, about: "mount an Insula store with mount(8) or from fstab(5)"
  ) { roff in
    roff.heading("SYNOPSIS")
    roff.synopsis("mount -t fuse.insula STORE MOUNTPOINT [-o OPTIONS]")
    roff.heading("DESCRIPTION")
    ManualText.mountHelper.forEach { roff.paragraph($0) }
    roff.heading("OPTIONS")
    for option in MountOptionHelp.all { roff.item(option.spelling, option.help) }
    roff.paragraph(MountOptionHelp.general)
    roff.heading("EXIT STATUS")
    roff.item("0", "the store is mounted")
    roff.item("1", "the command line is wrong")
    roff.item("32", "the store can't be mounted; the message says why")
    roff.heading("EXAMPLES")
    roff.lines(ManualText.mountExamples)
    roff.heading("SEE ALSO")
    roff.references([
      ("insula", 1), ("insula-mount", 1), ("fstab", 5), ("insula.conf", 5), ("mount", 8),
    ])
  }
}
