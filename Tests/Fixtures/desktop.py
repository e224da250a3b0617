# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# A session bus with a desktop's dialogs, on which a command is run: desktop.py ACCESS FILES COMMAND...
# ACCESS and FILES say what the person does with each kind of dialog: a number is the response, "none" is a desktop
# without such a dialog, "dies" ends the program that shows it, "waits" leaves it open, "logout" ends the bus, and "absent" is
# nobody there. ACCESS can also be "leaves": the bus ends after a while, whatever is asked.
# For FILES, "0=ADDRESS" chooses that. What is called is printed, and the exit status is the command's.
import os, sys

# Nothing is to lie about among the sources.
sys.dont_write_bytecode = True

import dbus, dbus.mainloop.glib, dbus.service
from gi.repository import GLib

from session_bus import SessionBus

access, files, command = sys.argv[1], sys.argv[2], sys.argv[3:]
OBJECT = "/org/freedesktop/portal/desktop"
ACCESS = "org.freedesktop.impl.portal.Access"
FILES = "org.freedesktop.portal.FileChooser"
BACKEND = "org.freedesktop.impl.portal.desktop."
REQUEST = "org.freedesktop.portal.Request"


def tell(word, *values):
    print(word, *values, sep="|", flush=True)


def plain(value):
    if isinstance(value, dbus.Array) and value.signature == "y":
        return bytes(value).decode()
    if isinstance(value, (dbus.Array, list)):
        return [plain(part) for part in value]
    if isinstance(value, (dbus.Struct, tuple)):
        return tuple(plain(part) for part in value)
    if isinstance(value, dbus.Boolean):
        return bool(value)
    return int(value) if isinstance(value, int) else str(value)


def said(options):
    return "; ".join(f"{name}={plain(options[name])}" for name in sorted(options))


class Dialog(dbus.service.Object):
    """One that is open."""

    @dbus.service.method("org.freedesktop.impl.portal.Request")
    def Close(self):
        tell("closed")


class Backend(dbus.service.Object):
    @dbus.service.method(ACCESS, in_signature="osssssa{sv}", out_signature="ua{sv}", async_callbacks=("done", "fail"))
    def AccessDialog(self, handle, app, parent, title, subtitle, body, options, done, fail):
        tell("access", handle, app, parent, title, subtitle, body, said(options))
        if access == "dies":
            os._exit(0)
        if access == "logout":
            bus.end()
        self.dialog = Dialog(self.connection, handle)
        if access not in ("waits", "logout"):
            done(dbus.UInt32(int(access)), {})


class Request(dbus.service.Object):
    @dbus.service.signal(REQUEST, signature="ua{sv}")
    def Response(self, response, results):
        pass

    @dbus.service.method(REQUEST)
    def Close(self):
        tell("closed")


class FileChooser(dbus.service.Object):
    def show(self, sender, kind, parent, title, options):
        tell(kind, parent, title, said({k: v for k, v in options.items() if k != "handle_token"}))
        path = f"{OBJECT}/request/{sender[1:].replace('.', '_')}/{options['handle_token']}"
        if files == "dies":
            GLib.timeout_add(100, lambda: os._exit(0))
        self.request = Request(self.connection, path)
        if files not in ("dies", "waits"):
            response, _, address = files.partition("=")
            uris = {"uris": dbus.Array([address], signature="s")} if address else {}
            # As a portal may: before its own answer.
            self.request.Response(dbus.UInt32(int(response)), uris)
        return path

    @dbus.service.method(FILES, in_signature="ssa{sv}", out_signature="o", sender_keyword="sender")
    def OpenFile(self, parent, title, options, sender):
        return dbus.ObjectPath(self.show(sender, "open", parent, title, options))

    @dbus.service.method(FILES, in_signature="ssa{sv}", out_signature="o", sender_keyword="sender")
    def SaveFile(self, parent, title, options, sender):
        return dbus.ObjectPath(self.show(sender, "save", parent, title, options))


def serve(ready):
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    connection = dbus.SessionBus()
    # A backend without that dialog comes first.
    names = [] if access == "absent" else [BACKEND + "aaa"]
    kinds = []
    if access not in ("absent", "none"):
        names.append(BACKEND + "test")
        kinds.append(Backend)
    if files != "absent":
        names.append("org.freedesktop.portal.Desktop")
    if files not in ("absent", "none"):
        kinds.append(FileChooser)
    kept = [dbus.service.BusName(name, connection) for name in names]
    # Both are at one path.
    if kinds:
        kept.append(type("Desktop", tuple(kinds), {})(connection, OBJECT))
    if access == "leaves":
        GLib.timeout_add(1000, lambda: bus.end())
    os.write(ready, b".")
    GLib.MainLoop().run()


bus = SessionBus()
sys.exit(bus.run(command, serve))
