# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""The rows of trapped.py, which reads this file: `d` is a new directory, and what is done in `Trap()` is what the row is about."""


# MARK: Names


@row(LOOKUP)
def lookup(d):
    write(f"{behind(d)}/x", "text")
    with Trap():
        same(os.stat(f"{d}/x").st_size, 4)


@row(LOOKUP)
def lookup_of_nothing(d):
    with Trap(errno.ENOENT):
        os.stat(f"{d}/x")


@row(FORGET, notice=True)
def forget(d):
    write(f"{d}/x", "text")
    with Trap():
        os.unlink(f"{d}/x")
    same(names(d), [])
    write(f"{d}/x", "other")
    same(text(f"{d}/x"), "other")


@row(MKDIR, changes=True)
def mkdir(d):
    with Trap():
        os.mkdir(f"{d}/x", 0o2750)
    same(names(d), ["x"])
    same(stat.S_IMODE(os.stat(f"{d}/x").st_mode), 0o750)
    same(os.stat(d).st_nlink, os.stat(behind(d)).st_nlink)
    os.rmdir(f"{d}/x")


@row(MKDIR, fails=True)
def mkdir_of_what_is_there(d):
    overtaken(errno.EEXIST, f"{d}/x", lambda: os.mkdir(f"{d}/x"), os.mkdir)
    os.rmdir(f"{d}/x")


@row(MKDIR, changes=True)
def mkdir_with_inherited_acl(d):
    os.setxattr(d, "system.nfs4_acl", nfs4((0, 3, 0x1f01ff, "EVERYONE@")))
    with Trap():
        os.mkdir(f"{d}/x", 0o700)
    same(os.getxattr(f"{d}/x", "system.nfs4_acl")[-12:], b"EVERYONE@\0\0\0")
    same(stat.S_IMODE(os.stat(f"{d}/x").st_mode), 0o700)
    same(names(f"{d}/x"), [])


@row(MKNOD, changes=True)
def mknod(d):
    with Trap():
        os.mknod(f"{d}/x", 0o640 | stat.S_IFIFO)
    same(names(d), ["x"])
    same(os.stat(f"{d}/x").st_mode, 0o640 | stat.S_IFIFO)
    same(os.stat(f"{d}/x").st_nlink, 1)


@row(SYMLINK, changes=True)
def symlink(d):
    with Trap():
        os.symlink("target", f"{d}/x")
    same(names(d), ["x"])
    same(os.readlink(f"{d}/x"), "target")


@row(SYMLINK, fails=True)
def symlink_where_one_is(d):
    overtaken(errno.EEXIST, f"{d}/x", lambda: os.symlink("target", f"{d}/x"), lambda name: os.symlink("target", name))


@row(READLINK)
def readlink(d):
    os.symlink("target", f"{behind(d)}/x")
    with Trap():
        same(os.readlink(f"{d}/x"), "target")


@row(LINK, changes=True)
def link(d):
    write(f"{d}/x", "text")
    with Trap():
        os.link(f"{d}/x", f"{d}/y")
    same(names(d), ["x", "y"])
    same(os.stat(f"{d}/y").st_nlink, 2)
    same(os.stat(f"{behind(d)}/y").st_nlink, 2)
    same(text(f"{d}/y"), "text")


@row(LINK, fails=True)
def link_that_is_there(d):
    write(f"{d}/x", "text")
    overtaken(errno.EEXIST, f"{d}/y", lambda: os.link(f"{d}/x", f"{d}/y"), lambda name: os.link(f"{behind(d)}/x", name))
    same(os.stat(f"{behind(d)}/y").st_nlink, 2)


@row(UNLINK, changes=True)
def unlink(d):
    write(f"{d}/x", "text")
    os.link(f"{d}/x", f"{d}/y")
    with Trap():
        os.unlink(f"{d}/x")
    same(names(d), ["y"])
    same(os.stat(f"{d}/y").st_nlink, 1)


@row(UNLINK, changes=True)
def unlink_of_what_is_open(d):
    with open(f"{d}/x", "w+") as file:
        file.write("text")
        file.flush()
        with Trap():
            os.unlink(f"{d}/x")
        same(names(d), [])
        file.write(" and more")
        file.seek(0)
        same(file.read(), "text and more")
        same(os.fstat(file.fileno()).st_nlink, 0)


@row(UNLINK, fails=True)
def unlink_of_nothing(d):
    write(f"{d}/x", "text")
    os.unlink(f"{behind(d)}/x")
    with Trap(errno.ENOENT):
        os.unlink(f"{d}/x")


@row(RMDIR, changes=True)
def rmdir(d):
    os.mkdir(f"{d}/x")
    with Trap():
        os.rmdir(f"{d}/x")
    same(names(d), [])
    same(os.stat(d).st_nlink, os.stat(behind(d)).st_nlink)
    os.mkdir(f"{d}/x")


@row(RMDIR, fails=True)
def rmdir_of_a_full_one(d):
    os.makedirs(f"{d}/x/y")
    with Trap(errno.ENOTEMPTY):
        os.rmdir(f"{d}/x")
    same(names(f"{d}/x"), ["y"])


@row(RENAME, changes=True)
def rename(d):
    write(f"{d}/x", "text")
    os.mkdir(f"{d}/sub")
    with Trap():
        os.rename(f"{d}/x", f"{d}/sub/y")
    same((names(d), names(f"{d}/sub")), (["sub"], ["y"]))
    same(text(f"{d}/sub/y"), "text")
    same(os.stat(f"{d}/sub/y").st_nlink, 1)


@row(RENAME, changes=True)
def rename_of_a_directory(d):
    os.makedirs(f"{d}/x/inner")
    os.mkdir(f"{d}/sub")
    with Trap():
        os.rename(f"{d}/x", f"{d}/sub/y")
    same((names(d), names(f"{d}/sub"), names(f"{d}/sub/y")), (["sub"], ["y"], ["inner"]))
    write(f"{d}/sub/y/inner/file", "text")


@row(RENAME, changes=True)
def rename_over_a_file(d):
    write(f"{d}/x", "new")
    write(f"{d}/y", "old")
    with open(f"{d}/y") as old:
        with Trap():
            os.rename(f"{d}/x", f"{d}/y")
        same(names(d), ["y"])
        same((old.read(), os.fstat(old.fileno()).st_nlink), ("old", 0))
    same(text(f"{d}/y"), "new")


@row(RENAME2, changes=True)
def rename_exchange(d):
    write(f"{d}/x", "one")
    os.mkdir(f"{d}/y")
    write(f"{d}/y/file", "two")
    with Trap():
        renameat2(f"{d}/x", f"{d}/y", 2)
    same(text(f"{d}/y"), "one")
    same(text(f"{d}/x/file"), "two")
    same(names(d), ["x", "y"])


@row(RENAME2, changes=True)
def rename_without_replacing(d):
    write(f"{d}/x", "text")
    with Trap():
        renameat2(f"{d}/x", f"{d}/y", 1)
    same(names(d), ["y"])


@row(RENAME2, fails=True)
def rename_that_would_replace(d):
    write(f"{d}/x", "text")
    overtaken(errno.EEXIST, f"{d}/y", lambda: renameat2(f"{d}/x", f"{d}/y", 1), lambda name: write(name, "other"))
    same(text(f"{d}/x"), "text")
    with open(f"{behind(d)}/y") as file:
        same(file.read(), "other")


# MARK: Files


@row(OPEN)
def open_file(d):
    write(f"{d}/x", "text")
    with Trap():
        file = os.open(f"{d}/x", os.O_RDONLY)
    same(os.read(file, 10), b"text")
    os.close(file)


@row(OPEN)
def open_truncating(d):
    write(f"{d}/x", "text")
    with Trap():
        file = os.open(f"{d}/x", os.O_RDWR | os.O_TRUNC)
    same(os.fstat(file).st_size, 0)
    same(os.write(file, b"new"), 3)
    os.close(file)
    same(text(f"{d}/x"), "new")


@row(CREATE, changes=True)
def create(d):
    with Trap():
        file = os.open(f"{d}/x", os.O_RDWR | os.O_CREAT, 0o640)
    same(os.write(file, b"text"), 4)
    os.close(file)
    same(text(f"{d}/x"), "text")
    same(stat.S_IMODE(os.stat(f"{d}/x").st_mode), 0o640)
    same((os.stat(f"{d}/x").st_nlink, names(d)), (1, ["x"]))


@row(CREATE, changes=True)
def create_exclusively(d):
    with Trap():
        file = os.open(f"{d}/x", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o400)
    same(os.write(file, b"text"), 4)
    os.close(file)
    same(stat.S_IMODE(os.stat(f"{d}/x").st_mode), 0o400)


@row(CREATE, changes=True)
def create_with_inherited_acl(d):
    os.setxattr(d, "system.nfs4_acl", nfs4((0, 3, 0x1f01ff, "EVERYONE@")))
    with Trap():
        file = os.open(f"{d}/x", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    same(os.write(file, b"text"), 4)
    os.close(file)
    same(os.getxattr(f"{d}/x", "system.nfs4_acl")[-12:], b"EVERYONE@\0\0\0")
    same(stat.S_IMODE(os.stat(f"{d}/x").st_mode), 0o600)


@row(CREATE, fails=True)
def create_exclusively_what_is_there(d):
    overtaken(
        errno.EEXIST, f"{d}/x", lambda: os.open(f"{d}/x", os.O_RDWR | os.O_CREAT | os.O_EXCL), lambda name: write(name, "other"))
    same(text(f"{d}/x"), "other")


@row(CREATE)
def create_what_is_there(d):
    overtaken(0, f"{d}/x", lambda: os.open(f"{d}/x", os.O_RDWR | os.O_CREAT), lambda name: write(name, "other"))
    same(text(f"{d}/x"), "other")


@row(TMPFILE)
def tmpfile(d):
    with Trap():
        file = os.open(d, os.O_RDWR | os.O_TMPFILE, 0o600)
    same(os.write(file, b"text"), 4)
    same((os.pread(file, 10, 0), os.fstat(file).st_nlink), (b"text", 0))
    check(libc.linkat(-100, f"/proc/self/fd/{file}".encode(), -100, f"{d}/x".encode(), 0x400))
    os.close(file)
    same(names(d), ["x"])
    same(text(f"{d}/x"), "text")


@row(RELEASE, notice=True)
def release(d):
    write(f"{behind(d)}/x", "text")
    file = os.open(f"{d}/x", os.O_RDONLY)
    with Trap():
        os.close(file)
    os.unlink(f"{d}/x")


@row(FLUSH)
def flush(d):
    file = os.open(f"{d}/x", os.O_RDWR | os.O_CREAT)
    fcntl.lockf(file, fcntl.LOCK_EX)
    with Trap():
        os.close(file)
    with open(f"{d}/x", "r+") as other:
        alone(lambda: fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB))


if served:
    @row(READ_DATA)
    def read(d):
        write(f"{behind(d)}/x", "text")
        file = os.open(f"{d}/x", os.O_RDONLY)
        with Trap():
            same(os.read(file, 10), b"text")
        os.close(file)

    @row(WRITE)
    def write_at(d):
        file = os.open(f"{d}/x", os.O_RDWR | os.O_CREAT)
        os.write(file, b"0123456789")
        with Trap():
            same(os.pwrite(file, b"abc", 8), 3)
        os.close(file)
        same(text(f"{d}/x"), "01234567abc")

    @row(WRITE, changes=True)
    def write_at_the_end(d):
        write(f"{d}/x", "same ")
        file = os.open(f"{d}/x", os.O_WRONLY | os.O_APPEND)
        os.write(file, b"same ")
        with Trap():
            same(os.write(file, b"same "), 5)
        os.write(file, b"end")
        os.close(file)
        same(text(f"{d}/x"), "same same same end")


@row(FSYNC)
def fsync(d):
    with open(f"{d}/x", "w") as file:
        file.write("text")
        file.flush()
        with Trap():
            os.fsync(file.fileno())


@row(FALLOCATE)
def fallocate_plainly(d):
    file = os.open(f"{d}/x", os.O_RDWR | os.O_CREAT)
    with Trap():
        fallocate(file, 0, 0, 10000)
    same((os.fstat(file).st_size, os.stat(f"{behind(d)}/x").st_size), (10000, 10000))
    os.close(file)


@row(FALLOCATE)
def punch_hole(d):
    write(f"{d}/x", "A" * 4096 * 3)
    with open(f"{d}/x", "r+") as file:
        with Trap():
            fallocate(file.fileno(), 3, 4096, 4096)
    same(text(f"{d}/x"), "A" * 4096 + "\0" * 4096 + "A" * 4096)


@row(FALLOCATE)
def zero_range(d):
    write(f"{d}/x", "A" * 4096 * 3)
    with open(f"{d}/x", "r+") as file:
        with Trap():
            fallocate(file.fileno(), 0x10, 8192, 8192)
    same(text(f"{d}/x"), "A" * 8192 + "\0" * 8192)


@row(LSEEK)
def seek(d):
    file = os.open(f"{d}/x", os.O_RDWR | os.O_CREAT)
    os.pwrite(file, b"text", 1 << 20)
    with Trap():
        same(os.lseek(file, 0, os.SEEK_DATA), 1 << 20)
    os.close(file)


@row(COPY_RANGE)
def copy_range(d):
    write(f"{d}/x", "0123456789")
    source, target = os.open(f"{d}/x", os.O_RDONLY), os.open(f"{d}/y", os.O_RDWR | os.O_CREAT)
    with Trap():
        same(os.copy_file_range(source, target, 5, 2, 1), 5)
    os.close(source)
    os.close(target)
    same(text(f"{d}/y"), "\x0023456")


# MARK: Attributes


@row(STATX)
def statx_with_creation(d):
    write(f"{d}/x", "text")
    with Trap():
        same(statx(f"{d}/x")[9], 4)


@row(GETATTR)
def getattr(d):
    write(f"{d}/x", "text")
    with Trap():
        same(statx(f"{d}/x", 0x7ff)[9], 4)


@row(SETATTR)
def chmod(d):
    write(f"{d}/x", "text")
    with Trap():
        os.chmod(f"{d}/x", 0o604)
    same(stat.S_IMODE(os.stat(f"{d}/x").st_mode), 0o604)


@row(SETATTR)
def chown(d):
    write(f"{d}/x", "text")
    user = 12345 if os.getuid() == 0 else os.getuid()
    with Trap():
        os.chown(f"{d}/x", user, user)
    same((os.stat(f"{d}/x").st_uid, os.stat(f"{behind(d)}/x").st_gid), (user, user))


@row(SETATTR)
def truncate(d):
    write(f"{d}/x", "0123456789")
    with Trap():
        os.truncate(f"{d}/x", 4)
    same(text(f"{d}/x"), "0123")


@row(SETATTR)
def truncate_open_file(d):
    with open(f"{d}/x", "w+") as file:
        file.write("text")
        file.flush()
        with Trap():
            os.ftruncate(file.fileno(), 8)
    same(text(f"{d}/x"), "text\0\0\0\0")


@row(SETATTR)
def utimens(d):
    write(f"{d}/x", "text")
    with Trap():
        os.utime(f"{d}/x", ns=(1_000_000_001, 2_000_000_002))
    found = os.stat(f"{behind(d)}/x")
    same((found.st_atime_ns, found.st_mtime_ns), (1_000_000_001, 2_000_000_002))


@row(STATFS)
def statfs(d):
    with Trap():
        same(os.statvfs(d).f_namemax, 255)


@row(ACCESS)
def access(d):
    write(f"{d}/x", "text")
    with Trap():
        same(os.access(f"{d}/x", os.R_OK), True)


@row(SETXATTR)
def setxattr(d):
    write(f"{d}/x", "text")
    with Trap():
        os.setxattr(f"{d}/x", "user.a", b"value")
    same(os.getxattr(f"{behind(d)}/x", "user.a"), b"value")


@row(SETXATTR, changes=True)
def setxattr_create(d):
    write(f"{d}/x", "text")
    with Trap():
        os.setxattr(f"{d}/x", "user.a", b"value", os.XATTR_CREATE)
    same(os.getxattr(f"{behind(d)}/x", "user.a"), b"value")


@row(SETXATTR, fails=True)
def setxattr_create_what_is_there(d):
    write(f"{d}/x", "text")
    os.setxattr(f"{behind(d)}/x", "user.a", b"value")
    with Trap(errno.EEXIST):
        os.setxattr(f"{d}/x", "user.a", b"value", os.XATTR_CREATE)


@row(SETXATTR)
def setxattr_replace(d):
    write(f"{d}/x", "text")
    os.setxattr(f"{d}/x", "user.a", b"old")
    with Trap():
        os.setxattr(f"{d}/x", "user.a", b"value", os.XATTR_REPLACE)
    same(os.getxattr(f"{behind(d)}/x", "user.a"), b"value")


@row(SETXATTR)
def setxattr_replace_nothing(d):
    write(f"{d}/x", "text")
    with Trap(errno.ENODATA):
        os.setxattr(f"{d}/x", "user.a", b"value", os.XATTR_REPLACE)


@row(GETXATTR)
def getxattr(d):
    write(f"{d}/x", "text")
    os.setxattr(f"{behind(d)}/x", "user.a", b"value")
    with Trap():
        same(os.getxattr(f"{d}/x", "user.a"), b"value")


@row(LISTXATTR)
def listxattr(d):
    write(f"{d}/x", "text")
    os.setxattr(f"{behind(d)}/x", "user.a", b"value")
    with Trap():
        same(os.listxattr(f"{d}/x"), ["user.a"])


@row(REMOVEXATTR, changes=True)
def removexattr(d):
    write(f"{d}/x", "text")
    os.setxattr(f"{d}/x", "user.a", b"value")
    with Trap():
        os.removexattr(f"{d}/x", "user.a")
    same(os.listxattr(f"{behind(d)}/x"), [])


@row(REMOVEXATTR, fails=True)
def removexattr_of_nothing(d):
    write(f"{d}/x", "text")
    with Trap(errno.ENODATA):
        os.removexattr(f"{d}/x", "user.a")


def nfs4(*entries):
    """An ACL as the Linux NFS client shows it: of each entry the kind, the flags, the rights and for whom."""
    out = struct.pack(">I", len(entries))
    for kind, flags, rights, who in entries:
        text = who.encode()
        out += struct.pack(">4I", kind, flags, rights, len(text)) + text + b"\0" * (-len(text) % 4)
    return out


@row(SETXATTR, changes=True)
def set_acl(d):
    write(f"{d}/x", "text")
    acl = nfs4((0, 0, 0x1f01ff, "OWNER@"), (0, 0, 0x120081, "EVERYONE@"))
    with Trap():
        os.setxattr(f"{d}/x", "system.nfs4_acl", acl)
    same(os.getxattr(f"{d}/x", "system.nfs4_acl"), acl)


@row(SETXATTR, changes=True)
def create_acl(d):
    write(f"{d}/x", "text")
    write(f"{d}/y", "text")
    os.setxattr(f"{d}/y", "system.nfs4_acl", nfs4((0, 0, 0x1f01ff, "EVERYONE@")))
    acl = os.getxattr(f"{d}/y", "user.com.apple.system.Security")
    with Trap():
        os.setxattr(f"{d}/x", "user.com.apple.system.Security", acl, os.XATTR_CREATE)
    same(os.getxattr(f"{d}/x", "user.com.apple.system.Security"), acl)


@row(REMOVEXATTR, changes=True)
def remove_acl(d):
    write(f"{d}/x", "text")
    os.setxattr(f"{d}/x", "system.nfs4_acl", nfs4((0, 0, 0x1f01ff, "EVERYONE@")))
    with Trap():
        os.removexattr(f"{d}/x", "system.nfs4_acl")
    same(os.listxattr(f"{d}/x"), [])


if os.getuid() == 0:
    @row(SETXATTR, changes=True)
    def give_up_own_right(d):
        write(f"{d}/x", "text")
        os.setxattr(f"{d}/x", "system.nfs4_acl", nfs4((0, 0, 0x1f01ff, "EVERYONE@")))
        acl = nfs4((0, 0, 0x120081, "EVERYONE@"))
        os.seteuid(12345)
        try:
            with Trap():
                os.setxattr(f"{d}/x", "system.nfs4_acl", acl)
        finally:
            os.seteuid(0)
        same(os.getxattr(f"{d}/x", "system.nfs4_acl"), acl)

    @row(REMOVEXATTR, changes=True)
    def remove_the_acl_that_lets_one(d):
        write(f"{d}/x", "text")
        os.setxattr(f"{d}/x", "system.nfs4_acl", nfs4((0, 0, 0x1f01ff, "EVERYONE@")))
        os.seteuid(12345)
        try:
            with Trap():
                os.removexattr(f"{d}/x", "system.nfs4_acl")
        finally:
            os.seteuid(0)
        same(os.listxattr(f"{d}/x"), [])

    @row(SETATTR)
    def take_the_file(d):
        write(f"{d}/x", "text")
        os.setxattr(f"{d}/x", "system.nfs4_acl", nfs4((0, 0, 0x1f01ff, "EVERYONE@")))
        os.seteuid(12345)
        try:
            with Trap():
                os.chown(f"{d}/x", 12345, -1)
        finally:
            os.seteuid(0)
        same(os.stat(f"{d}/x").st_uid, 12345)


@row(SETXATTR, changes=True)
def set_flags(d):
    write(f"{d}/x", "text")
    with Trap():
        os.setxattr(f"{d}/x", "system.insula.flags", b"uchg,hidden")
    same(os.getxattr(f"{d}/x", "system.insula.flags"), b"uchg,hidden")
    os.removexattr(f"{d}/x", "system.insula.flags")


@row(REMOVEXATTR, changes=True)
def remove_flags(d):
    write(f"{d}/x", "text")
    os.setxattr(f"{d}/x", "system.insula.flags", b"uchg,hidden")
    with Trap():
        os.removexattr(f"{d}/x", "system.insula.flags")
    same(os.getxattr(f"{d}/x", "system.insula.flags"), b"")


# The kernel looks at the flags first.
@row(IOCTL, others=1, only=[READ, ANSWERING, ANSWERED])
def set_inode_flags(d):
    write(f"{d}/x", "text")
    with open(f"{d}/x") as file:
        before = struct.unpack("L", fcntl.ioctl(file, 0x80086601, b"\0" * 8))[0]
        with Trap():
            fcntl.ioctl(file, 0x40086602, struct.pack("L", before | 0x40))
        same(struct.unpack("L", fcntl.ioctl(file, 0x80086601, b"\0" * 8))[0], before | 0x40)


@row(IOCTL)
def get_inode_flags(d):
    write(f"{d}/x", "text")
    with open(f"{d}/x") as file:
        with Trap():
            fcntl.ioctl(file, 0x80086601, b"\0" * 8)


# MARK: Directories


@row(OPENDIR)
def opendir(d):
    write(f"{d}/x", "text")
    with Trap():
        file = os.open(d, os.O_RDONLY | os.O_DIRECTORY)
    same(os.listdir(file), ["x"])
    os.close(file)


@row(READDIRPLUS)
def readdirplus(d):
    for number in range(20):
        write(f"{behind(d)}/{number}", "text")
    with Trap():
        found = os.listdir(d)
    same(sorted(found), sorted(str(number) for number in range(20)))
    same(os.stat(f"{d}/7").st_size, 4)


@row(READDIR)
def readdir(d):
    for number in range(800):
        write(f"{behind(d)}/{number}", "")
    with Trap():
        found = os.listdir(d)
    same(sorted(found), sorted(str(number) for number in range(800)))


@row(RELEASEDIR, notice=True)
def releasedir(d):
    file = os.open(d, os.O_RDONLY | os.O_DIRECTORY)
    os.listdir(file)
    with Trap():
        os.close(file)
    same(names(d), [])


@row(FSYNCDIR)
def fsyncdir(d):
    file = os.open(d, os.O_RDONLY | os.O_DIRECTORY)
    with Trap():
        os.fsync(file)
    os.close(file)


# MARK: Locks


def alone(body):
    """Does it in another process, which must be able to."""
    child = os.fork()
    if child == 0:
        try:
            body()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    same(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, "another process gets")


def refused(body):
    child = os.fork()
    if child == 0:
        try:
            body()
            os._exit(0)
        except BlockingIOError:
            os._exit(77)
    same(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 77, "another process gets")


def reopened(d):
    return os.open(f"{d}/x", os.O_RDWR)


@row(SETLK)
def setlk(d):
    with open(write(f"{d}/x", ""), "r+") as file:
        with Trap():
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 20)
        refused(lambda: fcntl.lockf(reopened(d), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 25))
        alone(lambda: fcntl.lockf(reopened(d), fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0))


# Python asks for it as if it might have to wait.
@row(SETLKW)
def unlock(d):
    with open(write(f"{d}/x", ""), "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 20)
        with Trap():
            fcntl.lockf(file, fcntl.LOCK_UN, 5, 20)
        alone(lambda: fcntl.lockf(reopened(d), fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 20))
        refused(lambda: fcntl.lockf(reopened(d), fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 25))


@row(SETLKW)
def setlkw(d):
    with open(write(f"{d}/x", ""), "r+") as file:
        with Trap():
            fcntl.lockf(file, fcntl.LOCK_EX, 10, 20)
        refused(lambda: fcntl.lockf(reopened(d), fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 20))


def until_it_waits(pid):
    """Returns when a process sleeps in fcntl(2), and has for a while: its request is with the daemon."""
    call = {"x86_64": "72 ", "aarch64": "25 "}[os.uname().machine]
    end = time.monotonic() + 10
    since = None
    while since is None or time.monotonic() < since + 0.02:
        with open(f"/proc/{pid}/syscall") as file:
            waits = file.read().startswith(call)
        since = (since or time.monotonic()) if waits else None
        if time.monotonic() > end:
            raise Wrong("a process that was to wait does not")
        time.sleep(0.002)


def waiting_for_lock(d, lock, body):
    """A child that waits for a lock, which it gets by `body`; then nobody else does."""
    child = os.fork()
    if child == 0:
        try:
            own = reopened(d)
            lock(own)
            refused(lambda: fcntl.lockf(reopened(d), fcntl.LOCK_EX | fcntl.LOCK_NB))
            os._exit(0)
        except BaseException:
            os._exit(1)
    until_it_waits(child)
    body()
    same(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, "who has waited gets")


@row(SETLKW)
def unlock_for_who_waits(d):
    with open(write(f"{d}/x", ""), "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)

        def body():
            with Trap():
                fcntl.lockf(file, fcntl.LOCK_UN)
        waiting_for_lock(d, lambda own: fcntl.lockf(own, fcntl.LOCK_EX), body)


# The first answer is that of who waits.
row(SETLKW, others=1, only=[ANSWERING, ANSWERED])(unlock_for_who_waits)


@row(SETLK)
def flock(d):
    with open(write(f"{d}/x", ""), "r+") as file:
        with Trap():
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        refused(lambda: fcntl.flock(reopened(d), fcntl.LOCK_EX | fcntl.LOCK_NB))
    # Who closes it is not kept waiting.
    time.sleep(0.01)
    alone(lambda: fcntl.flock(reopened(d), fcntl.LOCK_EX | fcntl.LOCK_NB))


@row(GETLK)
def getlk(d):
    with open(write(f"{d}/x", ""), "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 10, 20)
        child = os.fork()
        if child == 0:
            try:
                with Trap():
                    found = fcntl.fcntl(reopened(d), fcntl.F_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))
                kind, _, first, length, _ = struct.unpack("hhqqi", found[:28])
                os._exit(0 if (kind, first, length) == (fcntl.F_WRLCK, 20, 10) else 1)
            except BaseException:
                os._exit(2)
        same(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, "another process finds")


# The kernel asks for the lock again, and says again that nobody wants it any more.
@row(STATX)
def interrupted_wait(d):
    with open(write(f"{d}/x", ""), "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        child = os.fork()
        if child == 0:
            fcntl.lockf(reopened(d), fcntl.LOCK_EX)
            os._exit(1)
        until_it_waits(child)
        with Trap():
            statx(d)
        os.kill(child, signal.SIGTERM)
        same(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), -signal.SIGTERM, "who has waited ends with")
    alone(lambda: fcntl.lockf(reopened(d), fcntl.LOCK_EX | fcntl.LOCK_NB))
