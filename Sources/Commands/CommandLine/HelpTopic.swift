// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// What `insula help` explains besides the commands.
struct HelpTopic: Sendable {
  let name: String
  let text: @Sendable () -> String

  static let all = [
    HelpTopic(name: "commands", text: HelpText.commands),
    HelpTopic(name: "exit-codes") {
      HelpText.table(ExitCode.table.map { ($0.number, $0.meaning.replacing(each: "`", by: "'")) })
    },
    HelpTopic(name: "mount-options") { HelpText.table(MountOptionHelp.all.map { ($0.spelling, $0.help) }) },
    HelpTopic(name: "configuration") {
      HelpText.table(ManualText.configurationKeys.map { ($0.term, $0.text) })
    },
    HelpTopic(name: "environment") { HelpText.table(ManualText.environment.map { ($0.term, $0.text) }) },
    HelpTopic(name: "files") { HelpText.table(ManualText.files.map { ($0.term, $0.text) }) },
    HelpTopic(name: "store") {
      HelpText.table((ManualText.storeEntries + ManualText.attributes).map { ($0.term, $0.text) })
    },
  ]
}
