/* Up to which size a library's MPI_Send returns before the receiver does anything, in one launch.
 *
 *   thresholds [--largest BYTES] [--delay-us N] [--cpus A,B]
 *
 * detached      MPI_Send returns although the receiver makes no call of the library
 * asynchronous  MPI_Send returns although the receiver only calls MPI_Iprobe for another message:
 *               the library moves on, nothing is received
 *
 * Both by bisection. One look at a size: the receiver stays in one of the two states for a delay, and
 * MPI_Send came back early when it took less than half of it. Two looks of three decide. Where both
 * ranks have one clock, a send that lies within the receiver's state is proof by itself. A look whose
 * answer a rank's waiting for a CPU may have changed counts only when no better one can be had. Rank 0
 * prints one line of JSON.
 *
 * Status: as `rank`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "endpoint.h"
#include "plan.h"

enum { TAG_MESSAGE = 1, TAG_ORDER, TAG_READY, TAG_REPORT, TAG_NEVER };
enum state { DETACHED, ASYNCHRONOUS, FINISHED };

enum { MOST_LOOKS = 12 };
enum answer { LATE, EARLY, LATE_PERHAPS, EARLY_PERHAPS, EARLY_PROVEN };
/* Share of the delay that a rank may wait for a CPU before its look is doubted. */
static const double MOST_WAITING = 0.1;

struct order { int64_t state, size; };
/* From when to when the receiver was in its state, and its waiting for a CPU meanwhile. */
struct report { uint64_t begin, end, waited; };

struct search {
  uint64_t largest, delay_us;
  int cpus[2];
  char *buffer;
  int shares_clock;
  int looks, doubted, undecided;
};

struct threshold { int64_t bytes; int is_bound; };

/* What one message tells.
 *
 * A sender that was kept from its CPU may have begun too late or come back too late. A receiver that
 * was kept from its own only stays longer in its state, but makes no progress meanwhile: that spoils a
 * late return in the asynchronous state. */
static enum answer look(struct search *search, enum state state, int64_t size) {
  struct order order = {state, size};
  struct report report;
  uint64_t delay_ns = search->delay_us * 1000, waited = run_delay_ns();
  check(MPI_Send(&order, sizeof order, MPI_BYTE, 1, TAG_ORDER, MPI_COMM_WORLD));
  check(MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  wait_ns(delay_ns / 20); /* the receiver is in its state by then */
  uint64_t start = now();
  int code = MPI_Send(search->buffer, (int)size, MPI_BYTE, 1, TAG_MESSAGE, MPI_COMM_WORLD);
  uint64_t end = now();
  check(code);
  check(MPI_Recv(&report, sizeof report, MPI_BYTE, 1, TAG_REPORT, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  waited = run_delay_ns() - waited;
  const double most_ns = MOST_WAITING * (double)delay_ns;
  int is_early = end - start < delay_ns / 2;
  int needs_receiver = state == ASYNCHRONOUS && !is_early;
  search->looks++;
  if (search->shares_clock && start >= report.begin && end <= report.end) return EARLY_PROVEN;
  if ((double)waited <= most_ns && !(needs_receiver && (double)report.waited > most_ns))
    return is_early ? EARLY : LATE;
  search->doubted++;
  return is_early ? EARLY_PERHAPS : LATE_PERHAPS;
}

/* The other side of `look`, until it is told that the search is over. */
static void be_looked_at(const struct search *search) {
  for (;;) {
    struct order order;
    struct report report;
    check(MPI_Recv(&order, sizeof order, MPI_BYTE, 0, TAG_ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (order.state == FINISHED) return;
    report.waited = run_delay_ns();
    check(MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_READY, MPI_COMM_WORLD));
    report.begin = now();
    if (order.state == DETACHED) wait_ns(search->delay_us * 1000);
    for (uint64_t end = now() + search->delay_us * 1000; order.state == ASYNCHRONOUS && now() < end;) {
      int flag = 0;
      check(MPI_Iprobe(0, TAG_NEVER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    }
    report.end = now();
    report.waited = run_delay_ns() - report.waited;
    check(MPI_Recv(search->buffer, (int)order.size, MPI_BYTE, 0, TAG_MESSAGE, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE));
    check(MPI_Send(&report, sizeof report, MPI_BYTE, 0, TAG_REPORT, MPI_COMM_WORLD));
  }
}

/* A proof, or two equal looks that are beyond doubt; after many, what most looks said. */
static int returns_early(struct search *search, enum state state, int64_t size) {
  int found[EARLY_PROVEN + 1] = {0};
  for (int i = 0; i < MOST_LOOKS; i++) {
    enum answer answer = look(search, state, size);
    found[answer]++;
    if (answer == EARLY_PROVEN) return 1;
    if (answer <= EARLY && found[answer] == 2) return answer == EARLY;
  }
  search->undecided++;
  return found[EARLY] + found[EARLY_PERHAPS] > found[LATE] + found[LATE_PERHAPS];
}

static struct threshold bisect(struct search *search, enum state state) {
  int64_t early = 0, late = (int64_t)search->largest;
  if (!returns_early(search, state, early)) return (struct threshold){-1, 0};
  if (returns_early(search, state, late)) return (struct threshold){late, 1};
  while (late - early > 1) {
    int64_t middle = early + (late - early) / 2;
    if (returns_early(search, state, middle))
      early = middle;
    else
      late = middle;
  }
  return (struct threshold){early, 0};
}

/* A size, null where even the empty message waits; and whether larger ones were never tried. */
static void print_threshold(const char *name, struct threshold threshold) {
  if (threshold.bytes < 0)
    printf("\"%s_bytes\": null, ", name);
  else
    printf("\"%s_bytes\": %" PRId64 ", ", name, threshold.bytes);
  printf("\"%s_is_lower_bound\": %s, ", name, threshold.is_bound ? "true" : "false");
}

static void find_thresholds(struct search *search) {
  struct order finish = {FINISHED, 0};
  uint64_t begin = now();
  struct threshold detached = bisect(search, DETACHED);
  struct threshold asynchronous = bisect(search, ASYNCHRONOUS);
  check(MPI_Send(&finish, sizeof finish, MPI_BYTE, 1, TAG_ORDER, MPI_COMM_WORLD));
  printf("{\"format\": \"steelyard/mpi-thresholds/1\", ");
  print_threshold("detached", detached);
  print_threshold("asynchronous", asynchronous);
  printf("\"largest_bytes\": %" PRIu64 ", \"delay_us\": %" PRIu64 ", \"looks\": %d, \"doubted\": %d, "
         "\"undecided\": %d, \"duration_ns\": %" PRIu64 "}\n",
         search->largest, search->delay_us, search->looks, search->doubted, search->undecided,
         (uint64_t)((double)(now() - begin) / STAMPS_PER_MS * 1e6));
}

static const char *parse_search(struct search *search, int argc, char **argv) {
  *search = (struct search){4 << 20, 2000, {-1, -1}, NULL, 0, 0, 0, 0};
  for (int i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    int is_good = 0;
    if (strcmp(argv[i], "--largest") == 0) is_good = read_number(value, 1, INT32_MAX, &search->largest);
    if (strcmp(argv[i], "--delay-us") == 0) is_good = read_number(value, 10, 1000000, &search->delay_us);
    if (strcmp(argv[i], "--cpus") == 0) is_good = read_cpus(value, search->cpus);
    if (!is_good)
      return "allowed: --largest BYTES (1 to 2147483647), --delay-us N (10 to 1000000), --cpus A,B";
  }
  return NULL;
}

int main(int argc, char **argv) {
  struct search search;
  int rank, ranks, failed = 0;
  const char *problem = parse_search(&search, argc, argv);
  int known = rank_from_environment();
  if (known >= 0 && search.cpus[0] >= 0) failed = pin_to(search.cpus[known % 2]);
  prepare_to_end_with_parent();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (known < 0 && search.cpus[0] >= 0) failed = pin_to(search.cpus[rank % 2]);
  if (problem == NULL && ranks != 2) problem = "two ranks are needed: `mpirun -np 2`";
  if (problem == NULL && (search.buffer = malloc((size_t)search.largest)) == NULL) problem = "no memory";
  if (problem != NULL) {
    if (rank == 0) complain("%s", problem);
    MPI_Finalize();
    return STATUS_USAGE;
  }
  if (failed) complain("rank %d stays where it is: CPU %d: %s", rank, search.cpus[rank], strerror(failed));
  char boot[2][64];
  read_boot_id(boot[0], sizeof boot[0]);
  check(MPI_Sendrecv(boot[0], sizeof boot[0], MPI_BYTE, 1 - rank, TAG_ORDER, boot[1], sizeof boot[1],
                     MPI_BYTE, 1 - rank, TAG_ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  search.shares_clock = boot[0][0] != 0 && strcmp(boot[0], boot[1]) == 0;
  memset(search.buffer, rank, (size_t)search.largest);
  if (rank == 0)
    find_thresholds(&search);
  else
    be_looked_at(&search);
  free(search.buffer);
  MPI_Finalize();
  return STATUS_DONE;
}
