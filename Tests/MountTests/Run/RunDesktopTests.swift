// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Windows, sound and the session bus, which an app has by entitlement alone.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunDesktopTests {
  private static let scripts = Checkout.path("Tests/Desktop")
  private static let desktop = "DESKTOP='\(scripts)'; . '\(scripts)/desktop.sh'\n"

  private func fixture(_ entitlements: String?, rootless: Bool = false) throws -> RunFixture {
    try RunFixture(rootless: rootless, entitlements: entitlements)
  }

  private func key(_ name: String) -> String { "<key>org.insula.desktop.\(name)</key><true/>" }

  /// In /run there is the socket at which apps ask Insula, and nothing else.
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
    #expect(result.status == 0 && result.output == "insula\ndone\n", "\(result)")
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
        # An error names it, too.
        says_name() { call org.example.$1 org.example.Service.Name | grep -q "string.*$1"; }
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

  /// A portal takes the app for what it is, and hears of nothing else that it could do.
  @Test(arguments: [false, true])
  func portalsKnowTheApp(rootless: Bool) throws {
    let fixture = try fixture(
      "<key>org.insula.desktop.portals</key><array><string>OpenURI</string></array>", rootless: rootless)
    let result = try fixture.shell(
      Self.desktop + """
        portal=org.freedesktop.portal
        python3 $DESKTOP/service.py $portal.Desktop & servers="$servers $!"
        ask() {
          dbus-send --session --print-reply --dest=$portal.Desktop /org/freedesktop/portal/desktop \
            $portal.$1 2>&1 | grep -oE 'string.*|Error [^:]*'
        }
        # The machine's own would be started by a call.
        is_there() {
          dbus-send --session --print-reply --dest=org.freedesktop.DBus / \
            org.freedesktop.DBus.NameHasOwner string:$portal.Desktop | grep -q true
        }
        wait_for is_there; ask OpenURI.OpenURI
        for method in OpenURI.OpenURI OpenURI.OpenFile FileChooser.SaveFile; do
          desktop_run dbus-send --session --print-reply --dest=$portal.Desktop \
            /org/freedesktop/portal/desktop $portal.$method 2>&1 | grep -oE 'string.*|Error [^:]*'
        done
        desktop_run sh -c 'ls -d /.flatpak-info 2>/dev/null; echo $GTK_USE_PORTAL'
        """)
    let denied = "Error org.freedesktop.DBus.Error.AccessDenied"
    #expect(
      result.output == """
        string "not in a sandbox: No such file or directory"
        string "name=org.example.notes"
        \(denied)
        \(denied)
        1

        """, "\(result)")
  }

  /// Decoys of nodes, in a /dev of the test's own.
  @Test func graphicsProcessorsComeWithTheEntitlement() throws {
    let script = """
      mount -t tmpfs none /mnt && mkdir /mnt/dri
      for name in null zero full random urandom tty fuse pts shm ptmx; do
        [ ! -e /dev/$name ] || { [ -d /dev/$name ] && mkdir /mnt/$name || touch /mnt/$name; \
          mount --bind /dev/$name /mnt/$name; }
      done
      mknod -m 666 /mnt/dri/renderD128 c 1 3; mknod -m 666 /mnt/dri/card0 c 1 5
      mknod -m 666 /mnt/nvidia0 c 1 5; mknod -m 666 /mnt/nvidia-secret c 1 5
      ln -s /proc/self/fd /mnt/fd; mount --move /mnt /dev
      as_user "$INSULA" run --store "$POINT" "$APP" -- sh -c '
        ls -d /dev/dri/* /dev/nvidia* /sys/dev/char/* 2> /dev/null; cat /sys/dev/char/1:3/uevent 2> /dev/null
        cat /dev/dri/renderD128 2> /dev/null && echo readable'
      """
    for (entitlements, expected) in [
      (nil, ""),
      (
        key("gpu"),
        """
        /dev/dri/renderD128
        /dev/nvidia0
        /sys/dev/char/1:3
        /sys/dev/char/1:5
        MAJOR=1
        MINOR=3
        DEVNAME=null
        DEVMODE=0666
        readable

        """
      ),
    ] {
      let fixture = try fixture(entitlements)
      let user = fixture.user
      let asUser = "as_user() { setpriv --reuid=\(user.uid) --regid=\(user.gid) --clear-groups \"$@\"; }\n"
      let result = try fixture.shell(
        "export INSULA POINT APP\nunshare -m bash -c '\((asUser + script).replacing("'", with: "'\\''"))'",
        as: RunFixture.root)
      #expect(result.output == expected, "\(result)")
    }
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

  /// A compositor that has crashed leaves its socket.
  @Test func appGoesWithoutACompositorThatDoesNotAnswer() throws {
    let fixture = try fixture(key("wayland"))
    let result = try fixture.shell(
      """
      runtime=$(mktemp -d); trap 'rm -rf $runtime' EXIT
      python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' $runtime/wayland-0
      XDG_RUNTIME_DIR=$runtime run sh -c 'env | grep WAYLAND; echo started'
      """)
    #expect(result.output == "started\n" && result.errors.contains("goes without wayland"), "\(result)")
  }

  @Test func senselessBusNamesAreRefused() throws {
    let fixture = try fixture(
      "<key>org.insula.desktop.bus</key><array><string>org.freedesktop.*</string></array>")
    let result = try fixture.shell("run true")
    #expect(result.ending == .failed && result.errors.contains("org.freedesktop.*"), "\(result)")
  }
}
