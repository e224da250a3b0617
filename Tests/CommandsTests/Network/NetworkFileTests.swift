// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
@testable internal import Fuse
internal import Testing

/// What a file, and computers themselves, say of the network.
struct NetworkFileTests {
  @Test func aLineIsAShare() {
    let file = NetworkFile(
      """
      # HOST NAME URL

      nas music sftp://nas/srv/music
      nas\tdisk\tnfs://nas/export   read-only
        cluster data gluster://a/data
      nas all dav://nas/x all read-only
      """)
    #expect(file.problems.isEmpty)
    #expect(file.shares.map(\.host) == ["nas", "nas", "cluster", "nas"])
    #expect(file.shares.map(\.name) == ["music", "disk", "data", "all"])
    #expect(file.shares.map(\.isForAll) == [false, true, true, true])
    #expect(file.shares.map(\.isReadOnly) == [false, true, false, true])
    #expect(file.shares.allSatisfy { !$0.isAnnounced })
  }

  @Test(arguments: [
    "nas", "nas music", "nas music http://x/", "nas ../up sftp://x/y", ".nas music sftp://x/y",
    "nas mu/sic sftp://x/y", "nas music sftp://x/y whatever", "nas music nfs://x/y each",
    "GOOD two sftp://x/y", "good ONE sftp://x/y", "nas \u{7f} sftp://x/y",
    "\(String(repeating: "n", count: 201)) m sftp://x/y",
  ])
  func whatCantBeUsedIsAProblem(line: String) {
    let file = NetworkFile("good one sftp://x/y\n" + line + "\n")
    #expect(file.shares.map(\.host) == ["good"])
    #expect(file.problems.count == 1 && file.problems.allSatisfy { $0.hasPrefix("line 2: ") })
  }

  @Test func thereIsALimit() {
    let text = (0..<3000).map { "nas n\($0) sftp://x/y\n" }.joined()
    #expect(NetworkFile(text).shares.count == NetworkFile.mostShares)
  }

  /// As avahi-browse prints it.
  private static let announced = """
    +;eth0;IPv4;nas;_sftp-ssh._tcp;local
    =;eth0;IPv4;My\\032\\195\\164\\046NAS;_sftp-ssh._tcp;local;nas.local;192.0.2.7;22;
    =;eth0;IPv6;My\\032\\195\\164\\046NAS;_sftp-ssh._tcp;local;nas.local;2001:db8::7;22;
    =;eth0;IPv4;web;_webdavs._tcp;local;cloud.local;192.0.2.8;8443;"u=anna" "path=/dav/files"
    =;eth0;IPv4;disk;_nfs._tcp;local;nas.local;192.0.2.7;2049;"path=/export"
    =;eth0;IPv4;share;_smb._tcp;local;nas.local;192.0.2.7;445;
    =;eth0;IPv4;printer;_ipp._tcp;local;printer.local;192.0.2.9;631;
    """

  @Test func whatIsAnnouncedIsServedWithoutRights() {
    let shares = NetworkShare.announced(in: Self.announced)
    #expect(shares.map(\.host) == ["nas", "cloud"])
    #expect(shares.map(\.name) == ["My ä.NAS", "web"])
    #expect(shares.map(\.address.text) == ["sftp://nas.local:22/", "davs://cloud.local:8443/dav/files"])
    #expect(shares.allSatisfy { $0.isAnnounced && !$0.isForAll && $0.address.isByProgram })
  }

  @Test(arguments: [
    "=;eth0;IPv4;..;_sftp-ssh._tcp;local;nas.local;192.0.2.7;22;",
    "=;eth0;IPv4;a\\047b;_sftp-ssh._tcp;local;nas.local;192.0.2.7;22;",
    "=;eth0;IPv4;a\\010b;_sftp-ssh._tcp;local;nas.local;192.0.2.7;22;",
    "=;eth0;IPv4;a\\255;_sftp-ssh._tcp;local;nas.local;192.0.2.7;22;",
    "=;eth0;IPv4;a;_sftp-ssh._tcp;local;-oProxyCommand=x.local;192.0.2.7;22;",
    "=;eth0;IPv4;a;_sftp-ssh._tcp;local;a/b.local;192.0.2.7;22;",
    "=;eth0;IPv4;a;_sftp-ssh._tcp;local;bank.example.org;192.0.2.7;22;",
    "=;eth0;IPv4;a;_sftp-ssh._tcp;local;nas.local;192.0.2.7;0;",
    "=;eth0;IPv4;a;_sftp-ssh._tcp;local;nas.local;192.0.2.7;99999;",
    "=;eth0;IPv4;a;_sftp-ssh._tcp;local;nas.local", "=;;;;;;;;;", "\\",
  ])
  func whatStrangersMakeUpIsNot(line: String) {
    #expect(NetworkShare.announced(in: line).isEmpty)
  }

  @Test func aFloodIsBounded() {
    let lines = (0..<2000).map { "=;eth0;IPv4;n\($0);_sftp-ssh._tcp;local;h\($0).local;192.0.2.7;22;\n" }
    #expect(NetworkShare.announced(in: lines.joined()).count == 512)
  }

  /// Whoever announces much, or by an administrator's names in other spellings, hides nothing.
  @Test func theFileComesFirst() {
    let file = NetworkFile("zoo music sftp://zoo/y\nNAS2 data sftp://nas2/y\n")
    let flood = (0..<300).map { "=;e;IPv4;x;_webdav._tcp;local;h\($0).local;192.0.2.7;80;\n" }.joined()
    let twins = ["nas2", "ZOO", "twin", "TWIN"].map {
      "=;e;IPv4;x;_webdav._tcp;local;\($0).local;192.0.2.9;80;\n"
    }
    let announced = NetworkShare.announced(in: twins.joined() + flood)
    let known = NetworkShare.known(file, announced)
    #expect(known.prefix(2).map(\.host) == ["zoo", "NAS2"])
    #expect(!known.contains { ["nas2", "ZOO", "TWIN"].contains($0.host) })
    #expect(Set(known.map(\.host)).count == NetworkShare.mostHosts)
    #expect(NetworkShare.known(file, Array(announced.prefix(4))).map(\.host) == ["zoo", "NAS2", "twin"])
  }

  @Test(arguments: ["a\\194\\155b", "a\\226\\128\\174b", "a\\127"])
  func namesDoNothingToATerminal(name: String) {
    #expect(NetworkShare.announced(in: "=;e;IPv4;\(name);_webdav._tcp;local;h.local;192.0.2.7;80;").isEmpty)
  }

  /// A path that is announced can't become more of an address than a path.
  @Test func pathsStayPaths() throws {
    let line = "=;e;IPv4;a;_webdav._tcp;local;nas.local;192.0.2.7;80;\"path=/x?user=y\" \"path=/ok/../z\""
    let share = try #require(NetworkShare.announced(in: line).first)
    #expect(share.address.host == "nas.local" && share.address.user == nil && share.address.port == 80)
  }
}
