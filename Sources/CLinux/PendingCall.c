// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

#include "CLinux.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <sys/syscall.h>

_Bool clx_call_changes_nothing(long call, const uint64_t *_Nonnull arguments) {
  switch (call) {
  case SYS_close:
  case SYS_read: case SYS_pread64: case SYS_readv: case SYS_preadv: case SYS_preadv2:
  case SYS_lseek: case SYS_getdents64: case SYS_readlinkat:
  case SYS_statx: case SYS_newfstatat: case SYS_fstat: case SYS_fstatfs:
#ifdef SYS_stat
  case SYS_stat: case SYS_lstat: case SYS_readlink: case SYS_access:
#endif
  case SYS_statfs: case SYS_faccessat: case SYS_faccessat2: case SYS_name_to_handle_at:
  case SYS_getxattr: case SYS_lgetxattr: case SYS_fgetxattr:
  case SYS_listxattr: case SYS_llistxattr: case SYS_flistxattr:
  // getxattrat, listxattrat (Linux 6.13).
  case 464: case 465:
  // Ours look at what others have made (openToExamine).
  case SYS_openat2:
    return true;
  case SYS_openat:
    return (arguments[2] & (O_CREAT | O_TRUNC)) == 0;
  case SYS_ioctl:
    return (uint32_t)arguments[1] == (uint32_t)FS_IOC_GETFLAGS;
  default:
    return false;
  }
}

_Bool clx_call_changes_objects(long call, const uint64_t *_Nonnull arguments) {
  switch (call) {
  case SYS_fchmod: case SYS_fchmodat: case 452: // fchmodat2
  case SYS_fchown: case SYS_fchownat: case SYS_utimensat:
  case SYS_setxattr: case SYS_lsetxattr: case SYS_fsetxattr:
  case SYS_removexattr: case SYS_lremovexattr: case SYS_fremovexattr:
  // setxattrat, removexattrat.
  case 463: case 466:
  case SYS_mkdirat: case SYS_mknodat: case SYS_symlinkat: case SYS_linkat: case SYS_unlinkat:
  case SYS_renameat2:
#ifdef SYS_renameat
  case SYS_renameat:
#endif
#ifdef SYS_chmod
  case SYS_chmod: case SYS_chown: case SYS_lchown:
#endif
    return true;
  case SYS_openat:
    return (arguments[2] & O_TRUNC) == 0;
  case SYS_ioctl:
    return (uint32_t)arguments[1] == (uint32_t)FS_IOC_SETFLAGS;
  default:
    return false;
  }
}

_Bool clx_call_removes_name(long call) { return call == SYS_unlinkat; }

_Bool clx_call_changes_contents(long call) {
  switch (call) {
  case SYS_write: case SYS_pwrite64: case SYS_writev: case SYS_pwritev: case SYS_pwritev2:
  case SYS_ftruncate: case SYS_fallocate: case SYS_fsync: case SYS_fdatasync:
    return true;
  default:
    return false;
  }
}
