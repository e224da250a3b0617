// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

extension ManualPages {
  /// The page of a command, with what `--help` prints, and where to read on.
  static func page(for description: CommandDescription) -> ManualPage {
    let about = description.summary.hasSuffix(".") ? description.summary.dropLast() : description.summary[...]
    return ManualPage(
      name: name(of: description), section: 1, about: about.prefix(1).lowercased() + about.dropFirst()
    ) { roff in
      roff.heading("SYNOPSIS")
      roff.synopsis("insula \(description.synopsis)")
      roff.heading("DESCRIPTION")
      roff.paragraph(description.summary)
      description.details.forEach { write($0, &roff) }
      writeItems(of: description, &roff)
      if !description.examples.isEmpty {
        roff.heading("EXAMPLES")
        roff.lines(description.examples)
      }
      roff.heading("EXIT STATUS")
      roff.paragraph("0 if it was done; insula(1) lists the other codes.")
      roff.heading("SEE ALSO")
      roff.references(references(of: description))
    }
  }

  private static func writeItems(of description: CommandDescription, _ roff: inout Roff) {
    let arguments = [description.change].compactMap(\.self) + description.arguments
    if !arguments.isEmpty { roff.heading("ARGUMENTS") }
    for argument in arguments { roff.item(argument.name, argument.help) }
    if !description.actions.isEmpty { roff.heading("ACTIONS") }
    for action in description.actions {
      roff.item(([action.word] + action.values).joined(separator: " "), action.help)
    }
    roff.heading("OPTIONS")
    for option in description.options where !option.isHidden { roff.item(option.spelling, option.help) }
    for option in CommandDescription.general { roff.item(option.spelling, option.help) }
    roff.item(description.helpSpellings.joined(separator: ", "), "print help")
  }

  /// A paragraph of a command's help: what is set in stays in its lines.
  private static func write(_ paragraph: String, _ roff: inout Roff) {
    var prose: [String] = []
    var table: [String] = []
    func end(_ roff: inout Roff) {
      if !prose.isEmpty { roff.paragraph(prose.joined(separator: " ")) }
      // Words that were only wrapped fit any width; what has columns stays as it is.
      if table.contains(where: { zip($0, $0.dropFirst()).contains { $0 == " " && $1 == " " } }) {
        roff.lines(table)
      } else if !table.isEmpty {
        roff.indented(table.joined(separator: " "))
      }
      (prose, table) = ([], [])
    }
    for line in paragraph.parts(between: "\n", keepingEmpty: true).map(String.init) {
      if line.hasPrefix("  ") {
        table.append(String(line.dropFirst(2)))
      } else {
        if !table.isEmpty { end(&roff) }
        prose.append(line)
      }
    }
    end(&roff)
  }

  private static func references(of description: CommandDescription) -> [(name: String, section: Int)] {
    let others = (CommandGroup.containing(description)?.commands ?? []).map { name(of: $0.description) }
    let more: [(String, Int)] =
      switch description.name {
      case "mount": [("insula.conf", 5), ("mount.insula", 8)]
      case "config": [("insula.conf", 5)]
      default: []
      }
    return [("insula", 1)] + others.filter { $0 != name(of: description) }.map { ($0, 1) } + more
      + [("insula-semantics", 7)]
  }
}
