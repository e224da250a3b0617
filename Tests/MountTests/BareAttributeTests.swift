// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Attributes under the names that they have on a Mac: `com.apple.quarantine` and its like.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BareAttributeTests {
  private static let names = """
    names = ["com.apple." + name for name in (
      "quarantine", "FinderInfo", "ResourceFork", "TextEncoding",
      "metadata:_kMDItemUserTags", "lastuseddate#PS",
      "x" * 240)]
    def failing(act):
      try: act(); return "done"
      except OSError as error: return error.strerror

    """

  private func python(_ fixture: RunFixture, _ script: String, as account: Account? = nil) throws -> String {
    let result = try fixture.shell(
      """
      cd "$POINT/Users/$(id -un)/Documents" 2>/dev/null || cd "$POINT"; touch a; python3 - <<'END'
      import os
      \(Self.names)
      \(script)
      END
      """, as: account)
    return result.output + result.errors
  }

  @Test(arguments: [false, true]) func bareNameStandsForTheOneThatLinuxKeeps(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let output = try python(
      fixture,
      """
      for name in names:
        value = name.encode()
        os.setxattr("a", name, value)
        assert os.getxattr("a", "user." + name) == value == os.getxattr("a", name), name
        assert os.listxattr("a") == ["user." + name], os.listxattr("a")
        print(failing(lambda: os.setxattr("a", name, b"", os.XATTR_CREATE)))
        os.setxattr("a", "user." + name, b"2", os.XATTR_REPLACE)
        assert os.getxattr("a", name) == b"2", name
        os.removexattr("a", name)
        assert os.listxattr("a") == [] and failing(lambda: os.getxattr("a", name)) == "No data available"
        replace = lambda: os.setxattr("a", name, b"", os.XATTR_REPLACE)
        print(failing(lambda: os.removexattr("a", name)), failing(replace))
      os.mkdir("d"); os.setxattr("d", names[0], b"x"); assert os.listxattr("d") == ["user." + names[0]]
      print(failing(lambda: os.setxattr("a", "com.apple." + "x" * 245, b"")))
      for name in ("com.appleX.y", "org.x"): print(failing(lambda: os.setxattr("a", name, b"")))
      """)
    let repeated = Array(repeating: "File exists\nNo data available No data available\n", count: 7).joined()
    #expect(
      output == repeated + """
        Numerical result out of range
        Operation not supported
        Operation not supported

        """)
  }

  /// What it takes to set one is what it takes with the prefix.
  @Test func rulesAreThoseOfTheOtherName() throws {
    let fixture = try RunFixture()
    let nobody = Account(name: "nobody", uid: 65534, gid: 65534, home: "/")
    let shared = fixture.mounted.path("Users/Shared")
    try #require(try fixture.shell("touch \"$POINT/Users/Shared/b\"", as: nobody).status == 0)
    let output = try python(
      fixture,
      """
      for prefix in ("", "user."):
        name = prefix + names[0]
        for path in ("\(shared)", "\(shared)/b", os.environ["POINT"] + "/System"):
          print(failing(lambda: os.setxattr(path, name, b"")))
      """)
    let line = "Operation not permitted\nPermission denied\nRead-only file system\n"
    #expect(output == line + line)
  }

  /// Each attribute is listed once, so programs that copy what is listed bring all of them along.
  @Test(
    arguments: [
      "cp -a src copy", "rsync -aX src/ copy",
      "mkdir copy; tar -C src --xattrs -cf - . | tar -C copy --xattrs -xf -",
      """
      export BORG_BASE_DIR=$PWD BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes; borg init -e none repo
      borg create repo::one src; mkdir out; cd out; borg extract ../repo::one; cd ..; mv out/src copy
      """,
    ])
  func copiesHaveThem(command: String) throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      cd "$POINT/Users/$(id -un)/Documents"; mkdir src; touch src/a; python3 - <<'END'
      import os
      \(Self.names)
      for name in names:
        os.setxattr("src/a", name, name.encode()); os.setxattr("src", name, b"d")
      END
      { \(command); } >/dev/null 2>log || cat log
      cd src; getfattr -d -m - a . | sort > ../one; cd ../copy; getfattr -d -m - a . | sort > ../two; cd ..
      cmp one two; grep -c '^user.com.apple' two; grep -vc '^user.com.apple\\|^#\\|^$' two
      """)
    #expect(result.output == "14\n0\n", "\(result.output)\(result.errors)")
  }
}
