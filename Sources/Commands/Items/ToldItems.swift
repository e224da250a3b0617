// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import JSON
internal import Policy

/// What the commands have in common by which an app is told what is private.
struct ToldItems: Sendable {
  let kind: PrivateItems
  /// A column's title, and the keys of what is in it: the first that there is.
  let columns: [(title: String, keys: [String])]

  /// `summary` says what is told, and `details` what JSON has of it.
  func description(_ summary: String, _ details: String) -> CommandDescription {
    CommandDescription(
      name: kind.rawValue, summary: "\(summary); for use inside an app.", options: [CommandDescription.json],
      details: [
        details,
        """
        The app gets no file that this is in. If its user has not decided yet whether it may use
        \(kind.service.title) ('\(kind.service.rawValue)'), they are asked, and this waits for the answer.
        The exit status is \(ExitCode.notPermitted.rawValue) if it may not.
        'insula run', which has started the app, reads for it, and leaves out what it can't read.
        """,
      ],
      examples: ["insula \(kind.rawValue) --json"])
  }

  /// Prints all of them.
  func tell(json: Bool, _ description: CommandDescription, _ context: Context) throws -> ExitCode {
    let own = try AppAccess.require(description, context, instead: "outside, the files themselves are there")
    let (items, unread) = try own.items(kind)
    if unread > 0 {
      context.console.inform("\(kind.rawValue): \(unread) files could not be read, and were left out")
    }
    context.console.print(
      list: items, json: json, none: "There are no \(kind.rawValue).", columns: columns.map(\.title)
    ) { item in columns.map { item.cell($0.keys) } }
    return .ok
  }
}

extension JSONValue {
  /// What a table has of it.
  fileprivate func cell(_ keys: [String]) -> String {
    guard case .object(let fields) = self else { return "-" }
    let values = keys.lazy.compactMap { fields[$0] }.filter { $0 != .null && $0 != .array([]) }
    return values.first?.description ?? "-"
  }
}
