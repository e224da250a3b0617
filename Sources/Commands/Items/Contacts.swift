// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// `insula contacts`.
struct ContactsCommand: Command {
  static let worksInApps = true
  private static let told = ToldItems(
    kind: .contacts,
    columns: [
      ("NAME", ["name"]), ("EMAIL", ["emails"]), ("PHONE", ["phones"]),
    ])
  static let description = told.description(
    "Tells an app which contacts its user has",
    """
    JSON has of each contact of the address book (vCard files): id, name, given, family, organization, emails,
    phones, addresses, birthday and note.
    """)

  private let json: Bool

  init(_ arguments: ParsedArguments) { json = arguments.has("json") }

  func run(in context: Context) throws -> ExitCode {
    try Self.told.tell(json: json, Self.description, context)
  }
}
