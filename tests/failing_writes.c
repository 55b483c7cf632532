/* Loaded before the C library (LD_PRELOAD): refuses calls that write below a directory, whoever makes them.

   FAIL_BELOW names the directory, with a slash at its end. FAIL_COUNT names a file of three longs: how many such calls
   still succeed, how many are refused after them, and their errno. What removes is never refused. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LONGEST = 4096 };

static const char *root;
static long *state;

__attribute__((constructor)) static void begin(void) {
  const char *count = getenv("FAIL_COUNT");
  root = getenv("FAIL_BELOW");
  if (!root || !count) {
    root = NULL;
    return;
  }
  int file = open(count, O_RDWR);
  state = mmap(NULL, 3 * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
}

static int is_below(const char *path) { return root && strncmp(path, root, strlen(root)) == 0; }

static int is_link_below(const char *link, const char *name) {
  char path[LONGEST];
  ssize_t size = root ? readlink(link, path, sizeof path - 1) : -1;
  if (size < 0) return 0;
  snprintf(path + size, sizeof path - size, "/%s", name);
  return is_below(path);
}

static int is_file_below(int file) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  return is_link_below(link, "");
}

static int is_name_below(int folder, const char *name) {
  char link[64];
  if (name[0] == '/') return is_below(name);
  if (folder == AT_FDCWD) return is_link_below("/proc/self/cwd", name);
  snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  return is_link_below(link, name);
}

static int is_refused(int is_meant) {
  long left = is_meant ? __sync_fetch_and_sub(&state[0], 1) : 1;
  if (left > 0 || left <= -state[1]) return 0;
  errno = (int)state[2];
  return 1;
}

#define REPLACED(type, name, parameters, arguments, is_meant) \
  type name parameters {                                      \
    static type(*real) parameters;                            \
    if (!real) real = dlsym(RTLD_NEXT, #name);                \
    return is_refused(is_meant) ? -1 : real arguments;        \
  }

REPLACED(ssize_t, write, (int file, const void *bytes, size_t size), (file, bytes, size), is_file_below(file))
REPLACED(ssize_t, pwrite, (int file, const void *bytes, size_t size, off_t at), (file, bytes, size, at), is_file_below(file))
REPLACED(ssize_t, pwrite64, (int file, const void *bytes, size_t size, off64_t at), (file, bytes, size, at), is_file_below(file))
REPLACED(ssize_t, writev, (int file, const struct iovec *pieces, int count), (file, pieces, count), is_file_below(file))
REPLACED(ssize_t, copy_file_range, (int from, off64_t *at, int file, off64_t *to, size_t size, unsigned flags),
         (from, at, file, to, size, flags), is_file_below(file))
REPLACED(ssize_t, sendfile, (int file, int from, off_t *at, size_t size), (file, from, at, size), is_file_below(file))
REPLACED(ssize_t, sendfile64, (int file, int from, off64_t *at, size_t size), (file, from, at, size), is_file_below(file))
REPLACED(int, fsync, (int file), (file), is_file_below(file))
REPLACED(int, fdatasync, (int file), (file), is_file_below(file))
REPLACED(int, ftruncate, (int file, off_t size), (file, size), is_file_below(file))
REPLACED(int, ftruncate64, (int file, off64_t size), (file, size), is_file_below(file))
REPLACED(int, mkdir, (const char *path, mode_t mode), (path, mode), is_name_below(AT_FDCWD, path))
REPLACED(int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), is_name_below(folder, path))
REPLACED(int, rename, (const char *from, const char *to), (from, to), is_name_below(AT_FDCWD, to))
REPLACED(int, renameat, (int folder, const char *from, int target, const char *to), (folder, from, target, to),
         is_name_below(target, to))
REPLACED(int, renameat2, (int folder, const char *from, int target, const char *to, unsigned flags),
         (folder, from, target, to, flags), is_name_below(target, to))
REPLACED(int, link, (const char *from, const char *to), (from, to), is_name_below(AT_FDCWD, to))
REPLACED(int, linkat, (int folder, const char *from, int target, const char *to, int flags),
         (folder, from, target, to, flags), is_name_below(target, to))

/* An open that makes a file; `before` and `passed` are the folder that a name is relative to. */
#define OPENING(name, before, passed, folder)                                                                     \
  int name(before const char *path, int flags, ...) {                                                             \
    static int (*real)(before const char *, int, ...);                                                            \
    va_list more;                                                                                                 \
    va_start(more, flags);                                                                                        \
    mode_t mode = va_arg(more, mode_t);                                                                           \
    va_end(more);                                                                                                 \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                                                    \
    return is_refused(flags & O_CREAT && is_name_below(folder, path)) ? -1 : real(passed path, flags, mode);      \
  }

#define COMMA ,
OPENING(open, , , AT_FDCWD)
OPENING(open64, , , AT_FDCWD)
OPENING(openat, int folder COMMA, folder COMMA, folder)
OPENING(openat64, int folder COMMA, folder COMMA, folder)
