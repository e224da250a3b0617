# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# A session bus with the dialogs of xdg-desktop-portal as python-dbusmock makes them, which checks each call against the
# signatures that are declared here, on which a command is run: mocked-portal.py RESPONSE ADDRESS COMMAND...
# The person answers each dialog with the number RESPONSE, and chooses ADDRESS. What is called is printed by dbusmock, and the
# exit status is the command's. What dialogs do otherwise (they end, wait, or aren't there) is in desktop.py.
import os, sys

# Nothing is to lie about among the sources.
sys.dont_write_bytecode = True

import dbus, dbus.mainloop.glib, dbusmock
from dbusmock.mockobject import objects
from gi.repository import GLib

from session_bus import SessionBus

response, address, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
OBJECT = "/org/freedesktop/portal/desktop"
ACCESS = "org.freedesktop.impl.portal.Access"
FILES = "org.freedesktop.portal.FileChooser"
REQUEST = "org.freedesktop.portal.Request"


def choose(mock, parent, title, options):
    """The answer comes by a signal of the request's own object, whose path has the caller's name."""
    bus = dbus.SessionBus()
    own = bus.get_unique_name()
    callers = [name for name in bus.list_names() if name.startswith(":") and name != own]
    paths = [f"{OBJECT}/request/{name[1:].replace('.', '_')}/{options['handle_token']}" for name in callers]
    results = dbus.Dictionary({"uris": dbus.Array([address], signature="s")}, signature="sv")
    for path in paths:
        mock.AddObject(path, REQUEST, {}, [("Close", "", "", "")])
        GLib.timeout_add(50, objects[path].EmitSignal, REQUEST, "Response", "ua{sv}", [dbus.UInt32(response), results])
    return dbus.ObjectPath(paths[-1])


def serve(ready):
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    connection = dbus.SessionBus()
    kept = [dbus.service.BusName(name, connection)
            for name in ("org.freedesktop.impl.portal.desktop.mock", "org.freedesktop.portal.Desktop")]
    mock = dbusmock.mockobject.DBusMockObject(kept[0], OBJECT, ACCESS, {})
    mock.AddMethod(ACCESS, "AccessDialog", "osssssa{sv}", "ua{sv}", f"ret = (dbus.UInt32({response}), {{}})")
    for name in ("OpenFile", "SaveFile"):
        mock.AddMethod(FILES, name, "ssa{sv}", "o", choose)
    os.write(ready, b".")
    GLib.MainLoop().run()


bus = SessionBus()
sys.exit(bus.run(command, serve))
