// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

// How a team may try to get another team's data by a backup: with an app that is in the backup, and whose
// next version, installed where it is restored, has a right to the other team's group and iCloud container;
// or with an app of the other one's identifier.

/// Data in backups are for apps of the team whose they were.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BackupTeamTests {
  private static let rights = """
    <key>com.apple.security.application-groups</key><array><string>group.org.example.shared</string></array>
    <key>com.apple.developer.icloud-container-identifiers</key><array><string>iCloud.shared</string></array>
    """

  /// A store with an app that has data in a group and in iCloud, and with one of another team.
  private func prepare(rootless: Bool) throws -> BackupFixture {
    let fixture = try BackupFixture(rootless: rootless)
    let run = fixture.run
    try run.succeed("identity", "new", "evil", "--team", "ZZZZZ99999")
    try run.install("Shared", entitlements: Self.rights)
    try run.succeed("install", make("Evil", version: "1", by: "evil", run), "--store", run.mounted.store)
    _ = try fixture.succeed(
      """
      for place in home group:group.org.example.shared icloud; do
        "$INSULA" path org.example.shared $place --store "$POINT"; done
      "$INSULA" path org.example.evil home --store "$POINT"
      cd "$POINT/Users/$(id -un)/Library"
      echo secret >Containers/org.example.shared/Data/Documents/own-secret
      echo secret >"Group Containers/group.org.example.shared/group-secret"
      echo secret >"Mobile Documents/iCloud~shared/Documents/cloud-secret"
      echo harmless >Containers/org.example.evil/Data/Documents/harmless
      """)
    return fixture
  }

  /// Makes a signed app; its path.
  private func make(
    _ name: String, version: String, identifier: String? = nil, rights: String = "", by identity: String,
    _ run: RunFixture
  ) throws -> String {
    let place = "store/\(name)-\(version)"
    try run.mounted.temporary.makeDirectory(place, mode: 0o777)
    let path = run.mounted.temporary.appending(place)
    try run.succeed("new-app", name, path)
    let list = "\(path)/\(name).app/Contents/Info.plist"
    let script = """
      import plistlib, sys
      list = plistlib.load(open(sys.argv[1], "rb"))
      list["CFBundleVersion"] = sys.argv[2]
      if sys.argv[3]: list["CFBundleIdentifier"] = sys.argv[3]
      plistlib.dump(list, open(sys.argv[1], "wb"))
      """
    let edited = try Program.run(["python3", "-c", script, list, version, identifier ?? ""])
    try #require(edited.status == 0, "\(edited.errors)")
    let text = "<plist version=\"1.0\"><dict>\(rights)</dict></plist>"
    let entitlements = try run.mounted.temporary.write(text, to: "\(place)/rights")
    try run.succeed(
      "sign", "\(path)/\(name).app", "--identity", identity, "--entitlements", entitlements)
    return "\(path)/\(name).app"
  }

  private func succeed(_ store: MountedStore, _ words: String...) throws {
    let result = try store.run(words + ["--store", store.store])
    try #require(result.status == 0, "\(words): \(result.errors)")
  }

  /// What there is in a home of what is looked for.
  private func secrets(_ store: MountedStore, _ fixture: BackupFixture) throws -> [String] {
    let home = "\(store.point)/Users/\(fixture.run.user.name)"
    let found = try fixture.succeed("find '\(home)' -name '*-secret' -printf '%f\\n' | sort")
    return found.split(separator: "\n").map(String.init)
  }

  @Test(arguments: [false, true]) func groupsAndCloudsAreForTheirTeamAlone(rootless: Bool) throws {
    let fixture = try prepare(rootless: rootless)
    _ = try fixture.succeed("init; backup now --store \"$POINT\"")
    let (other, _) = try fixture.anotherStore()
    try succeed(other, "install", make("Evil", version: "2", rights: Self.rights, by: "evil", fixture.run))
    let restore = "backup restore --to '\(other.point)' --replace"
    let refused = try fixture.shell(restore)
    #expect(refused.status == 1, "\(refused)")
    for name in ["group.org.example.shared", "iCloud.shared"] {
      #expect(
        refused.errors.contains(
          "\(name): in the backup it belongs to apps of the team ABCDE12345, but org.example.evil is "
            + "signed by another team, ZZZZZ99999"), "\(refused.errors)")
    }
    let found = try secrets(other, fixture)
    #expect(found == [], "\(refused)")
    let harmless = "\(other.point)/Users/\(fixture.run.user.name)/Library/Containers/org.example.evil"
    #expect(try fixture.succeed("cat '\(harmless)/Data/Documents/harmless'") == "harmless\n")
    // The team's own app gets all of it.
    let (third, _) = try fixture.anotherStore()
    try succeed(
      third, "install", fixture.run.mounted.temporary.appending("store/Shared-made/Shared.app"))
    let restored = try fixture.shell("backup restore --to '\(third.point)' --replace")
    #expect(!restored.errors.contains("signed by another team"), "\(restored.errors)")
    #expect(try secrets(third, fixture) == ["cloud-secret", "group-secret", "own-secret"], "\(restored)")
  }

  /// An app of the other one's identifier, installed for everyone beside data that the other one has left.
  @Test(arguments: [false, true]) func ownContainersAreForTheirTeamAlone(rootless: Bool) throws {
    let fixture = try prepare(rootless: rootless)
    let store = fixture.run.mounted
    try succeed(store, "uninstall", "org.example.shared", "--keep-data")
    let impostor = try make(
      "Impostor", version: "1", identifier: "org.example.shared", by: "evil", fixture.run)
    // It is installed, and its containers can't be made for a caller who has those data.
    let installed = try store.run(["install", impostor, "--store", store.store])
    #expect(installed.status == (rootless ? 1 : 0), "\(installed)")
    _ = try fixture.succeed("init; backup now --store \"$POINT\"; bring \"$SCRATCH/new\"")
    let (other, _) = try fixture.anotherStore()
    try succeed(other, "install", impostor)
    for named in ["", " org.example.shared"] {
      let refused = try fixture.shell("backup restore --to '\(other.point)' --replace\(named)")
      #expect(
        refused.status == 1
          && refused.errors.contains(
            "org.example.shared: in the backup it belongs to apps of the team ABCDE12345, but "
              + "org.example.shared is signed by another team, ZZZZZ99999"),
        "\(refused)")
      #expect(try secrets(other, fixture) == [])
    }
  }

  /// While a backup is made, another team's app takes the place of the one that the backup has noted.
  @Test func whatWasAnothersWhenItWasReadIsLeftOut() throws {
    let fixture = try prepare(rootless: true)
    let impostor = try make(
      "Impostor", version: "1", identifier: "org.example.shared", by: "evil", fixture.run)
    let own = fixture.run.mounted.temporary.appending("store/Shared-made/Shared.app")
    // Where restic runs, the mount point shows the backup.
    let store = fixture.run.mounted.store
    let documents =
      "\(store)/tree/Users/\(fixture.run.user.name)/Library/Containers/org.example.shared/Data/Documents"
    let exchange = """
      exchange() {
        "$INSULA" uninstall org.example.shared --store '\(store)'
        "$INSULA" install "$1" --store '\(store)'; "$INSULA" path org.example.shared home --store '\(store)'
      }

      """
    let backup = try fixture.shell(
      exchange + """
        set -e; init; mkdir "$SCRATCH/bin"; restic=$(command -v restic)
        cat >"$SCRATCH/bin/restic" <<END
        #!/bin/sh
        INSULA='$INSULA'
        \(exchange.replacing("$", with: "\\$"))
        case " \\$* " in *" backup "*)
          exchange '\(impostor)' >'\(fixture.scratch)/said' 2>&1
          echo strange >'\(documents)/strange-secret';;
        esac
        exec $restic "\\$@"
        END
        chmod +x "$SCRATCH/bin/restic"; ls '\(documents)'
        export PATH="$SCRATCH/bin:$PATH"; backup now --store "$POINT" || echo failed
        cat "$SCRATCH/said" >&2; ls '\(documents)'
        """)
    #expect(backup.output.hasSuffix("strange-secret\n"), "\(backup)")
    let isSaid = backup.errors.contains("another app's container took the place of org.example.shared")
    #expect(isSaid && backup.output.contains("failed\n"), "\(backup)")
    let restored = try fixture.shell(
      exchange + """
        exchange '\(own)' >/dev/null
        backup restore --to "$POINT" --replace; backup restore --to "$POINT" --replace org.example.shared
        """)
    #expect(
      restored.errors.components(separatedBy: "org.example.shared: while the backup was made").count == 3,
      "\(restored)")
    #expect(try !secrets(fixture.run.mounted, fixture).contains("strange-secret"), "\(restored)")
  }

  /// A backup of an earlier version does not say whose an app's own data are.
  @Test(arguments: [false, true]) func earlierBackupsAreForAppsThatAreNamed(rootless: Bool) throws {
    let fixture = try prepare(rootless: rootless)
    let home = "\(fixture.run.mounted.point)/Users/\(fixture.run.user.name)"
    let secret = "\(home)/Library/Containers/org.example.shared/Data/Documents/own-secret"
    let restore = "\"$INSULA\" backup restore --from \"$SCRATCH/old$POINT\" --to \"$POINT\" --replace"
    let left = try fixture.shell(
      """
      set -e; init; backup now --store "$POINT"; bring "$SCRATCH/old"; rm '\(secret)'
      python3 - "$SCRATCH/old$POINT/manifest.json" <<'END'
      import json, sys
      manifest = json.load(open(sys.argv[1]))
      assert set(manifest.pop("kinds")) == {"data", "group", "cloud"}
      manifest["containers"] = [it for it in manifest["containers"] if it["kind"] != "data"]
      json.dump(manifest, open(sys.argv[1], "w"))
      END
      \(restore)
      """)
    #expect(left.status == 1, "\(left)")
    #expect(
      left.errors.contains(
        "org.example.shared: the backup does not say to which team's apps it belongs, so it was left out; "
          + "if it belongs to the one that is installed, signed by the team ABCDE12345, name the app: "
          + "'insula backup restore org.example.shared'"), "\(left.errors)")
    #expect(try secrets(fixture.run.mounted, fixture) == ["cloud-secret", "group-secret"])
    let named = try fixture.shell("\(restore) org.example.shared")
    #expect(named.status == 0, "\(named)")
    #expect(try secrets(fixture.run.mounted, fixture) == ["cloud-secret", "group-secret", "own-secret"])
  }

  @Test(arguments: [false, true]) func importedDataAreForTheirTeamAlone(rootless: Bool) throws {
    let fixture = try prepare(rootless: rootless)
    _ = try fixture.succeed("\"$INSULA\" backup export \"$SCRATCH/export\" --store \"$POINT\"")
    let (other, _) = try fixture.anotherStore()
    try succeed(other, "install", make("Evil", version: "2", rights: Self.rights, by: "evil", fixture.run))
    let load = "\"$INSULA\" backup import \"$SCRATCH/export\" --store '\(other.point)' --replace"
    let refused = try fixture.shell(load)
    #expect(refused.status == 1, "\(refused)")
    #expect(
      refused.errors.contains(
        "group.org.example.shared: the backup has data of apps of the team ABCDE12345, but the app that is "
          + "installed, org.example.evil, is signed by another team, ZZZZZ99999"), "\(refused.errors)")
    #expect(try secrets(other, fixture) == [])
    // An app of the other one's identifier, named by a person.
    try succeed(
      other, "install",
      make("Impostor", version: "1", identifier: "org.example.shared", by: "evil", fixture.run))
    let named = try fixture.shell("\(load) org.example.shared")
    #expect(named.status == 1 && named.errors.contains("is signed by another team, ZZZZZ99999"), "\(named)")
    #expect(try secrets(other, fixture) == [])
    let (third, _) = try fixture.anotherStore()
    try succeed(
      third, "install", fixture.run.mounted.temporary.appending("store/Shared-made/Shared.app"))
    let imported = try fixture.shell(load.replacing("\(other.point)", with: "\(third.point)"))
    #expect(imported.output.contains("Imported the data of group.org.example.shared"), "\(imported)")
    #expect(try secrets(third, fixture) == ["group-secret", "own-secret"])
  }

  /// A package says whose app's data it has.
  @Test(arguments: [false, true]) func packagesAreForTheirTeamAlone(rootless: Bool) throws {
    let fixture = try prepare(rootless: rootless)
    _ = try fixture.succeed(
      "\"$INSULA\" export org.example.shared \"$SCRATCH/x.xcappdata\" --store \"$POINT\"")
    let info = try fixture.shell("grep -A1 InsulaTeam \"$SCRATCH/x.xcappdata/AppDataInfo.plist\"")
    #expect(info.output.contains("ABCDE12345") && info.output.contains("InsulaTeamRoot"), "\(info)")
    let (other, _) = try fixture.anotherStore()
    try succeed(
      other, "install",
      make("Impostor", version: "1", identifier: "org.example.shared", by: "evil", fixture.run))
    let load = "\"$INSULA\" import \"$SCRATCH/x.xcappdata\" --store '\(other.point)' --replace"
    let refused = try fixture.shell(load)
    #expect(
      refused.status == 1
        && refused.errors.contains(
          "has data of apps of the team ABCDE12345, but the app that is installed, org.example.shared, is "
            + "signed by another team, ZZZZZ99999; nothing was changed"),
      "\(refused)")
    #expect(try secrets(other, fixture) == [])
    // Whoever names the app has decided.
    let named = try fixture.shell("\(load) --to org.example.shared")
    #expect(named.status == 0, "\(named)")
    #expect(try secrets(other, fixture) == ["own-secret"])
    let (third, _) = try fixture.anotherStore()
    try succeed(
      third, "install", fixture.run.mounted.temporary.appending("store/Shared-made/Shared.app"))
    let ours = load.replacing("\(other.point)", with: "\(third.point)")
    let imported = try fixture.shell(ours)
    #expect(imported.status == 0 && !imported.errors.contains("does not say"), "\(imported)")
    #expect(try secrets(third, fixture) == ["own-secret"])
    // Xcode's do not say it.
    let unknown = try fixture.shell(
      """
      sed -i '/InsulaTeam/,+1d' "$SCRATCH/x.xcappdata/AppDataInfo.plist"
      grep -c Insula "$SCRATCH/x.xcappdata/AppDataInfo.plist"; \(ours)
      """)
    #expect(
      unknown.status == 0 && unknown.output.hasPrefix("0\n")
        && unknown.errors.contains(
          "does not say whose app's data it has; org.example.shared of the team ABCDE12345 gets them"),
      "\(unknown)")
  }

  /// The same app in another spelling is the same app.
  @Test func importedDataAreForTheirTeamInWhateverSpelling() throws {
    let fixture = try prepare(rootless: false)
    _ = try fixture.succeed("\"$INSULA\" backup export \"$SCRATCH/export\" --store \"$POINT\"")
    let load = "\"$INSULA\" backup import \"$SCRATCH/export\" --replace --store"
    for (signer, isTheTeams) in [("evil", false), ("tester", true)] {
      let (other, _) = try fixture.anotherStore()
      try succeed(
        other, "install",
        make("Other\(signer)", version: "1", identifier: "Org.Example.Shared", by: signer, fixture.run))
      let documents = "\(other.point)/Users/\(fixture.run.user.name)/Library/Containers/Org.Example.Shared"
      _ = try fixture.succeed(
        """
        "$INSULA" path Org.Example.Shared documents --store '\(other.point)'
        echo own >'\(documents)/Data/Documents/own'
        """)
      for named in ["", " org.example.shared"] {
        let imported = try fixture.shell("\(load) '\(other.point)'\(named)")
        let text = try fixture.shell("cat '\(documents)/Data/Documents/'*").output
        let isRefused = imported.errors.contains(
          "the backup has data of apps of the team ABCDE12345, but the app that is installed, "
            + "Org.Example.Shared, is signed by another team, ZZZZZ99999")
        #expect(isRefused == !isTheTeams, "\(imported)")
        #expect(text == (isTheTeams ? "secret\n" : "own\n"), "\(imported)")
      }
    }
  }

  /// A user's own app hides everyone's of that identifier: what the user has allowed is that one's.
  @Test func rightsAreForTheTeamOfTheAppThatTheUserHad() throws {
    let fixture = try prepare(rootless: false)
    let home = "\(fixture.run.mounted.point)/Users/\(fixture.run.user.name)"
    _ = try fixture.succeed(
      """
      echo private >'\(home)/Documents/private'
      "$INSULA" grant org.example.shared '\(home)/Documents/private' --store "$POINT"
      init; backup now --store "$POINT"; bring "$SCRATCH/old"
      "$INSULA" revoke org.example.shared --all --store "$POINT"
      """)
    for (own, everyones) in [("ZZZZZ99999", "ABCDE12345"), ("ABCDE12345", "ZZZZZ99999")] {
      for named in ["", " Org.Example.Shared"] {
        let restored = try fixture.shell(
          """
          set -e; python3 - "$SCRATCH/old$POINT/manifest.json" '\(own)' '\(everyones)' "$(id -un)" <<'END'
          import json, sys
          manifest = json.load(open(sys.argv[1]))
          known = [it for it in manifest["apps"] if it["identifier"] == "org.example.shared"][0]
          assert len(manifest["grants"]) == 1
          of = lambda team, home: dict({k: v for k, v in known.items() if k not in ("root", "home")},
                                       team=team, **home)
          manifest["apps"] = [of(sys.argv[3], {}), of(sys.argv[2], {"home": sys.argv[4]})]
          json.dump(manifest, open(sys.argv[1], "w"))
          END
          set +e
          "$INSULA" backup restore --from "$SCRATCH/old$POINT" --to "$POINT" --replace --rights\(named)
          "$INSULA" grants --json --store "$POINT" >"$SCRATCH/granted"
          "$INSULA" revoke org.example.shared --all --store "$POINT" >/dev/null 2>&1
          """)
        let granted = try fixture.succeed("cat \"$SCRATCH/granted\"")
        #expect(granted.contains("Documents/private") == (own == "ABCDE12345"), "\(granted)\(restored)")
        let isRefused = restored.errors.contains("is signed by another team, ABCDE12345")
        #expect(isRefused == (own == "ZZZZZ99999"), "\(restored)")
      }
    }
  }

  /// Of a backup that does not say whose a group's data are, a person says it.
  @Test func groupsOfOtherProgramsBackupsAreForAppsThatAreNamed() throws {
    let fixture = try prepare(rootless: false)
    let load = "\"$INSULA\" backup import \"$SCRATCH/export\" --store \"$POINT\" --replace"
    let unnamed = try fixture.shell(
      """
      "$INSULA" backup export "$SCRATCH/export" --store "$POINT" >/dev/null
      python3 - "$SCRATCH/export/Manifest.plist" <<'END'
      import plistlib, sys
      list = plistlib.load(open(sys.argv[1], "rb"))
      assert len(list.pop("org.insula.teams")) >= 2
      plistlib.dump(list, open(sys.argv[1], "wb"))
      END
      rm "$POINT/Users/$(id -un)/Library/Group Containers/group.org.example.shared/group-secret"
      \(load)
      """)
    #expect(unnamed.status == 1, "\(unnamed)")
    #expect(
      unnamed.errors.contains("the backup does not say which team's apps this group belongs to"), "\(unnamed)"
    )
    #expect(try !secrets(fixture.run.mounted, fixture).contains("group-secret"))
    let named = try fixture.shell("\(load) org.example.shared")
    #expect(named.status == 0, "\(named)")
    #expect(try secrets(fixture.run.mounted, fixture).contains("group-secret"))
  }
}
