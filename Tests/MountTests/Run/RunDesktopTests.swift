// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Windows, sound and the session bus, which an app has by entitlement alone.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunDesktopTests {
  private static let scripts = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Desktop").path
  private static let desktop = "DESKTOP='\(scripts)'; . '\(scripts)/desktop.sh'\n"

  private func fixture(_ entitlements: String?, rootless: Bool = false) throws -> RunFixture {
    try RunFixture(rootless: rootless, entitlements: entitlements)
  }

  private func key(_ name: String) -> String { "<key>org.insula.desktop.\(name)</key><true/>" }

  @Test func withoutEntitlementThereIsNone() throws {
    let fixture = try fixture(nil)
    let result = try fixture.shell(
      Self.desktop + """
        xdpyinfo > /dev/null || exit 98
        desktop_run env | grep -E 'DISPLAY|XAUTHORITY|PULSE|PIPEWIRE|DBUS'
        desktop_run ls /run
        desktop_run ls -d $desktop /tmp/.X11-unix 2> /dev/null
        desktop_run xdpyinfo -display $DISPLAY 2> /dev/null
        echo done
        """)
    #expect(result.status == 0 && result.output == "done\n", "\(result)")
  }

  @Test(arguments: [false, true])
  func windowsAppear(rootless: Bool) throws {
    let fixture = try fixture(key("x11"), rootless: rootless)
    let result = try fixture.shell(
      Self.desktop + """
        desktop_run ls /run/desktop /tmp/.X11-unix | wc -w
        desktop_run xdpyinfo | grep dimensions
        desktop_run env | grep -cE "WAYLAND|PULSE|PIPEWIRE|DBUS"
        desktop_start xlogo -geometry 200x100+10+10 & app=$!
        visible() { xwininfo -root -tree | grep -q '"xlogo".*200x100'; }
        wait_for visible
        xwd -root -silent > $desktop/picture
        kill $app; wait $app
        # The logo's black and the window's white.
        python3 - $desktop/picture <<'END'
        import sys
        pixels = memoryview(open(sys.argv[1], "rb").read()[-320 * 240 * 4:]).cast("I")
        print(len(set(pixels)) > 1)
        END
        gone() { ! visible; }
        wait_for gone; echo gone
        """)
    #expect(
      result.output.split(separator: "\n").map { $0.split(separator: " ").first.map(String.init) ?? "" }
        == ["4", "dimensions:", "0", "True", "gone"], "\(result)")
  }

  @Test(arguments: [false, true])
  func soundAndWaylandAreReached(rootless: Bool) throws {
    let fixture = try fixture(key("audio") + key("wayland"), rootless: rootless)
    let result = try fixture.shell(
      Self.desktop + """
        desktop_run sh -c 'echo $WAYLAND_DISPLAY ${PULSE_SERVER#unix:} $PIPEWIRE_REMOTE' > named
        for socket in $(cat named); do desktop_run python3 -c "$says" $socket; done
        desktop_run ls /run/desktop
        """)
    #expect(
      result.output == "wayland-0\npulse/native\npipewire-0\npipewire\npulse\nwayland\n", "\(result)")
  }

  /// A compositor that knows sandboxed apps makes a socket for each.
  @Test func compositorKnowsTheApp() throws {
    let fixture = try fixture(key("wayland"))
    let result = try fixture.shell(
      "contexts=with-contexts\n" + Self.desktop + """
        for i in 1 2; do desktop_run python3 -c "$says" /run/desktop/wayland; done
        """)
    let lines = result.output.split(separator: "\n")
    #expect(
      lines.count == 2
        && lines.allSatisfy { $0.hasPrefix("context of org.insula org.example.notes org.example.notes-") },
      "\(result)")
  }

  @Test func busIsFiltered() throws {
    let fixture = try fixture(
      "<key>org.insula.desktop.bus</key><array><string>org.example.Allowed</string></array>"
        + "<key>org.insula.desktop.bus.own</key><array><string>org.example.owned</string></array>")
    let result = try fixture.shell(
      Self.desktop + """
        for name in Allowed Hidden; do
          python3 $DESKTOP/service.py org.example.$name & servers="$servers $!"
        done
        says_name() { call org.example.$1 org.example.Service.Name | grep -q $1; }
        wait_for says_name Allowed; wait_for says_name Hidden
        desktop_run sh -c "$(cat $DESKTOP/calls.sh)"
        # The proxy ends with the app, also if nobody can clean up.
        proxies() { pgrep --runstates R,S,D -u $(id -u) -f '[x]dg-dbus-proxy.*org.example.notes' | wc -l; }
        none() { [ "$(proxies)" = 0 ]; }
        wait_for none
        desktop_start sleep 100 & app=$!
        one() { [ "$(proxies)" = 1 ]; }
        wait_for one; sleep 0.3; kill -KILL $app; wait_for none
        echo ended
        """)
    let unknown = "Error org.freedesktop.DBus.Error.ServiceUnknown"
    #expect(
      result.output == """
        string "org.example.Allowed"
        \(unknown)
        uint32 1
        uint32 1
        uint32 1
        \(unknown)
        ended

        """, "\(result)")
  }

  /// What is named and is not there is told; the app starts.
  @Test func whatIsMissingIsSaid() throws {
    let fixture = try fixture(key("x11") + key("wayland") + "<key>org.insula.desktop.bus</key><array/>")
    let result = try fixture.shell(
      """
      export DISPLAY=far.example.org:0 WAYLAND_DISPLAY=/etc/hostname
      run sh -c 'env | grep -E "DISPLAY|BUS"; echo started'
      """)
    #expect(result.output == "started\n" && result.status == 0, "\(result)")
    #expect(
      result.errors.contains("DISPLAY is 'far.example.org:0'")
        && result.errors.contains("WAYLAND_DISPLAY is '/etc/hostname'"), "\(result.errors)")
    let quiet = try fixture.shell("run true")
    #expect(quiet.errors.isEmpty, "\(quiet.errors)")
  }

  @Test func senselessBusNamesAreRefused() throws {
    let fixture = try fixture(
      "<key>org.insula.desktop.bus</key><array><string>org.freedesktop.*</string></array>")
    let result = try fixture.shell("run true")
    #expect(result.status != 0 && result.errors.contains("org.freedesktop.*"), "\(result)")
  }
}
