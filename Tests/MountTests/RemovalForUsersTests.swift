// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A user has the daemon remove an app, and delete its containers for good; what of them they could not
/// remove themselves stays.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct RemovalForUsersTests {
  private static let uninstall =
    "insula uninstall $app --user $owner --store $store && insula removed delete --all --store $store"

  /// Each makes something as root or the stranger and says where it is; the owner then tries to have it
  /// removed.
  @Test(arguments: [
    ("insula flags schg $documents/held", "$documents/held", "schg"),
    ("insula flags sappnd $data/Library", "$data/Library", "sappnd"),
    ("install -d -m 755 $documents/roots && echo x >$documents/roots/file", "$documents/roots/file", "root"),
    ("echo x >$documents/shared/file && chmod 600 $documents/shared/file", "$documents/shared/file", "root"),
    ("insula flags schg \"$group\"/kept", "$group/kept", "schg"),
    ("insula flags schg $inbox/letter.txt || insula flags schg $documents/held", "$documents/held", "schg"),
  ])
  func whatRootProtectsStays(making: String, place: String, reason: String) throws {
    let fixture = try PlaceFixture()
    try fixture.perform(
      "touch $documents/held \"$group/kept\"; "
        + "mkdir -m 777 $documents/shared; cd $work/place; deliver letter.txt",
      as: .owner)
    try fixture.perform(making, as: .root)
    // They could not do it by themselves.
    let number = try fixture.perform("stat -c %i \"\(place)\"", as: .root)
    let result = try fixture.run(Self.uninstall, as: .owner)
    #expect(result.status == 0 && result.errors.contains(reason), "\(result.errors)")
    let line = try #require(result.errors.split(separator: "\n").first { $0.contains(" was not removed: ") })
    let told = try #require(line.components(separatedBy: " was not removed: ").first)
    let path = told.components(separatedBy: "insula: ").last ?? told
    let left = try fixture.perform("find \"\(path)\" -printf '%i\\n'", as: .root)
    #expect(left.split(separator: "\n").contains(number.dropLast()), "\(result.errors)")
    let check = try fixture.cast.mounted.run("check", fixture.cast.mounted.store)
    #expect(check.output.contains(".left-"), "\(check.output)")
  }

  @Test func whatTheOwnerProtectsStaysToo() throws {
    let fixture = try PlaceFixture(rootless: true)
    try fixture.perform(
      "touch $documents/held $documents/gone; insula flags uchg $documents/held", as: .owner)
    // Whose app it is, need not be said.
    let result = try fixture.run(
      "insula uninstall $app --store $store && insula removed delete --all --store $store", as: .owner)
    #expect(
      result.status == 0 && result.errors.contains("Documents/held was not removed: it has the flags uchg"))
    try fixture.perform(
      """
      cd $home/Library/Containers; test "$(ls -A | wc -l)" = 1; cd .org.example.editor.left-*
      test "$(find . -type f)" = ./Data/Documents/held; insula flags nouchg Data/Documents/held; rm -r "$PWD"
      """, as: .owner)
  }

  /// By moving another directory to the place of the container, or to where it will be.
  @Test func directoriesOfOthersAreNotPutThere() throws {
    let fixture = try PlaceFixture()
    try fixture.perform("mkdir -m 777 $home/project; chmod 711 $home", as: .owner)
    try fixture.perform("mkdir $home/project/theirs; echo work >$home/project/theirs/file", as: .stranger)
    for line in [
      "mv -T $container $home/aside; mv -T $home/project $container", "mv -T $home/project $container",
      "mv -T $data $home/aside; mv -T $home/project $data", "call exchange $home/project $container",
      "mv -T $home/Library/Containers $home/aside; "
        + "mkdir $home/Library/Containers; mv -T $home/project $container",
    ] {
      _ = try fixture.run(line, as: .owner)
      #expect(try fixture.perform("cat $home/project/theirs/file", as: .stranger) == "work\n", "\(line)")
    }
    // Into one of its directories it goes; what is not the owner's stays all the same.
    try fixture.perform("mv $home/project $documents/", as: .owner)
    let result = try fixture.run(Self.uninstall, as: .owner)
    #expect(result.errors.contains("project/theirs was not removed: it belongs to"), "\(result.errors)")
    let left = "$home/Library/Containers/.$app.left-*/Data/Documents/project/theirs/file"
    #expect(try fixture.perform("cat \(left)", as: .root) == "work\n")
  }
}
