// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension ManualPages {
  /// insula.conf(5): the configuration files, made of the table of their keys.
  static let configuration = ManualPage(
    name: "insula.conf", section: 5, about: "configuration files of insula"
  ) { roff in
    roff.heading("SYNOPSIS")
    roff.lines(["/etc/insula/insula.conf", "~/.config/insula/insula.conf"])
    roff.heading("DESCRIPTION")
    ManualText.configuration.forEach { roff.paragraph($0) }
    roff.heading("FORMAT")
    ManualText.configurationFormat.forEach { roff.paragraph($0) }
    roff.heading("KEYS")
    for section in ConfigurationKey.Section.allCases {
      roff.subheading("[\(section.rawValue)]: \(section.help)")
      for key in ConfigurationKey.all where key.section == section {
        roff.item("\(key.name) =", "\(key.help) (default: \(key.builtInWords)). It is \(key.kind.help).")
      }
    }
    roff.heading("SECURITY")
    ManualText.configurationSecurity.forEach { roff.paragraph($0) }
    roff.heading("EXAMPLES")
    roff.lines(ManualText.configurationExample)
    roff.heading("SEE ALSO")
    roff.references([("insula", 1), ("insula-config", 1), ("insula-mount", 1), ("mount.insula", 8)])
  }
}
