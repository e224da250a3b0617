// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension RegistrySchema {
  /// The steps that came last; see ``steps``.
  static let laterSteps: [Step] = [
    Step(
      name: "homes of removed containers",
      statements: [
        // Which home a container was removed from, see RemovedContainer; of those before that is not known.
        "ALTER TABLE removed ADD COLUMN home_inode INTEGER",
        "ALTER TABLE removed ADD COLUMN home_handle BLOB",
        "ALTER TABLE removed ADD COLUMN home_created INTEGER",
        "PRAGMA user_version = 21",
      ]),
    Step(
      name: "grants in ejected homes",
      statements: [
        // The path of the home's volume, while what others have granted there gives nothing: another home may
        // have its name. What was granted there since can't be told from that.
        "ALTER TABLE grants ADD COLUMN ejected BLOB",
        "CREATE INDEX grants_in_ejected_homes ON grants (ejected) WHERE ejected IS NOT NULL",
        """
        UPDATE grants SET ejected = (
          SELECT min(home.path) FROM ejected_homes AS home
          WHERE home.owner IS NOT grants.user
            AND substr(CAST(grants.path || '/' AS BLOB), 1, length(home.name) + 7)
              = CAST('Users/' || home.name || '/' AS BLOB))
        """,
        "PRAGMA user_version = 22",
      ]),
  ]
}
