// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The helper of mount(8), and what 'make install' installs.
@Suite struct HelperTests {
  /// Runs a script in a mount namespace of its own, in which insula is installed below a prefix of the
  /// test's.
  ///
  /// mount(8) looks for helpers in one directory alone, so that is a layer over the machine's. Nothing is
  /// used of an insula that the machine has: what the test would find of it are decoys that fail.
  private func runInstalled(_ script: String, _ mounted: MountedStore) throws -> ProgramResult {
    let base = try mounted.temporary.makeDirectory("base")
    let setUp = """
      set -e
      mount -t tmpfs none '\(base)'
      cd '\(base)'
      for place in sbin local; do mkdir $place $place.work; done
      mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=sbin,workdir=sbin.work /usr/sbin
      mount -t overlay overlay -o lowerdir=/usr/local/bin,upperdir=local,workdir=local.work /usr/local/bin
      for decoy in /usr/local/bin/insula /usr/sbin/mount.fuse.insula; do
        rm -f $decoy
        printf '#!/bin/sh\necho the decoy was run: "$0" "$@" >&2\nexit 99\n' >$decoy
        chmod 755 $decoy
      done
      ln -s '\(Program.insula)' built
      PREFIX='\(base)/prefix' INSULA='\(base)/built' \
      '\(Repository.root)/mount-scripts/install.sh' install >/dev/null
      PATH='\(base)/prefix/bin':$PATH
      base='\(base)' store='\(mounted.store)' point='\(mounted.point)'
      set +e

      """
    return try Program.run(["unshare", "-m", "sh", "-c", setUp + script])
  }

  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func mountMountsRemountsAndUnmounts() throws {
    let mounted = try MountedStore()
    let result = try runInstalled(
      """
      mount -t fuse.insula "$store" "$point" -o noatime,nofail,x-test,comment=x,_netdev; echo $?
      findmnt -no SOURCE,FSTYPE,OPTIONS "$point"
      touch "$point/Users/Shared/one"; echo $?
      mount -o remount,ro "$point"; echo $?
      touch "$point/Users/Shared/two" 2>/dev/null; echo $?
      findmnt -no OPTIONS "$point"
      umount "$point"; echo $?
      """, mounted)
    let lines = result.output.split(separator: "\n").map(String.init)
    try #require(lines.count == 7, "\(result.output)\(result.errors)")
    #expect(lines[0] == "0" && lines[2] == "0" && lines[3] == "0" && lines[4] == "1" && lines[6] == "0")
    #expect(lines[1].hasPrefix("\(mounted.store) fuse.insula rw,") && lines[1].contains("noatime"))
    #expect(lines[5].hasPrefix("ro,") && lines[5].contains("noatime"))
    #expect(result.errors.isEmpty)
  }

  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func fstabLineWorksAndIsMountedOnce() throws {
    let mounted = try MountedStore()
    let line = "\(mounted.store) \(mounted.point) fuse.insula defaults,nofail 0 0\n"
    let table = try mounted.temporary.write(line, to: "fstab")
    let result = try runInstalled(
      """
      mount -a -T '\(table)'; echo $?
      mount -a -T '\(table)'; echo $?
      findmnt -no TARGET "$point" | wc -l
      umount "$point"
      """, mounted)
    #expect(result.output == "0\n0\n1\n", "\(result.errors)")
  }

  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func failureIsMountsOwnCodeAndOurMessage() throws {
    let mounted = try MountedStore()
    let result = try runInstalled(
      """
      mount -t fuse.insula "$store.not" "$point"; echo $?
      mount -t fuse.insula "$store" "$point" -o nonsense; echo $?
      mount -f -t fuse.insula "$store" "$point"; echo $?
      findmnt "$point"; echo $?
      """, mounted)
    #expect(result.output == "32\n1\n0\n1\n", "\(result.errors)")
    #expect(result.errors.contains("there is no store at \(mounted.store).not"))
    #expect(result.errors.contains("unknown mount option 'nonsense'"))
  }

  /// mount(8) then runs mount.fuse3, and that runs insula with a store where the verb would be.
  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func mountWorksWithoutTheHelperToo() throws {
    let mounted = try MountedStore()
    let result = try runInstalled(
      """
      rm /usr/sbin/mount.fuse.insula
      # It looks in the usual places alone.
      ln -sf "$base/prefix/bin/insula" /usr/local/bin/insula
      mount -t fuse.insula "$store" "$point" -o noatime; echo $?
      findmnt -no FSTYPE "$point"
      umount "$point"
      """, mounted)
    #expect(result.output == "0\nfuse.insula\n", "\(result.errors)")
  }

  /// An ordinary user installs for themselves, without what takes root, and takes it away again.
  @Test(.enabled(if: Program.isRoot, "becoming another user needs root"))
  func userInstallsForThemselves() throws {
    let temporary = try TemporaryDirectory(mode: 0o1777)
    let home = try temporary.makeDirectory("home", mode: 0o1777)
    let setting = ["HOME": home, "PREFIX": "~/.local", "INSULA": Program.insula, "PATH": "/usr/bin:/bin"]
    let script = Repository.root + "/mount-scripts/install.sh"
    let result = try Program.runAsNobody([script, "install"], environment: setting)
    #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
    #expect(result.output.contains("Left out: /usr/sbin/mount.fuse.insula"))
    #expect(result.output.contains("Left out: insula.service"))
    #expect(result.output.contains("\(home)/.local/bin is not in your PATH"))
    #expect(try Program.run(["\(home)/.local/bin/insula", "version"]).status == 0)
    let found = try Program.run(["sh", "-c", "cd '\(home)'; find . -type f | sort"])
    let all = [
      ".local/bin/insula", ".local/include/insula.h", ".local/lib/libinsula.a",
      ".local/lib/pkgconfig/insula.pc",
      ".local/share/bash-completion/completions/insula",
      ".local/share/fish/vendor_completions.d/insula.fish", ".local/share/systemd/user/insula-agent.service",
      ".local/share/systemd/user/insula-backup.service", ".local/share/systemd/user/insula-backup.timer",
      ".local/share/systemd/user/insula-lock.service", ".local/share/systemd/user/insula.service",
      ".local/share/zsh/site-functions/_insula",
    ]
    let others = found.output.split(separator: "\n").filter { !$0.hasPrefix("./.local/share/man/man") }
    #expect(others == all.map { "./\($0)" })
    #expect(found.output.contains(".local/share/man/man1/insula-mount.1.gz\n"))
    #expect(found.output.contains(".local/share/man/man7/insula-semantics.7.gz\n"))
    #expect(try Program.runAsNobody([script, "uninstall"], environment: setting).status == 0)
    #expect(try Program.run(["find", home, "!", "-type", "d"]).output.isEmpty)
  }

  /// What a packager takes is whole, whoever builds it, and knows the place where it will be.
  @Test func packageIsWhole() throws {
    let temporary = try TemporaryDirectory(mode: 0o1777)
    let setting = [
      "PREFIX": "/opt/in&sula", "INSULA": Program.insula, "DESTDIR": temporary.path, "SBINDIR": "/usr/sbin",
    ]
    let script = Repository.root + "/mount-scripts/install.sh"
    let words = Program.isRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
    let result = try Program.run(words + [script, "install"], environment: setting)
    #expect(result.status == 0 && !result.output.contains("Left out"), "\(result.output)\(result.errors)")
    let unit = temporary.text(of: "opt/in&sula/lib/systemd/system/insula.service") ?? ""
    #expect(unit.contains("ExecStart=/opt/in&sula/bin/insula mount"))
    let helper = temporary.text(of: "usr/sbin/mount.fuse.insula") ?? ""
    #expect(helper.contains("bindir='/opt/in&sula/bin'"))
    #expect(try Program.run(words + [script, "uninstall"], environment: setting).status == 0)
    #expect(try Program.run(["find", temporary.path, "!", "-type", "d"]).output.isEmpty)
  }

  /// Who may not write there is told before anything is.
  @Test(.enabled(if: Program.isRoot, "becoming another user needs root"))
  func placeOfAnothersIsRefused() throws {
    let temporary = try TemporaryDirectory()
    let result = try Program.runAsNobody(
      [Repository.root + "/mount-scripts/install.sh", "install"],
      environment: ["PREFIX": temporary.appending("prefix"), "INSULA": Program.insula])
    #expect(result.status == 1 && result.errors.contains("you may not write to"))
  }

  /// Whoever has run the README's first command goes on with what it prints, and not with an error.
  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func upSaysHowTheShellFindsInsula() throws {
    let temporary = try TemporaryDirectory(mode: 0o1777)
    let home = try temporary.makeDirectory("home", mode: 0o1777)
    try temporary.makeDirectory("bin")
    // The program is built already, and not for release.
    let built = URL(fileURLWithPath: Program.insula).deletingLastPathComponent().path
    let swift = """
      #!/bin/sh
      case "$*" in
        --version) echo 'Swift version 6.2' ;;
        *--show-bin-path*) echo '\(built)' ;;
      esac
      """
    #expect(chmod(try temporary.write(swift, to: "bin/swift"), 0o755) == 0)
    let setting = [
      "HOME": home, "PATH": "\(temporary.appending("bin")):/usr/bin:/bin", "XDG_DATA_HOME": "",
      "XDG_RUNTIME_DIR": "", "LC_ALL": "C",
    ]
    let scripts = Repository.root + "/mount-scripts"
    let up = try Program.runAsNobody([scripts + "/up.sh"], environment: setting)
    #expect(up.status == 0, "\(up.output)\(up.errors)")
    let line = try #require(up.output.split(separator: "\n").first { $0.hasPrefix("  export PATH=") })
    let next = try Program.runAsNobody(["sh", "-c", "\(line); insula user add nobody"], environment: setting)
    #expect(next.output == "Created the home of nobody.\n", "\(next.errors)")
    #expect(try Program.runAsNobody([scripts + "/up.sh"], environment: setting).status == 0)
    #expect(try Program.runAsNobody([scripts + "/down.sh"], environment: setting).status == 0)
  }

  @Test func scriptsAreProgramsOfTheirShell() throws {
    let folder = Repository.root + "/mount-scripts"
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
      .filter { $0.hasSuffix(".sh") || $0 == "mount.insula" }
    #expect(names.count >= 8)
    for name in names {
      let firstLine = FD.text(of: "\(folder)/\(name)", limit: 1 << 20)?.prefix { $0 != "\n" } ?? ""
      let shell = firstLine == "#!/bin/bash" ? "bash" : "sh"
      let result = try Program.run([shell, "-n", "\(folder)/\(name)"])
      #expect(result.status == 0, "\(name): \(result.errors)")
    }
  }

  @Test(arguments: [
    [], ["/store"], ["/store", "/point", "-x"], ["/store", "/point", "-N", "/proc/1/ns/mnt"],
  ])
  func helperRefusesWhatMakesNoSense(arguments: [String]) throws {
    let helper = Repository.root + "/mount-scripts/mount.insula"
    #expect(try Program.run([helper] + arguments).status == 1)
  }
}
