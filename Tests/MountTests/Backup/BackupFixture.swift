// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A store with data, and a repository.
final class BackupFixture {
  let run: RunFixture
  let repository: String
  let password: String
  let scratch: String
  private let isRootless: Bool

  init(
    rootless: Bool = false, store: String? = nil,
    home: (TemporaryDirectory) throws -> [String] = { _ in [] }
  ) throws {
    isRootless = rootless
    run = try RunFixture(rootless: rootless, store: store, home: home)
    try #require(try run.inside("true").status == 0)
    try run.mounted.temporary.makeDirectory("backup", mode: 0o777)
    repository = run.mounted.temporary.appending("backup/repository")
    password = try run.mounted.temporary.write("a secret\n", to: "backup/password")
    chmod(password, 0o644)
    // Where others can't rename it, which a restore insists on.
    scratch = try Program.run(["mktemp", "-d", "/var/tmp/insula-test-XXXXXX"]).output.trimmingCharacters(
      in: .whitespacesAndNewlines)
    try #require(
      scratch.hasPrefix("/var/tmp/insula-test-") && chown(scratch, run.user.uid, run.user.gid) == 0)
  }

  deinit { try? FileManager.default.removeItem(atPath: scratch) }

  /// `backup VERB ...` with the repository, `init` makes that, `bring DIR` has restic bring the latest backup
  /// back there, and `look DIR` prints all that is known
  /// of what is in a directory.
  static let helpers = """
    export SCRATCH TMPDIR="$SCRATCH" RESTIC_CACHE_DIR="$(dirname "$PASSWORD")/cache-$(id -u)"
    [ "$(id -u)" != 0 ] || TMPDIR=/var/tmp
    backup() {
      verb=$1; shift
      "$INSULA" backup $verb --repository "$REPOSITORY" --password-file "$PASSWORD" "$@"
    }
    # Root's would write the machine's configuration.
    init() {
      [ "$(id -u)" != 0 ] || { plain init; return; }
      HOME=$SCRATCH "$INSULA" backup init "$REPOSITORY" --password-file "$PASSWORD"
      rm -r "$SCRATCH"/.[a-z]*
    }
    plain() { restic -q -r "$REPOSITORY" --password-file "$PASSWORD" --no-cache "$@"; }
    bring() { plain restore latest --target "$1"; }
    look() {
      python3 - "$1" <<'END'
    import hashlib, os, sys
    top = sys.argv[1]
    for directory, names, files in sorted(os.walk(top)):
        for name in sorted(names + files):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            data = ''
            if os.path.islink(path): data = os.readlink(path)
            elif os.path.isfile(path): data = hashlib.sha256(open(path, 'rb').read()).hexdigest()[:16]
            attributes = {}
            if not os.path.islink(path):
                for key in os.listxattr(path): attributes[key] = os.getxattr(path, key)
            time = 0 if os.path.isdir(path) else status.st_mtime_ns
            print(os.path.relpath(path, top), oct(status.st_mode), status.st_nlink, time, data, attributes)
    END
    }

    """

  func shell(_ script: String, as account: Account? = nil) throws -> ProgramResult {
    let variables = "REPOSITORY='\(repository)'; PASSWORD='\(password)'; SCRATCH='\(scratch)'\n"
    return try run.shell(variables + Self.helpers + script, as: account)
  }

  func succeed(_ script: String, as account: Account? = nil) throws -> String {
    let result = try shell("set -e\n" + script, as: account)
    try #require(result.status == 0, "\(script): \(result.output)\(result.errors)")
    return result.output
  }

  /// Fills the home and the app's container.
  func fill() throws {
    _ = try succeed(
      """
      cd "$POINT/Users/$(id -un)"; umask 022
      mkdir -p Documents/Work/deep projects/x Library/Caches/c
      echo letter >Documents/Letter.txt; echo a >Documents/Work/a; ln Documents/Work/a Documents/Work/deep/b
      ln -s ../Letter.txt Documents/Work/link; head -c 3000000 /dev/urandom >projects/x/large
      setfattr -n user.color -v red Documents/Letter.txt; chmod 600 projects/x/large
      echo odd >"Documents/odd [name]*?"; mkdir -m 750 Documents/Empty; echo cache >Library/Caches/c/d
      "$INSULA" acl +a 'everyone deny delete' Documents/Work; "$INSULA" flags hidden Documents/Letter.txt
      "$INSULA" acl +a "user:$(id -un) allow read" Documents/Letter.txt; "$INSULA" flags uchg projects/x/large
      echo notes >$DATA/Documents/notes; mkdir $DATA/Documents/Inside
      echo set >"$DATA/Library/Application Support/settings"; echo .rc >$DATA/.rc
      echo gone >$DATA/tmp/gone; echo gone >$DATA/Library/Caches/gone
      "$INSULA" acl +a 'everyone deny write' $DATA/Documents/notes
      touch -d '2020-01-02 03:04:05.678' Documents/Letter.txt $DATA/Documents/notes
      """)
  }

  /// What there is of it to compare, without what no backup has.
  func seen(at point: String) throws -> String {
    _ = try succeed("true")
    return try succeed(
      """
      home="\(point)/Users/$(id -un)"
      for place in Documents projects "Library/Containers/$APP/Data/Documents" \
        "Library/Containers/$APP/Data/Library/Application Support"; do look "$home/$place"; done
      cat "$home/Library/Containers/$APP/Data/.rc"
      """)
  }

  /// An empty store that trusts the same, and a directory with the app to restore there.
  func anotherStore() throws -> (MountedStore, bundles: String) {
    let other = try MountedStore(owner: isRootless ? run.user : nil)
    try other.mount()
    for words in [
      ["trust", "add", run.mounted.temporary.appending("store/root.pem"), "--store", other.store],
      ["user", "add", run.user.name, "--store", other.store],
    ] {
      let result = try other.run(words)
      try #require(result.status == 0, "\(words): \(result.errors)")
    }
    let bundles = run.mounted.temporary.appending("bundles")
    let copied = try Program.run([
      "cp", "-r", run.mounted.temporary.appending("store/Notes-made"), bundles,
    ])
    try #require(copied.status == 0 && chmod(bundles, 0o755) == 0)
    return (other, bundles)
  }
}
