// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Containers, and what leads to them, stay where they are: whoever moved one away and back could change
/// meanwhile what the rules of its place forbid.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct ContainerMoveTests {
  /// Each works for `$at`, an ordinary directory.
  private let moves = [
    "mv -T \"$at\" \"$at-2\"", "mv -T \"$at\" $away/moved", "mv -T \"$at\" \"$(dirname \"$at\")/.hidden\"",
    "call exchange \"$at\" $away/twin", "call exchange $away/twin \"$at\"",
    "call rename \"$at\" $away/empty",
  ]

  private let places = [
    "$container", "$group", "$cloud", "$home/Library/Containers", "$home/Library/Group Containers",
    "$home/Library/Mobile Documents", "$home/Library",
  ]

  private let prepare = """
    away=$home/away; rm -rf $away; mkdir -p $away/twin $away/empty $away/Library/x/Data; cd $away
    """

  @Test(arguments: [false, true]) func containersAndWhatLeadsToThemStay(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    // Not by a list, which their owner could take away.
    try fixture.perform("insula acl -N $home/Library", as: .owner)
    try fixture.perform("cd $work/place; deliver letter.txt", as: .owner)
    let before = try fixture.perform("find $home/Library -printf '%P %i\\n' | sort", as: .owner)
    for person in fixture.people {
      for line in moves {
        let elsewhere = try fixture.run("\(prepare); at=$away/Library/x; \(line)", as: person)
        #expect(elsewhere.status == 0, "\(person), elsewhere: \(line): \(elsewhere.errors)")
        for place in places {
          let refused = try fixture.run("\(prepare); at=\"\(place)\"; \(line)", as: person)
          #expect(
            refused.isRefusal && refused.errors.contains(Errno.EPERM.message),
            "\(person), \(place): \(line): \(refused)")
        }
      }
    }
    #expect(try fixture.perform("find $home/Library -printf '%P %i\\n' | sort", as: .owner) == before)
  }

  @Test(arguments: [false, true]) func nobodyPutsAContainerThere(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    let containers = places[3...5]
    for person in fixture.people {
      for line in [
        "mkdir \"$at/org.example.new\"", "mv -T $away/twin \"$at/org.example.new\"",
        "mkdir \"$at/.beside\" && mv -T \"$at/.beside\" \"$at/org.example.new\"",
        "cp -a $away/twin \"$at/org.example.new\"",
        "mkdir \"$at/.one\" && call exchange \"$at/.one\" $away/twin && "
          + "mv -T \"$at/.one\" \"$at/org.example.new\"",
      ] {
        let elsewhere = try fixture.run("\(prepare); at=$away/Library; \(line)", as: person)
        #expect(elsewhere.status == 0, "\(person), elsewhere: \(line): \(elsewhere.errors)")
        for place in containers {
          let clean = "rm -rf \"$at/.beside\" \"$at/.one\""
          let refused = try fixture.run("\(prepare); at=\"\(place)\"; \(clean); \(line)", as: person)
          #expect(
            refused.isRefusal && refused.errors.contains(Errno.EPERM.message),
            "\(person), \(place): \(line): \(refused)")
          try fixture.perform("at=\"\(place)\"; \(clean); test ! -e \"$at/org.example.new\"", as: person)
        }
      }
    }
  }

  /// Exchanges the copy for something else at the moment at which the import stops, and tells what the import
  /// made of it.
  private static let attack = """
    import ctypes, os, subprocess, sys, time
    pause, point, kind, containers = sys.argv[1:5]
    os.chdir(containers)
    os.makedirs(".swapped/other/Data/strange"); open(".swapped/file", "w").close()
    os.symlink("/nowhere", ".swapped/link")
    open(pause + "/" + point, "w").close()
    importing = subprocess.Popen(
        sys.argv[5:], env=dict(os.environ, INSULA_HALT=pause), stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 20
    while not os.path.exists(pause + "/reached"):
        if importing.poll() is not None: sys.exit("it did not stop: " + importing.communicate()[1])
        if time.monotonic() > end: importing.kill(); sys.exit("it came to no such point")
        time.sleep(0.005)
    [copy] = [name for name in os.listdir(".") if name.startswith(".import-")]
    ours = os.stat(copy).st_ino
    result = ctypes.CDLL(None, use_errno=True).renameat2(
        -100, copy.encode(), -100, (".swapped/" + kind).encode(), 2)
    print("exchanged", result == 0 and os.stat(".swapped/" + kind).st_ino == ours, importing.poll())
    open(pause + "/go", "w").close()
    print("status", importing.wait(60))
    """

  /// Whoever exchanges the copy after it was checked gets nothing in the container's place that is not the
  /// copy: no link, no file, no other directory.
  ///
  /// In a tree that is not mounted, names can be exchanged at any moment.
  @Test(
    .enabled(if: isDebug, "needs a debug build"),
    arguments: [
      (false, true, "copyChecked"), (true, true, "copyChecked"), (true, false, "copyChecked"),
      (true, false, "copyCompared"),
    ] as [(Bool, Bool, String)], ["link", "file", "other"])
  func theCopyCannotBeExchangedForSomethingElse(
    setting: (rootless: Bool, isMounted: Bool, point: String), kind: String
  ) throws {
    let fixture = try PlaceFixture(
      rootless: setting.rootless, before: { ["env", "INSULA_HALT=\($0)/pause"] })
    try fixture.cast.workshop.write(Self.attack, to: "attack.py")
    try fixture.perform(
      "mkdir -m 777 $work/pause; echo mine >$documents/mine; "
        + "insula export $app $work/E.xcappdata --store $store; echo later >$documents/later", as: .owner)
    let mounted = fixture.cast.mounted
    let home = "Users/\(try #require(fixture.cast.account(.owner)).account.name)"
    if !setting.isMounted { try #require(mounted.unmount().status == 0) }
    let containers = (setting.isMounted ? mounted.path(home) : mounted.backing(home)) + "/Library/Containers"
    let seen = try fixture.perform(
      """
      python3 $work/attack.py $work/pause \(setting.point) \(kind) \(containers) \
        insula import $work/E.xcappdata --replace --store $store
      cd \(containers)/$app && test ! -L ../$app && cat Data/Documents/mine Data/Documents/later
      test ! -e Data/strange
      """, as: .owner)
    #expect(seen == "exchanged True None\nstatus 1\nmine\nlater\n", "\(seen)")
    // Left alone, it replaces the data.
    try fixture.perform(
      "insula import $work/E.xcappdata --replace --store $store; "
        + "cd \(containers)/$app/Data/Documents; test -e mine; test ! -e later", as: .owner)
  }

  /// What was delivered stays as it was delivered, whichever way round.
  @Test(arguments: [false, true]) func deliveredFilesAreNotChangedByAnImport(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    try fixture.perform("cd $work/place; deliver letter.txt", as: .owner)
    try fixture.perform(
      """
      insula export $app $work/E.xcappdata --store $store; echo more >$documents/more
      exec 3<"$container"; insula import $work/E.xcappdata --replace --store $store
      test ! -e $documents/more; test "$(cat $inbox/letter.txt)" = text
      """, as: .owner)
    for line in [
      "echo x >>$inbox/letter.txt", "mv -T $container $home/away", "mkdir $data/new",
      "rm $container/.*.plist",
      "mv -T $container $home/Library/Containers/.import-1-x",
    ] {
      let refused = try fixture.run(line, as: .owner)
      #expect(
        refused.isRefusal && refused.errors.contains(Errno.EPERM.message), "\(line): \(refused)")
    }
    #expect(try fixture.perform("ls -A $home/Library/Containers", as: .owner) == PlaceFixture.app + "\n")
  }
}
