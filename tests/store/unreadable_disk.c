/* For LD_PRELOAD: reads of FAIL_READS_OF from the offset FAIL_READS_FROM on fail with EIO, as those of a broken disk do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int bad(int fd, off_t at) {
    char link[64], name[4096]; const char *victim = getenv("FAIL_READS_OF"), *from = getenv("FAIL_READS_FROM");
    if (!victim) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof name - 1);
    if (n <= 0) return 0;
    name[n] = 0;
    return !strcmp(name, victim) && at >= atoll(from ? from : "0");
}
ssize_t pread64(int fd, void *buf, size_t count, off_t at) {
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "pread64");
    if (bad(fd, at)) { errno = EIO; return -1; }
    return real(fd, buf, count, at);
}
ssize_t pread(int fd, void *buf, size_t count, off_t at) { return pread64(fd, buf, count, at); }
