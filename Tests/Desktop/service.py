# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""A service on the session bus that says its name: service.py NAME"""
import dbus, dbus.mainloop.glib, dbus.service, sys
from gi.repository import GLib

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
name = dbus.service.BusName(sys.argv[1], dbus.SessionBus())


class Service(dbus.service.Object):
    @dbus.service.method("org.example.Service")
    def Name(self):
        return sys.argv[1]


service = Service(name, "/")
GLib.MainLoop().run()
