/* What a run of two ranks holds, how it is made ready, and the files it leaves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STEELYARD_RUN_H
#define STEELYARD_RUN_H

#include "endpoint.h"
#include "plan.h"

enum { TAG_MESSAGE = 1, TAG_READY, TAG_PROBE, TAG_CONTROL, TAG_END, TAG_PENDING };
enum { FIRST_PROBES = 500 };

struct record { uint32_t seq, op; uint64_t size, start, mid, end; };
struct block { uint32_t seq, cpu; uint64_t time, run_delay; double canary; };
struct probe { uint32_t seq, unused; uint64_t send0, time1, recv0; };

/* Both ranks do after each block what rank 0 says. */
struct control { int32_t goes_on, has_canary; };

struct run {
  struct request request;
  int rank;
  struct plan plan;
  char *outgoing, *incoming;
  struct record *records;
  struct block *blocks;
  struct probe *probes;
  size_t block_count, probe_count;
  struct canary *canary;
  uint64_t canary_count;
  int canary_failures;
  MPI_Comm quiet; /* where no message ever comes before the end */
  MPI_Request pending;
  uint64_t begin, done, executed;
  uint64_t checksum; /* of what this rank executed, FNV-1a */
};

/* --- before the first stamp --------------------------------------------------------------------- */

/* Whether every rank can go on; each that cannot has said why. */
static int all_ready(int is_ready) {
  int all = 0;
  check(MPI_Allreduce(&is_ready, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
  return all;
}

static int give_plan(struct run *run) {
  const uint64_t most_bytes = INT32_MAX / sizeof(struct entry) * sizeof(struct entry);
  int is_ready = run->rank != 0 || read_plan(run->request.plan, &run->plan);
  if (!all_ready(is_ready)) return 0;
  check(MPI_Bcast(&run->plan.count, sizeof run->plan.count, MPI_BYTE, 0, MPI_COMM_WORLD));
  if (run->rank != 0) run->plan.entries = malloc((size_t)run->plan.count * sizeof(struct entry));
  if (!all_ready(run->plan.entries != NULL)) return 0;
  char *place = (char *)run->plan.entries;
  for (uint64_t left = run->plan.count * sizeof(struct entry); left > 0;) {
    uint64_t bytes = left < most_bytes ? left : most_bytes;
    check(MPI_Bcast(place, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
    place += bytes, left -= bytes;
  }
#ifdef STEELYARD_PLANTED_MISMATCH /* the tests' proof that the comparison at the end sees it */
  if (run->rank != 0 && run->plan.count > 0) run->plan.entries[run->plan.count - 1].size ^= 1;
#endif
  return 1;
}

/* Buffers for the largest message, touched. Refused, not tried, where memory is short: the system
 * would give it and later end some process. */
static int make_buffers(struct run *run) {
  char boot[2][64];
  uint64_t largest = largest_size(&run->plan);
  read_boot_id(boot[0], sizeof boot[0]);
  check(MPI_Sendrecv(boot[0], sizeof boot[0], MPI_BYTE, 1 - run->rank, TAG_END, boot[1], sizeof boot[1],
                     MPI_BYTE, 1 - run->rank, TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  uint64_t ranks_here = strcmp(boot[0], boot[1]) == 0 ? 2 : 1;
  /* One more for what a library holds of a message that is on its way. */
  uint64_t needed = ranks_here * 3 * largest, available = available_bytes();
  if (largest > UINT64_MAX / 8 || needed > available) {
    if (run->rank == 0 || ranks_here == 1)
      complain("messages of %" PRIu64 " bytes need %" PRIu64 " MiB of memory on this host, which has %" PRIu64
               " MiB to give: plan smaller ones",
               largest, largest > UINT64_MAX / 8 ? UINT64_MAX >> 20 : needed >> 20, available >> 20);
    return 0;
  }
  void *memory[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) {
    if (posix_memalign(&memory[i], 4096, largest ? (size_t)largest : 1) != 0) {
      complain("no memory for a message of %" PRIu64 " bytes", largest);
      return 0;
    }
    memset(memory[i], run->rank + 1, largest ? (size_t)largest : 1);
  }
  run->outgoing = memory[0], run->incoming = memory[1];
  return 1;
}

/* Map the canary's file, and see whether the other rank sees the same memory. */
static void share_canary(struct run *run) {
#ifndef STEELYARD_SIMULATED
  uint64_t nonce = now() ^ ((uint64_t)getpid() << 40);
  if (run->request.canary != NULL) run->canary = map_canary(run->request.canary);
  if (run->canary != NULL && run->rank == 0) run->canary->turn = 0, run->canary->nonce = nonce;
  check(MPI_Bcast(&nonce, sizeof nonce, MPI_BYTE, 0, MPI_COMM_WORLD));
  if (!all_ready(run->canary != NULL && run->canary->nonce == nonce)) run->canary = NULL;
#else
  (void)run;
#endif
}

/* --- files -------------------------------------------------------------------------------------- */

static int make_files(struct run *run) {
  const char *out = run->request.out;
  uint64_t blocks = run->plan.count / run->request.block + 3;
  uint64_t probes = 3 * FIRST_PROBES + blocks * run->request.probes;
  run->records = map_file(out, "operations", run->rank, (size_t)run->plan.count * sizeof(struct record));
  if (run->records != NULL)
    run->blocks = map_file(out, "blocks", run->rank, (size_t)blocks * sizeof(struct block));
  if (run->blocks != NULL && run->rank == 0)
    run->probes = map_file(out, "probes", -1, (size_t)probes * sizeof(struct probe));
  if (run->records != NULL && run->blocks != NULL && (run->rank != 0 || run->probes != NULL)) return 1;
  complain("rank %d cannot write its files to `%s`: %s", run->rank, out, strerror(errno));
  return 0;
}

static void cut_files(const struct run *run) {
  const char *out = run->request.out;
  if (cut_file(out, "operations", run->rank, (size_t)run->executed * sizeof(struct record)) != 0 ||
      cut_file(out, "blocks", run->rank, run->block_count * sizeof(struct block)) != 0 ||
      (run->rank == 0 && cut_file(out, "probes", -1, run->probe_count * sizeof(struct probe)) != 0))
    complain("rank %d cannot shorten its files: %s", run->rank, strerror(errno));
}

/* Written at the begin, so that a run that is killed can be read, and again at the end. */
static void write_header(const struct run *run, int is_complete, double cost_ns, uint64_t resolution) {
  char path[4096], temporary[4096 + 8], text[1 << 14] = "";
  char host[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0, version = 0, subversion = 0, level = 0;
  snprintf(path, sizeof path, "%s/header.%d.json", run->request.out, run->rank);
  snprintf(temporary, sizeof temporary, "%s.new", path);
  FILE *file = fopen(temporary, "w");
  if (file == NULL) return;
  fprintf(file, "{\n \"format\": \"steelyard/trace/1\",\n \"rank\": %d,\n", run->rank);
  write_text(file, "transport", run->request.transport);
  fprintf(file, " \"operations\": %" PRIu64 ",\n \"is_complete\": %s,\n", run->executed,
          is_complete ? "true" : "false");
  const char *end = run->executed < run->plan.count ? "\"budget\"" : "\"plan\"";
  fprintf(file, " \"ended_by\": %s,\n", is_complete ? end : "null");
  write_text(file, "program", "steelyard mpi rank");
  fprintf(file, " \"planned\": %" PRIu64 ",\n \"is_simulated\": %s,\n", run->plan.count, IS_SIMULATED);
  MPI_Get_processor_name(host, &length);
  write_text(file, "host", host);
  const char *node = getenv("SLURMD_NODENAME"); /* several nodes of a cluster may be one host */
  if (node != NULL) write_text(file, "node", node);
  read_boot_id(text, sizeof text);
  write_text(file, "boot_id", text);
  describe_binding(text, sizeof text);
  write_text(file, "binding", text);
#if MPI_VERSION >= 3
  MPI_Get_library_version(text, &length);
  text[strcspn(text, "\n")] = 0; /* some say how they were built, in pages */
  for (char *tab = text; (tab = strchr(tab, '\t')) != NULL;) *tab = ' ';
  write_text(file, "mpi_library", text);
#endif
  MPI_Get_version(&version, &subversion);
  MPI_Query_thread(&level);
  fprintf(file, " \"mpi_standard\": \"%d.%d\",\n \"mpi_thread_level\": %d,\n", version, subversion, level);
  write_text(file, "clock", CLOCK_NAME);
  fprintf(file, " \"stamp_unit\": \"%s\",\n", STAMP_UNIT);
  fprintf(file, " \"stamp_resolution_ns\": %" PRIu64 ",\n \"stamp_cost_ns\": %.2f,\n", resolution, cost_ns);
  fprintf(file, " \"block\": %" PRIu64 ",\n \"probes\": %" PRIu64 ",\n", run->request.block,
          run->request.probes);
  fprintf(file, " \"budget_ms\": %" PRIu64 ",\n \"gap_us\": %" PRIu64 ",\n \"recv_delay_us\": %" PRIu64 ",\n",
          run->request.budget_ms, run->request.gap_us, run->request.recv_delay_us);
  fprintf(file, " \"is_pinned\": %s,\n", run->request.cpus[0] >= 0 ? "true" : "false");
  fprintf(file, " \"checksum\": \"%016" PRIx64 "\",\n \"has_canary\": %s,\n", run->checksum,
          run->canary ? "true" : "false");
  fprintf(file, " \"pid\": %ld,\n \"cpu\": %" PRIu32 "\n}\n", (long)getpid(), current_cpu());
  if (fclose(file) == 0) rename(temporary, path);
}

#endif
