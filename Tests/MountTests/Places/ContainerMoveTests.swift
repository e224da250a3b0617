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

  /// Whoever exchanges the copy while it is checked, completed and put in place gets nothing there that is
  /// not the copy: no link, no file, no other directory.
  @Test(arguments: [false, true]) func theCopyCannotBeExchangedForSomethingElse(rootless: Bool) throws {
    let fixture = try PlaceFixture(rootless: rootless)
    try fixture.cast.workshop.write(
      """
      import ctypes, os, sys, time
      libc = ctypes.CDLL(None)
      def exchange(a, b): return libc.renameat2(-100, a.encode(), -100, b.encode(), 2)
      os.makedirs(".swapped", exist_ok=True)
      try: os.symlink("/nowhere", ".swapped/link")
      except FileExistsError: pass
      open(".swapped/file", "w").close()
      os.makedirs(".swapped/other/Data/strange", exist_ok=True)
      kinds, number, end = ["link", "file", "other"], 0, time.monotonic() + 120
      while not os.path.exists(sys.argv[1]) and time.monotonic() < end:
          for name in os.listdir("."):
              if name.startswith(".import-") and os.path.isdir(name + "/Data/Documents"):
                  other = ".swapped/" + kinds[number % 3]; number += 1
                  for _ in range(400):
                      exchange(name, other)
                      if not os.path.lexists(name): break
      """, to: "swap.py")
    let seen = try fixture.perform(
      """
      insula export $app $work/E.xcappdata --store $store >/dev/null; cd $home/Library/Containers
      python3 $work/swap.py $work/stop & swapping=$!
      i=0; done=0; while [ $i -lt 60 ]; do i=$((i+1))
        insula import $work/E.xcappdata --replace --store $store >/dev/null 2>&1 && done=$((done+1))
        [ -d $container ] && [ ! -L $container ] && [ -d $data/Documents ] && [ ! -e $data/strange ] ||
          echo bad
      done
      touch $work/stop; wait $swapping
      insula import $work/E.xcappdata --replace --store $store >/dev/null; ls -A $data | grep -c Documents
      """, as: .owner)
    #expect(seen == "1\n", "\(seen)")
    #expect(try fixture.cast.mounted.run("check", fixture.cast.mounted.store).status == 0 || rootless)
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
