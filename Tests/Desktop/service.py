# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""A service on the session bus that says its name: service.py NAME

As org.freedesktop.portal.Desktop it is a decoy of xdg-desktop-portal, which says what app it takes the caller for."""
import dbus, dbus.mainloop.glib, dbus.service, sys
from gi.repository import GLib

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)


class Service(dbus.service.Object):
    @dbus.service.method("org.example.Service")
    def Name(self):
        return sys.argv[1]


class Portal(dbus.service.Object):
    def app(self, sender):
        pid = dbus.Interface(
            dbus.SessionBus().get_object("org.freedesktop.DBus", "/"), "org.freedesktop.DBus"
        ).GetConnectionUnixProcessID(sender)
        try:
            with open(f"/proc/{pid}/root/.flatpak-info") as info:
                return [line for line in info.read().split("\n") if line.startswith("name=")][0]
        except OSError as error:
            return f"not in a sandbox: {error.strerror}"

    @dbus.service.method("org.freedesktop.portal.OpenURI", sender_keyword="sender")
    def OpenURI(self, sender=None):
        return self.app(sender)

    @dbus.service.method("org.freedesktop.portal.OpenURI", sender_keyword="sender")
    def OpenFile(self, sender=None):
        return self.app(sender)

    @dbus.service.method("org.freedesktop.portal.FileChooser", sender_keyword="sender")
    def SaveFile(self, sender=None):
        return self.app(sender)


bus = dbus.SessionBus()
service = Service(bus, "/")
portal = Portal(bus, "/org/freedesktop/portal/desktop")
# Last: who has the name answers.
name = dbus.service.BusName(sys.argv[1], bus)
GLib.MainLoop().run()
