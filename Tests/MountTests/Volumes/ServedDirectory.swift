// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

extension ServerVolumeTests {
  /// A server of this machine, with the user's directory on it.
  final class Served: VolumeFixture {
    let run: RunFixture
    /// What the server has.
    let directory: String
    private(set) var port: UInt16 = 0
    private var server: Int32 = 0

    var url: String { "sftp://\(run.user.name)@127.0.0.1:\(port)\(directory)" }

    /// The user's key opens it.
    init() throws {
      run = try RunFixture(
        entitlements: "<key>com.apple.security.files.user-selected.read-write</key><true/>")
      let temporary = run.mounted.temporary
      directory = temporary.appending("served")
      port = UInt16.random(in: 20_000..<32_000)
      let config = """
        Port \(port)
        ListenAddress 127.0.0.1
        HostKey \(temporary.appending("account/host"))
        AuthorizedKeysFile \(temporary.appending("account/key.pub"))
        AllowUsers \(run.user.name)
        StrictModes no
        UsePAM no
        PidFile none
        Subsystem sftp internal-sftp
        """
      try temporary.makeDirectory("account", mode: 0o755)
      try temporary.makeDirectory("served", mode: 0o755)
      try temporary.write(config + "\n", to: "account/config")
      let script = """
        set -e; cd "$0"; ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f key
        mkdir .ssh; cp key .ssh/id_ed25519
        echo "[127.0.0.1]:\(port) $(cut -d' ' -f1,2 host.pub)" >.ssh/known_hosts
        echo one >../served/a; mkdir ../served/sub; chown -R $1:$2 .ssh ../served; chmod 700 .ssh
        usermod --home "$0" -p '*' $3
        start='mount -t tmpfs none /run; mkdir /run/sshd; exec /usr/sbin/sshd -D -f config'
        setsid unshare -m sh -c "$start" >log 2>&1 </dev/null & echo $!
        """
      let made = try Program.run(
        [
          "sh", "-c", script, temporary.appending("account"), "\(run.user.uid)", "\(run.user.gid)",
          run.user.name,
        ], environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
      try #require(made.status == 0, "\(made)")
      server = try #require(Int32(made.output.split(separator: "\n").last ?? ""))
      let port = port
      try #require(
        try eventually {
          try Program.run(["sh", "-c", "exec 3<>/dev/tcp/127.0.0.1/\(port)"]).status == 0
            || Program.run(["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/\(port)"]).status == 0
        }, "sshd does not start: \(temporary.text(of: "account/log") ?? "")")
    }

    deinit {
      // It leads a session of its own; to others nothing is sent.
      if server > 1 { kill(-server, SIGTERM) }
      // Sessions that a test has stopped are the user's alone.
      _ = try? Program.run(["pkill", "-KILL", "-u", "\(run.user.uid)", "-x", "sshd"])
    }

    func shell(_ script: String, as account: Account?) throws -> ProgramResult {
      try run.shell(
        """
        volume() { verb=$1; shift; timeout 100 "$INSULA" volume "$verb" --store "$POINT" "$@"; }
        V="$POINT/Volumes"; D="$V/served"; S='\(directory)'
        \(script)
        """, as: account)
    }

    /// The program that serves the user.
    func program() throws -> Int32 { try #require(try programs().last) }

    func programs() throws -> [Int32] { try processes("sshfs") }

    /// Processes of the user's by their program.
    func processes(_ name: String) throws -> [Int32] {
      let found = try Program.run(["pgrep", "-u", "\(run.user.uid)", "-x", name])
      return found.output.split(separator: "\n").compactMap { Int32($0) }
    }
  }
}
