/* What an endpoint of a message run stamps and keeps: its clock, the state of its host, its files.
 *
 * Compiled by mpicc, and by smpicc with -DSTEELYARD_SIMULATED: then time is the simulator's, and a
 * simulated host has neither a scheduler nor caches to look at.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STEELYARD_ENDPOINT_H
#define STEELYARD_ENDPOINT_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_USAGE = 2, STATUS_LOST = 3 };

/* One line, whole: mpirun mixes what both ranks say. */
static void complain(const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  fprintf(stderr, "error: %s\n", line);
  fflush(stderr);
}

/* End both ranks when the library reports that a message could not be moved. */
static void check(int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  complain("the other rank was lost: %s", text);
  MPI_Abort(MPI_COMM_WORLD, STATUS_LOST);
}

/* --- time -------------------------------------------------------------------------------------- */

#ifdef STEELYARD_SIMULATED
#define CLOCK_NAME "MPI_Wtime"
/* Simulated times are exact to 1e-12 s; a stamp may be in picoseconds (--stamps-ps). */
static double stamps_per_s = 1e9;
#define STAMPS_PER_MS (stamps_per_s / 1e3)
#define STAMP_UNIT (stamps_per_s > 1e9 ? "ps" : "ns")
#define IS_SIMULATED "true"
static uint64_t now(void) { return (uint64_t)(MPI_Wtime() * stamps_per_s + 0.5); }
static void wait_ns(uint64_t duration_ns) { usleep((useconds_t)((duration_ns + 999) / 1000)); }
#else
#define CLOCK_NAME "CLOCK_MONOTONIC"
#define STAMPS_PER_MS 1e6
#define STAMP_UNIT "ns"
#define IS_SIMULATED "false"
static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
/* Busy: a sleeping rank would pay for waking up. */
static void wait_ns(uint64_t duration_ns) {
  for (uint64_t end = now() + duration_ns; now() < end;) {
  }
}
#endif

/* The price of one stamp [ns], least of ten batches, and the smallest step of the clock. */
static void judge_clock(double *cost_ns, uint64_t *resolution) {
  enum { BATCHES = 10, STAMPS = 200 };
  *cost_ns = INFINITY;
  *resolution = UINT64_MAX;
  for (int batch = 0; batch < BATCHES; batch++) {
    uint64_t begin = now(), before = begin;
    for (int i = 0; i < STAMPS; i++) {
      uint64_t after = now();
      if (after > before && after - before < *resolution) *resolution = after - before;
      before = after;
    }
    double each = (double)(before - begin) / STAMPS;
    if (each < *cost_ns) *cost_ns = each;
  }
  if (*resolution == UINT64_MAX) *resolution = 0;
}

/* --- the state of the host ---------------------------------------------------------------------- */

/* Time this thread has waited for a CPU since its start [ns]: second word of schedstat. The file is
 * opened once; 0 where the kernel does not tell. */
static uint64_t run_delay_ns(void) {
#ifdef STEELYARD_SIMULATED
  return 0;
#else
  static int file = -2;
  if (file == -2) file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  char text[128];
  ssize_t length = file < 0 ? -1 : pread(file, text, sizeof text - 1, 0);
  uint64_t delay = 0;
  if (length > 0) {
    text[length] = 0;
    if (sscanf(text, "%*u %" SCNu64, &delay) != 1) delay = 0;
  }
  return delay;
#endif
}

/* Name of this boot of the host: ranks with the same one share their clock and memory. */
static void read_boot_id(char *text, size_t room) {
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  memset(text, 0, room);
  if (file == NULL) return;
  if (fgets(text, (int)room, file) == NULL) text[0] = 0;
  text[strcspn(text, "\n")] = 0;
  fclose(file);
}

static uint32_t current_cpu(void) {
#ifdef STEELYARD_SIMULATED
  return 0;
#else
  int cpu = sched_getcpu();
  return cpu < 0 ? 0 : (uint32_t)cpu;
#endif
}

/* Keep this process on one CPU; 0 or an error number. Helper threads made later inherit it. */
static int pin_to(int cpu) {
#ifndef STEELYARD_SIMULATED
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu < 0 || cpu >= CPU_SETSIZE) return EINVAL;
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) return errno;
#endif
  (void)cpu;
  return 0;
}

/* The CPUs this process may use, as `0,2,3`. */
static void describe_binding(char *text, size_t room) {
  text[0] = 0;
#ifndef STEELYARD_SIMULATED
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return;
  size_t used = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && used + 8 < room; cpu++)
    if (CPU_ISSET(cpu, &set)) used += (size_t)snprintf(text + used, room - used, used ? ",%d" : "%d", cpu);
#else
  (void)room;
#endif
}

/* Rank as the starter says it, before the library does: so that what the library makes at its start
 * is on the rank's CPU already. -1: not said. */
static int rank_from_environment(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = getenv(names[i]);
    if (value != NULL && *value != 0) return atoi(value);
  }
  return -1;
}

/* A rank whose starter was killed would spin for ever. */
static void prepare_to_end_with_parent(void) {
#ifndef STEELYARD_SIMULATED
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

/* Memory that can still be had without swapping [bytes]; UINT64_MAX where the kernel does not tell. */
static uint64_t available_bytes(void) {
  uint64_t kib = UINT64_MAX / 1024;
  FILE *file = fopen("/proc/meminfo", "r");
  if (file != NULL) {
    char line[128];
    while (fgets(line, sizeof line, file) != NULL)
      if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1) break;
    fclose(file);
  }
  return kib * 1024;
}

/* --- files -------------------------------------------------------------------------------------- */

/* A file mapped at its full length, its blocks allocated and its pages touched: later stores cause
 * neither a system call nor a first fault, and stay when the process is killed. NULL: see errno. */
static void *map_file(const char *folder, const char *name, int rank, size_t bytes) {
  char path[4096];
  if (rank >= 0)
    snprintf(path, sizeof path, "%s/%s.%d.bin", folder, name, rank);
  else
    snprintf(path, sizeof path, "%s/%s.bin", folder, name);
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return NULL;
  int failed = bytes == 0 ? 0 : posix_fallocate(file, 0, (off_t)bytes);
  void *memory = NULL;
  if (failed == 0) {
    memory = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
      failed = errno;
      memory = NULL;
    } else if (bytes != 0) {
      memset(memory, 0, bytes);
    }
  }
  close(file);
  errno = failed;
  return memory;
}

/* Cut a file to what was used of it. */
static int cut_file(const char *folder, const char *name, int rank, size_t bytes) {
  char path[4096];
  if (rank >= 0)
    snprintf(path, sizeof path, "%s/%s.%d.bin", folder, name, rank);
  else
    snprintf(path, sizeof path, "%s/%s.bin", folder, name);
  return truncate(path, (off_t)bytes);
}

static void write_text(FILE *file, const char *name, const char *text) {
  fprintf(file, " \"%s\": \"", name);
  for (const unsigned char *byte = (const unsigned char *)text; *byte; byte++) {
    if (*byte == '"' || *byte == '\\')
      fprintf(file, "\\%c", *byte);
    else if (*byte < 0x20)
      fprintf(file, "\\u%04x", *byte);
    else
      fputc(*byte, file);
  }
  fputs("\",\n", file);
}

/* --- the canary --------------------------------------------------------------------------------- */

/* A cache line that both ranks write in turn, and in another line the word that shows that both have
 * mapped the same memory. */
struct canary {
  uint64_t nonce;
  char unused[120];
  uint64_t turn;
  char rest[120];
};

enum { CANARY_CHUNKS = 8, CANARY_ROUNDS = 128 };
static const uint64_t CANARY_LIMIT_NS = 20000000;

static inline struct canary *map_canary(const char *path) {
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return NULL;
  void *memory = MAP_FAILED;
  if (ftruncate(file, (off_t)sizeof(struct canary)) == 0)
    memory = mmap(NULL, sizeof(struct canary), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? NULL : memory;
}

/* ORDERING: acquire pairs with the other rank's release in `time_canary`. */
static int await_turn(const uint64_t *turn, uint64_t value, uint64_t deadline) {
  for (uint32_t spins = 1; __atomic_load_n(turn, __ATOMIC_ACQUIRE) != value; spins++)
    if (spins % 1024 == 0 && now() > deadline) return 0;
  return 1;
}

/* Round trip of a cache line [ns]: the least of some chunk means, since a rank that loses its CPU
 * spoils only the chunk it is in. NaN when the other rank does not answer in time.
 *
 * `number` is that of this measurement, counted from 0 by both ranks. */
static inline double time_canary(struct canary *canary, int rank, uint64_t number) {
  uint64_t turn = number * (2 * CANARY_CHUNKS * CANARY_ROUNDS) + 1;
  uint64_t deadline = now() + CANARY_LIMIT_NS;
  double best = INFINITY;
  for (int chunk = 0; chunk < CANARY_CHUNKS; chunk++) {
    uint64_t begin = now();
    for (int round = 0; round < CANARY_ROUNDS; round++, turn += 2) {
      if (rank == 0) {
        __atomic_store_n(&canary->turn, turn, __ATOMIC_RELEASE);
        if (!await_turn(&canary->turn, turn + 1, deadline)) return NAN;
      } else {
        if (!await_turn(&canary->turn, turn, deadline)) return NAN;
        __atomic_store_n(&canary->turn, turn + 1, __ATOMIC_RELEASE);
      }
    }
    double each = (double)(now() - begin) / CANARY_ROUNDS;
    if (each < best) best = each;
  }
  return best;
}

#endif
