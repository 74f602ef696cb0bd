/* What is asked of the two ranks: the command line, and the plan of operations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STEELYARD_PLAN_H
#define STEELYARD_PLAN_H

#include "endpoint.h"

/* The values stand in the trace. */
enum { OP_PINGPONG = 1, OP_STREAM, OP_SEND, OP_RECV, OP_ISEND, OP_TEST, OP_IPROBE, OP_WTIME, OP_END };

static const char *const OP_NAMES[OP_END] = {"",      "pingpong", "stream", "send", "recv",
                                             "isend", "test",     "iprobe", "wtime"};

/* Whether only rank 0 has anything to do. */
static int is_local(uint32_t op) { return op >= OP_TEST; }

struct entry { uint64_t op, size; };
struct plan { uint64_t count; struct entry *entries; };

struct request {
  const char *plan, *out, *transport, *canary;
  uint64_t block, probes, budget_ms, gap_us, recv_delay_us;
  int cpus[2];
};

/* --- command line ------------------------------------------------------------------------------- */

/* Digits only, at least `least` and at most `most`. */
static int read_number(const char *text, uint64_t least, uint64_t most, uint64_t *value) {
  char *end = NULL;
  errno = 0;
  *value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
  return end != NULL && *end == 0 && errno == 0 && *value >= least && *value <= most;
}

static int read_cpus(const char *text, int cpus[2]) {
  int length = 0;
  return sscanf(text, "%d,%d%n", &cpus[0], &cpus[1], &length) == 2 && text[length] == 0 && cpus[0] >= 0 &&
         cpus[1] >= 0;
}

/* Give what is wrong with the command line, or NULL. */
static const char *parse_request(struct request *request, int argc, char **argv) {
  static char problem[512];
  *request = (struct request){NULL, NULL, "mpi", NULL, 256, 10, 0, 0, 20, {-1, -1}};
  struct { const char *name; const char **text; uint64_t *number, least, most; } options[] = {
      {"--plan", &request->plan, NULL, 0, 0},
      {"--out", &request->out, NULL, 0, 0},
      {"--transport", &request->transport, NULL, 0, 0},
      {"--canary", &request->canary, NULL, 0, 0},
      {"--block", NULL, &request->block, 1, UINT32_MAX},
      {"--probes", NULL, &request->probes, 0, 1000000},
      {"--budget-ms", NULL, &request->budget_ms, 1, UINT32_MAX},
      {"--gap-us", NULL, &request->gap_us, 0, UINT32_MAX},
      {"--recv-delay-us", NULL, &request->recv_delay_us, 0, UINT32_MAX},
  };
  const size_t known = sizeof options / sizeof *options;
  for (int i = 1; i < argc; i++) {
    const char *name = argv[i];
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    size_t at = 0;
    while (at < known && strcmp(name, options[at].name) != 0) at++;
    int is_cpus = strcmp(name, "--cpus") == 0;
#ifdef STEELYARD_SIMULATED
    if (strcmp(name, "--stamps-ps") == 0) {
      stamps_per_s = 1e12;
      continue;
    }
#endif
    if (at == known && !is_cpus) {
      snprintf(problem, sizeof problem,
               "`%.99s` is no option; allowed: --plan --out --transport --canary --block --probes "
               "--budget-ms --gap-us --recv-delay-us --cpus",
               name);
      return problem;
    }
    snprintf(problem, sizeof problem, "`%s %.99s` is not allowed; expected %s", name, value ? value : "",
             is_cpus ? "two CPUs as `0,1`" : "a value");
    if (value == NULL) return problem;
    if (is_cpus && !read_cpus(value, request->cpus)) return problem;
    if (!is_cpus && options[at].text != NULL) *options[at].text = value;
    if (!is_cpus && options[at].number != NULL &&
        !read_number(value, options[at].least, options[at].most, options[at].number)) {
      snprintf(problem, sizeof problem, "`%s %.99s` is not allowed; expected a whole number from %" PRIu64
               " to %" PRIu64, name, value, options[at].least, options[at].most);
      return problem;
    }
    i++;
  }
  return request->plan != NULL && request->out != NULL ? NULL : "`--plan FILE` and `--out DIR` are needed";
}

/* --- the plan ----------------------------------------------------------------------------------- */

static uint64_t op_of(const char *name) {
  uint64_t op = OP_END;
  while (--op > 0 && strcmp(OP_NAMES[op], name) != 0) {
  }
  return op;
}

static int read_entry(char *line, struct entry *entry) {
  char *comma = strchr(line, ',');
  if (comma == NULL) return 0;
  *comma = 0;
  comma[1 + strcspn(comma + 1, "\r\n")] = 0;
  entry->op = op_of(line);
  return entry->op != 0 && read_number(comma + 1, 0, INT64_MAX, &entry->size);
}

/* Read `op,size` lines with that heading; what is wrong is said. */
static int read_plan(const char *path, struct plan *plan) {
  char line[128];
  uint64_t number = 1, room = 1024;
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    complain("the plan `%s` cannot be read: %s", path, strerror(errno));
    return 0;
  }
  plan->entries = malloc((size_t)room * sizeof(struct entry));
  int is_good = fgets(line, sizeof line, file) != NULL && strncmp(line, "op,size", 7) == 0 &&
                line[7 + strspn(line + 7, "\r\n")] == 0;
  while (is_good && plan->entries != NULL && fgets(line, sizeof line, file) != NULL) {
    number++;
    if (plan->count == room) {
      room *= 2;
      struct entry *larger = realloc(plan->entries, (size_t)room * sizeof(struct entry));
      if (larger == NULL) free(plan->entries);
      plan->entries = larger;
      if (larger == NULL) break;
    }
    is_good = plan->count < UINT32_MAX && read_entry(line, &plan->entries[plan->count++]);
  }
  fclose(file);
  if (plan->entries == NULL)
    complain("no memory for the plan `%s`", path);
  else if (!is_good && number == 1)
    complain("the plan `%s` does not begin with the heading `op,size`", path);
  else if (!is_good)
    complain("line %" PRIu64 " of the plan `%s` is not `op,size` with one of pingpong, stream, send, recv, "
             "isend, test, iprobe, wtime and a size in bytes", number, path);
  return is_good && plan->entries != NULL;
}

static uint64_t largest_size(const struct plan *plan) {
  uint64_t largest = 0;
  for (uint64_t i = 0; i < plan->count; i++) {
    const struct entry *entry = &plan->entries[i];
    if (!is_local((uint32_t)entry->op) && entry->size > largest) largest = entry->size;
  }
  return largest;
}

/* SOURCE: FNV-1a, 64 bit, offset basis and prime of its authors. */
static const uint64_t CHECKSUM_BEGIN = 0xcbf29ce484222325u;

static uint64_t checksum_of(uint64_t before, uint64_t number, uint64_t op, uint64_t size) {
  const uint64_t words[3] = {number, op, size};
  for (int i = 0; i < 3; i++) before = (before ^ words[i]) * 0x100000001b3u;
  return before;
}

#endif
