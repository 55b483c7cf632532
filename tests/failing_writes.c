/* Loaded before the C library (LD_PRELOAD): refuses calls that write below a directory, whoever makes them.

   FAIL_BELOW names the directory, with a slash at its end. FAIL_COUNT names a file of two longs: the number of such
   calls that still succeed, and the errno of those after them. */
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
  state = mmap(NULL, 2 * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
}

static int is_below(const char *path) { return strncmp(path, root, strlen(root)) == 0; }

static int is_file_below(int file) {
  char link[64], path[LONGEST];
  if (!root) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return is_below(path);
}

static int is_below_at(int directory, const char *path) {
  char link[64], whole[LONGEST];
  if (!root) return 0;
  if (directory == AT_FDCWD || path[0] == '/') return is_below(path);
  snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
  ssize_t size = readlink(link, whole, sizeof whole - 2);
  if (size < 0) return 0;
  whole[size] = '/';
  whole[size + 1] = 0;
  return is_below(whole);
}

static int is_refused(int is_meant) {
  if (!is_meant || __sync_fetch_and_sub(&state[0], 1) > 0) return 0;
  errno = (int)state[1];
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
REPLACED(int, mkdir, (const char *path, mode_t mode), (path, mode), is_below_at(AT_FDCWD, path))
REPLACED(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), is_below_at(at, path))
REPLACED(int, rename, (const char *from, const char *to), (from, to), is_below_at(AT_FDCWD, to))
REPLACED(int, renameat, (int old, const char *from, int at, const char *to), (old, from, at, to), is_below_at(at, to))
REPLACED(int, link, (const char *from, const char *to), (from, to), is_below_at(AT_FDCWD, to))
REPLACED(int, linkat, (int old, const char *from, int at, const char *to, int flags), (old, from, at, to, flags),
         is_below_at(at, to))

static mode_t mode_of(int flags, va_list more) { return flags & O_CREAT ? va_arg(more, mode_t) : 0; }

#define OPENING(name)                                                                                  \
  int name(const char *path, int flags, ...) {                                                         \
    static int (*real)(const char *, int, ...);                                                        \
    va_list more;                                                                                      \
    va_start(more, flags);                                                                             \
    mode_t mode = mode_of(flags, more);                                                                \
    va_end(more);                                                                                      \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                                         \
    return is_refused(flags & O_CREAT && is_below_at(AT_FDCWD, path)) ? -1 : real(path, flags, mode);  \
  }

#define OPENING_AT(name)                                                                               \
  int name(int at, const char *path, int flags, ...) {                                                 \
    static int (*real)(int, const char *, int, ...);                                                   \
    va_list more;                                                                                      \
    va_start(more, flags);                                                                             \
    mode_t mode = mode_of(flags, more);                                                                \
    va_end(more);                                                                                      \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                                         \
    return is_refused(flags & O_CREAT && is_below_at(at, path)) ? -1 : real(at, path, flags, mode);    \
  }

OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)
