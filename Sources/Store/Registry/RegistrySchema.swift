// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// How the registry's database came to look as it does: each step has a name, and is done whole or not at
/// all.
///
/// What is released is never changed; what is to be different is a further step.
enum RegistrySchema {
  struct Step {
    let name: String
    let statements: [StaticString]
  }

  /// `INSL`: tells our database from any other.
  static let application: Int64 = 0x494e_534c

  /// The version after all steps.
  static var version: Int { steps.count }

  /// The last statement of each sets the version that it leads to.
  static let steps = earlierSteps + laterSteps

  private static let earlierSteps: [Step] = [
    Step(
      name: "apps and containers",
      statements: [
        "PRAGMA application_id = 0x494e534c",
        """
        CREATE TABLE migrations (
          version INTEGER PRIMARY KEY,
          name TEXT NOT NULL
        ) STRICT
        """,
        // Identifiers that differ in case only would be one app on a Mac.
        """
        CREATE TABLE apps (
          id INTEGER PRIMARY KEY,
          identifier TEXT NOT NULL COLLATE NOCASE,
          user INTEGER,
          name TEXT NOT NULL,
          executable TEXT NOT NULL,
          version TEXT NOT NULL,
          short_version TEXT NOT NULL,
          team TEXT NOT NULL,
          path TEXT NOT NULL UNIQUE,
          seal BLOB NOT NULL,
          installed INTEGER NOT NULL
        ) STRICT
        """,
        "CREATE UNIQUE INDEX apps_of_the_machine ON apps (identifier) WHERE user IS NULL",
        "CREATE UNIQUE INDEX apps_of_users ON apps (identifier, user) WHERE user IS NOT NULL",
        """
        CREATE TABLE app_groups (
          app INTEGER NOT NULL REFERENCES apps ON DELETE CASCADE,
          position INTEGER NOT NULL,
          identifier TEXT NOT NULL,
          PRIMARY KEY (app, identifier)
        ) STRICT
        """,
        "CREATE INDEX members_of_groups ON app_groups (identifier)",
        """
        CREATE TABLE app_clouds (
          app INTEGER NOT NULL REFERENCES apps ON DELETE CASCADE,
          position INTEGER NOT NULL,
          identifier TEXT NOT NULL,
          PRIMARY KEY (app, identifier)
        ) STRICT
        """,
        // Not bound to an app: one may go and leave its containers to the next.
        """
        CREATE TABLE containers (
          uuid TEXT PRIMARY KEY,
          kind TEXT NOT NULL CHECK (kind IN ('data', 'group', 'cloud')),
          identifier TEXT NOT NULL,
          user INTEGER NOT NULL,
          path TEXT NOT NULL UNIQUE,
          doomed INTEGER NOT NULL DEFAULT 0 CHECK (doomed IN (0, 1)),
          UNIQUE (kind, identifier, user)
        ) STRICT
        """,
        "PRAGMA user_version = 1",
      ]),
    Step(
      name: "intents",
      statements: [
        // What is being done to an app's bundle, so that the next process can end it.
        """
        CREATE TABLE intents (
          id INTEGER PRIMARY KEY,
          intent TEXT NOT NULL
        ) STRICT
        """,
        "PRAGMA user_version = 2",
      ]),
    Step(
      name: "system domain",
      statements: [
        // What lies in /System, what lay there before, and what is about to.
        """
        CREATE TABLE systems (
          role TEXT PRIMARY KEY CHECK (role IN ('current', 'previous', 'next')),
          root BLOB NOT NULL,
          version TEXT NOT NULL,
          team TEXT NOT NULL,
          installed INTEGER NOT NULL
        ) STRICT
        """,
        "PRAGMA user_version = 3",
      ]),
    Step(
      name: "grants",
      statements: [
        // Not bound to an app: whose app it is that a user has can change without anyone asking for that.
        // Paths are bytes, as the kernel has them.
        """
        CREATE TABLE grants (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          identifier TEXT NOT NULL,
          user INTEGER NOT NULL,
          team TEXT NOT NULL,
          path BLOB NOT NULL,
          writable INTEGER NOT NULL CHECK (writable IN (0, 1)),
          directory INTEGER NOT NULL CHECK (directory IN (0, 1)),
          inode INTEGER NOT NULL,
          handle BLOB NOT NULL,
          created INTEGER NOT NULL,
          granted INTEGER NOT NULL
        ) STRICT
        """,
        "CREATE INDEX grants_of_apps ON grants (identifier, user)",
        "PRAGMA user_version = 4",
      ]),
    Step(
      name: "objects of containers",
      statements: [
        // Which directory was made; nothing where that was before this step, or where the store is a copy of
        // another one.
        "ALTER TABLE containers ADD COLUMN inode INTEGER",
        "ALTER TABLE containers ADD COLUMN handle BLOB",
        "ALTER TABLE containers ADD COLUMN created INTEGER",
        // The tree in which those are.
        """
        CREATE TABLE trees (
          one INTEGER PRIMARY KEY CHECK (one = 1),
          inode INTEGER NOT NULL,
          handle BLOB NOT NULL,
          created INTEGER NOT NULL
        ) STRICT
        """,
        "PRAGMA user_version = 5",
      ]),
    Step(
      name: "roots of teams",
      statements: [
        // A team is a text under a root: anyone may write the text. Digests of certificates; nothing where it
        // is not known yet.
        "ALTER TABLE apps ADD COLUMN root BLOB",
        "ALTER TABLE grants ADD COLUMN root BLOB",
        // Whose apps' a container is.
        "ALTER TABLE containers ADD COLUMN team TEXT",
        "ALTER TABLE containers ADD COLUMN root BLOB",
        // Which root speaks for a team here.
        """
        CREATE TABLE teams (
          team TEXT PRIMARY KEY,
          root BLOB NOT NULL
        ) STRICT
        """,
        "PRAGMA user_version = 6",
      ]),
    Step(
      name: "waiting updates",
      statements: [
        // The version that takes the place of an app when it ends, at most one for each: it goes with the
        // app, and with any other change of it.
        """
        CREATE TABLE updates (
          app INTEGER PRIMARY KEY REFERENCES apps ON DELETE CASCADE,
          waiting TEXT NOT NULL
        ) STRICT
        """,
        "PRAGMA user_version = 7",
      ]),
    Step(
      name: "consents",
      statements: [
        // What users have decided about apps and what is private. Not bound to an app, as grants are not.
        """
        CREATE TABLE consents (
          identifier TEXT NOT NULL COLLATE NOCASE,
          user INTEGER NOT NULL,
          service TEXT NOT NULL,
          team TEXT NOT NULL,
          root BLOB,
          allowed INTEGER NOT NULL CHECK (allowed IN (0, 1)),
          changed INTEGER NOT NULL,
          PRIMARY KEY (identifier, user, service)
        ) STRICT
        """,
        "PRAGMA user_version = 8",
      ]),
    Step(
      name: "types and documents",
      statements: [
        // What apps say of them (AppDeclarations); where a row is missing, the bundle has not been asked yet.
        """
        CREATE TABLE declarations (
          app INTEGER PRIMARY KEY REFERENCES apps ON DELETE CASCADE,
          text TEXT NOT NULL
        ) STRICT
        """,
        // Which app a user has chosen for a type: it counts while an app of that team is there.
        """
        CREATE TABLE openers (
          user INTEGER NOT NULL,
          type TEXT NOT NULL COLLATE NOCASE,
          identifier TEXT NOT NULL COLLATE NOCASE,
          team TEXT NOT NULL,
          root BLOB,
          PRIMARY KEY (user, type)
        ) STRICT
        """,
        "PRAGMA user_version = 9",
      ]),
    Step(
      name: "documents that apps share",
      statements: [
        // What was read before does not say; each bundle is asked again.
        "DELETE FROM declarations",
        "PRAGMA user_version = 10",
      ]),
    Step(
      name: "volumes",
      statements: [
        // Directories outside the store that are volumes of its tree. Names and paths are bytes, as the
        // kernel has them; without an owner it is for all.
        """
        CREATE TABLE volumes (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          name BLOB NOT NULL,
          path BLOB NOT NULL,
          inode INTEGER NOT NULL,
          handle BLOB NOT NULL,
          created INTEGER NOT NULL,
          owner INTEGER,
          read_only INTEGER NOT NULL CHECK (read_only IN (0, 1)),
          added INTEGER NOT NULL
        ) STRICT
        """,
        "PRAGMA user_version = 11",
      ]),
    Step(
      name: "disks and servers",
      statements: [
        // What a volume is: 0 a directory, 1 a disk, whose path may be UUID=... instead and whose handle is
        // the number of its format, 2 a directory of a server, whose path is a URL.
        "ALTER TABLE volumes ADD COLUMN kind INTEGER NOT NULL DEFAULT 0 CHECK (kind BETWEEN 0 AND 2)",
        // See VolumeRecord.Options.
        "ALTER TABLE volumes ADD COLUMN options INTEGER NOT NULL DEFAULT 0",
        "PRAGMA user_version = 12",
      ]),
    Step(
      name: "servers of the network",
      statements: [
        // The directory of the tree in which a volume has its name.
        "ALTER TABLE volumes ADD COLUMN place TEXT NOT NULL DEFAULT 'Volumes'",
        "PRAGMA user_version = 13",
      ]),
    Step(
      name: "kept containers",
      statements: [
        // Who keeps a container whose app is gone, see Keeper; 0 while an app uses it.
        "ALTER TABLE containers ADD COLUMN kept INTEGER NOT NULL DEFAULT 0 CHECK (kept BETWEEN 0 AND 2)",
        // What has no app by now was kept, or it would be gone; by whom was not noted.
        """
        UPDATE containers SET kept = 2
        WHERE doomed = 0 AND kind IN ('data', 'group') AND NOT EXISTS (
          SELECT 1 FROM apps LEFT JOIN app_groups ON app_groups.app = apps.id
          WHERE (apps.user IS NULL OR apps.user = containers.user)
            AND (containers.kind = 'data' AND apps.identifier = containers.identifier
              OR containers.kind = 'group' AND app_groups.identifier = containers.identifier COLLATE NOCASE))
        """,
        "PRAGMA user_version = 14",
      ]),
    Step(
      name: "removed containers",
      statements: [
        // See RemovedContainer.
        """
        CREATE TABLE removed (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          uuid TEXT NOT NULL UNIQUE,
          kind TEXT NOT NULL CHECK (kind IN ('data', 'group', 'cloud')),
          identifier TEXT NOT NULL,
          user INTEGER NOT NULL,
          path TEXT NOT NULL,
          team TEXT,
          root BLOB,
          inode INTEGER,
          handle BLOB,
          created INTEGER,
          removed INTEGER NOT NULL,
          deleting INTEGER NOT NULL DEFAULT 0 CHECK (deleting IN (0, 1))
        ) STRICT
        """,
        "CREATE INDEX removed_of_users ON removed (user)",
        "PRAGMA user_version = 15",
      ]),
    Step(
      name: "adoptions",
      statements: [
        // See AdoptionIntent.
        """
        CREATE TABLE adoptions (
          home TEXT PRIMARY KEY,
          former INTEGER NOT NULL,
          owner INTEGER NOT NULL
        ) STRICT
        """,
        // The roots under which a team had something here when an administrator named another one.
        """
        CREATE TABLE former_roots (
          team TEXT NOT NULL,
          root BLOB NOT NULL,
          PRIMARY KEY (team, root)
        ) STRICT
        """,
        "PRAGMA user_version = 16",
      ]),
    Step(
      name: "holders of numbers",
      statements: [
        // What the account of a user's number was called when it decided something for the first time.
        """
        CREATE TABLE holders (
          user INTEGER PRIMARY KEY,
          name TEXT NOT NULL
        ) STRICT
        """,
        // Whose a home elsewhere is: while it is away it can't be looked at. A row of a volume that is gone
        // says nothing, since no other volume gets its number.
        """
        CREATE TABLE home_owners (
          volume INTEGER PRIMARY KEY,
          owner INTEGER NOT NULL
        ) STRICT
        """,
        "PRAGMA user_version = 17",
      ]),
    Step(
      name: "identifiers in any case",
      statements: [
        // An index serves comparisons of its own kind alone.
        """
        CREATE INDEX IF NOT EXISTS containers_in_any_case
        ON containers (kind, identifier COLLATE NOCASE)
        """,
        "CREATE INDEX IF NOT EXISTS groups_in_any_case ON app_groups (identifier COLLATE NOCASE)",
        "CREATE INDEX IF NOT EXISTS clouds_in_any_case ON app_clouds (identifier COLLATE NOCASE)",
        "CREATE INDEX IF NOT EXISTS containers_of_users ON containers (user)",
        "PRAGMA user_version = 18",
      ]),
    Step(
      name: "ejected homes",
      statements: [
        // Homes elsewhere that are no volumes any more and may come back. Names and paths are those of the
        // volumes; without an owner nobody knows whose it was.
        """
        CREATE TABLE IF NOT EXISTS ejected_homes (
          name BLOB NOT NULL,
          path BLOB NOT NULL,
          owner INTEGER,
          PRIMARY KEY (name, path)
        ) STRICT
        """,
        "PRAGMA user_version = 19",
      ]),
    Step(
      name: "grants in any case",
      statements: [
        // As for containers: each change of an app looks for the grants of its identifier.
        """
        CREATE INDEX IF NOT EXISTS grants_in_any_case ON grants (identifier COLLATE NOCASE, user)
        """,
        "PRAGMA user_version = 20",
      ]),
  ]
}
