// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// `insula songs`.
struct SongsCommand: Command {
  static let worksInApps = true
  private static let told = ToldItems(
    kind: .songs,
    columns: [
      ("ARTIST", ["artist"]), ("ALBUM", ["album"]), ("TITLE", ["title"]),
    ])
  static let description = told.description(
    "Tells an app which songs its user has",
    """
    JSON has of each song what its tags say: title, artist, album, genre, year, track and duration (in
    seconds), and an id by which the app knows it again for as long as it runs.
    """)

  private let json: Bool

  init(_ arguments: ParsedArguments) { json = arguments.has("json") }

  func run(in context: Context) throws -> ExitCode {
    try Self.told.tell(json: json, Self.description, context)
  }
}
