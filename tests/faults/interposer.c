/* Lets the n-th file operation below a folder fail, whoever asks for it: Python, NumPy, Arrow.
 *
 * Loaded before the C library (LD_PRELOAD), it stands between a process and the operations that
 * fail on real machines. Nothing happens until faults_arm() names a folder, a kind of operation,
 * a number and an error; faults_seen() then counts the operations, faults_fired() the failures. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { CREATE, WRITE, SYNC, RENAME, READ };

static char root[PATH_MAX];
static size_t root_length;
static int armed_kind = -1, armed_error, armed_lasting;
static long armed_at;
static atomic_long seen, fired;

void faults_arm(const char *folder, int kind, long at, int error, int lasting) {
  armed_kind = -1;
  snprintf(root, sizeof root, "%s/", folder);
  root_length = strlen(root);
  armed_at = at;
  armed_error = error;
  armed_lasting = lasting;
  atomic_store(&seen, 0);
  atomic_store(&fired, 0);
  armed_kind = kind;
}

void faults_disarm(void) { armed_kind = -1; }
long faults_seen(void) { return atomic_load(&seen); }
long faults_fired(void) { return atomic_load(&fired); }

/* Whether an operation of this kind fails now; it does not end here unless it does. */
static int fails(int kind, const char *path) {
  if (kind != armed_kind || strncmp(path, root, root_length) != 0) return 0;
  long number = atomic_fetch_add(&seen, 1) + 1;
  if (number != armed_at && !(armed_lasting && number > armed_at)) return 0;
  atomic_fetch_add(&fired, 1);
  errno = armed_error;
  return 1;
}

static int fails_at(int kind, int fd) {
  if (kind != armed_kind) return 0;
  char link[64], path[PATH_MAX];
  int kept = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  errno = kept;
  if (length < 0) return 0;
  path[length] = 0;
  return fails(kind, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name)                                                          \
  int name(const char *path, int flags, ...) {                              \
    va_list given;                                                          \
    va_start(given, flags);                                                 \
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(given, mode_t) : 0; \
    va_end(given);                                                          \
    if (flags & O_CREAT && fails(CREATE, path)) return -1;                  \
    return NEXT(name)(path, flags, mode);                                   \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                        \
  int name(int at, const char *path, int flags, ...) {                      \
    va_list given;                                                          \
    va_start(given, flags);                                                 \
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(given, mode_t) : 0; \
    va_end(given);                                                          \
    if (flags & O_CREAT && fails(CREATE, path)) return -1;                  \
    return NEXT(name)(at, path, flags, mode);                               \
  }
OPENAT(openat)
OPENAT(openat64)

int mkdir(const char *path, mode_t mode) {
  return fails(CREATE, path) ? -1 : NEXT(mkdir)(path, mode);
}

int mkdirat(int at, const char *path, mode_t mode) {
  return fails(CREATE, path) ? -1 : NEXT(mkdirat)(at, path, mode);
}

/* A write that finds no more space first writes what still fits, as a disk does. */
ssize_t write(int fd, const void *data, size_t size) {
  if (fails_at(WRITE, fd)) {
    if (armed_error == ENOSPC && armed_lasting && size > 1 && atomic_load(&fired) == 1)
      return NEXT(write)(fd, data, size / 2);
    return -1;
  }
  return NEXT(write)(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  return fails_at(WRITE, fd) ? -1 : NEXT(pwrite)(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  return fails_at(WRITE, fd) ? -1 : NEXT(pwrite64)(fd, data, size, at);
}

ssize_t writev(int fd, const struct iovec *data, int count) {
  return fails_at(WRITE, fd) ? -1 : NEXT(writev)(fd, data, count);
}

size_t fwrite(const void *data, size_t size, size_t count, FILE *file) {
  return fails_at(WRITE, fileno(file)) ? 0 : NEXT(fwrite)(data, size, count, file);
}

ssize_t sendfile(int out, int in, off_t *at, size_t size) {
  return fails_at(WRITE, out) || fails_at(READ, in) ? -1 : NEXT(sendfile)(out, in, at, size);
}

ssize_t sendfile64(int out, int in, off64_t *at, size_t size) {
  return fails_at(WRITE, out) || fails_at(READ, in) ? -1 : NEXT(sendfile64)(out, in, at, size);
}

int ftruncate(int fd, off_t size) { return fails_at(WRITE, fd) ? -1 : NEXT(ftruncate)(fd, size); }

int ftruncate64(int fd, off64_t size) {
  return fails_at(WRITE, fd) ? -1 : NEXT(ftruncate64)(fd, size);
}

int fsync(int fd) { return fails_at(SYNC, fd) ? -1 : NEXT(fsync)(fd); }

int fdatasync(int fd) { return fails_at(SYNC, fd) ? -1 : NEXT(fdatasync)(fd); }

int rename(const char *from, const char *to) {
  return fails(RENAME, to) ? -1 : NEXT(rename)(from, to);
}

int renameat(int at, const char *from, int there, const char *to) {
  return fails(RENAME, to) ? -1 : NEXT(renameat)(at, from, there, to);
}

int link(const char *from, const char *to) { return fails(RENAME, to) ? -1 : NEXT(link)(from, to); }

ssize_t read(int fd, void *data, size_t size) {
  return fails_at(READ, fd) ? -1 : NEXT(read)(fd, data, size);
}

ssize_t pread(int fd, void *data, size_t size, off_t at) {
  return fails_at(READ, fd) ? -1 : NEXT(pread)(fd, data, size, at);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t at) {
  return fails_at(READ, fd) ? -1 : NEXT(pread64)(fd, data, size, at);
}

size_t fread(void *data, size_t size, size_t count, FILE *file) {
  return fails_at(READ, fileno(file)) ? 0 : NEXT(fread)(data, size, count, file);
}
